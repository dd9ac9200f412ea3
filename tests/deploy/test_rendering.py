"""``rendering`` makes of the folders what kustomize makes of them."""

from __future__ import annotations

import shutil
import subprocess

import pytest
import yaml

from tests.deploy.rendering import FOLDERS, KUBERAY, Object, every_object, image_names, rendered

KUBECTL = shutil.which("kubectl")


def test_every_folder_with_a_kustomization_is_looked_at():
    own = {path.parent.relative_to(KUBERAY) for path in KUBERAY.rglob("kustomization.yaml")}
    assert {str(path) for path in own} == {*FOLDERS, "image", "service-gpu/model"}


def test_every_manifest_is_used():
    used = {"image/kustomization.yaml", "secrets.example.yaml"}
    for path in KUBERAY.rglob("kustomization.yaml"):
        text = path.read_text(encoding="utf-8")
        here = path.parent.relative_to(KUBERAY)
        used |= {str(here / other.name) for other in path.parent.glob("*.yaml") if other == path or other.name in text}
    assert {str(path.relative_to(KUBERAY)) for path in KUBERAY.rglob("*.yaml")} == used


def test_everything_is_in_the_one_namespace_and_images_have_their_real_names():
    for folder, manifest in every_object():
        where = manifest["metadata"]["name"] if manifest["kind"] == "Namespace" else manifest["metadata"]["namespace"]
        assert where == "vrag", f"{folder} {manifest['kind']}"
    assert set(image_names()) == {"vrag-ray", "vrag-ray-gpu"}
    text = yaml.safe_dump([manifest for _, manifest in every_object()])
    assert "image: vrag-ray" not in text
    assert text.count("image: ") == text.count("image: registry.example.com/vrag-ray:") + text.count(
        "image: docker.io/"
    )


if KUBECTL is not None:
    # Where there is no kubectl there is no such test, rather than one that is skipped.
    @pytest.mark.parametrize("folder", FOLDERS)
    def test_kustomize_renders_the_same(folder: str):
        done = subprocess.run([str(KUBECTL), "kustomize", KUBERAY / folder], capture_output=True, text=True, check=True)

        def key(manifest: Object) -> tuple[str, str]:
            return manifest["kind"], manifest["metadata"]["name"]

        assert sorted(yaml.safe_load_all(done.stdout), key=key) == sorted(rendered(folder), key=key)
