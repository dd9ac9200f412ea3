"""Settings that went away are refused with the reason, wherever they are written."""

from __future__ import annotations

from pathlib import Path

import pytest
import yaml

from vrag_ray.config import Settings, load_settings
from vrag_ray.config.serve_config import read_serve_config
from vrag_ray.training.config import RLConfig, load_training
from vrag_ray.types import VragError


def test_the_constant_of_the_former_rank_fusion_is_refused_in_a_file(tmp_path: Path) -> None:
    path = tmp_path / "vrag.yaml"
    path.write_text("index: {rrf_k: 60}\n")
    with pytest.raises(VragError, match=r"vrag\.yaml is wrong at index: .*rrf_k has no use any more.*delete it"):
        load_settings(path)


def test_the_constant_of_the_former_rank_fusion_is_refused_in_the_environment(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("VRAG_INDEX__RRF_K", "60")
    with pytest.raises(VragError, match=r"\(environment\) is wrong at index: .*rrf_k has no use any more"):
        load_settings()


def test_one_language_model_is_configured_at_most(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = tmp_path / "vrag.yaml"
    path.write_text("vllm: {model: org/seer}\n")
    assert load_settings(path).language_model == load_settings(path).vllm
    monkeypatch.setenv("VRAG_OPENAI__BASE_URL", "http://127.0.0.1:9/v1")
    monkeypatch.setenv("VRAG_OPENAI__MODEL", "qwen")
    with pytest.raises(VragError, match=r"both openai \(qwen\) and vllm \(org/seer\) name the language model: set one"):
        load_settings(path)
    endpoint = load_settings().language_model
    assert endpoint is not None and endpoint.model == "qwen"


@pytest.mark.parametrize("encoding", ["utf-8", "utf-8-sig", "utf-16", "utf-32"])
def test_a_configuration_is_read_in_every_encoding_that_a_mark_names(tmp_path: Path, encoding: str) -> None:
    path = tmp_path / "vrag.yaml"
    path.write_text("collection: größe\n", encoding=encoding)
    assert load_settings(path).collection == "größe"


def test_a_configuration_in_another_encoding_is_refused_by_its_name(tmp_path: Path) -> None:
    path = tmp_path / "vrag.yaml"
    path.write_bytes("collection: x\n# für Anna\n".encode("cp1252"))
    with pytest.raises(VragError, match=r"vrag\.yaml: line 2 is not UTF-8 \(byte 0xfc\): save the file as UTF-8"):
        load_settings(path)
    with pytest.raises(VragError, match=r"vrag\.yaml: line 2 is not UTF-8"):
        load_training(path, RLConfig)
    with pytest.raises(VragError, match=r"vrag\.yaml: line 2 is not UTF-8"):
        read_serve_config(path)


def test_a_key_that_is_given_twice_is_refused_at_its_place(tmp_path: Path) -> None:
    path = tmp_path / "vrag.yaml"
    path.write_text("agent: {max_steps: 8}\nindex: {shards: 2}\nagent: {deadline_s: 5}\n")
    with pytest.raises(VragError, match=r"vrag\.yaml: the key agent is given twice, in lines 1 and 3"):
        load_settings(path)
    path.write_text("agent:\n  max_steps: 8\n  max_steps: 9\n")
    with pytest.raises(VragError, match="the key max_steps is given twice, in lines 2 and 3"):
        load_settings(path)


@pytest.mark.parametrize(
    ("text", "says"),
    [
        ("agent: {max_step: 8}", r"at agent\.max_step: there is no such setting; did you mean agent\.max_steps\?"),
        ("agnt: {max_steps: 8}", r"at agnt: there is no such setting; did you mean agent\?"),
        ("max_steps: 8", r"at max_steps: there is no such setting; did you mean agent\.max_steps\?"),
        ("spaces: {text: {modle: minilm}}", r"did you mean spaces\.text\.model\?"),
        ("agent: {zzz: 1}", r"at agent\.zzz: there is no such setting$"),
    ],
)
def test_a_misspelled_setting_names_the_nearest(tmp_path: Path, text: str, says: str) -> None:
    path = tmp_path / "vrag.yaml"
    path.write_text(text)
    with pytest.raises(VragError, match=says):
        load_settings(path)


def test_a_misspelled_setting_of_a_training_names_the_nearest(tmp_path: Path) -> None:
    path = tmp_path / "rl.yaml"
    path.write_text("name: a\nexamples: b\nsteps: 1\nenvironment: {colection: c}\nmodel: {path: d}\n")
    with pytest.raises(VragError, match=r"did you mean environment\.collection\?"):
        load_training(path, RLConfig)


@pytest.mark.parametrize(
    ("name", "meant"),
    [
        ("VRAG_AGNT__MAX_STEPS", "VRAG_AGENT__MAX_STEPS"),
        ("VRAG_COLECTION", "VRAG_COLLECTION"),
        ("VRAG_AGENT_MAX_STEPS", "VRAG_AGENT__MAX_STEPS"),
        ("VRAG_GPU", "VRAG_GPUS"),
    ],
)
def test_a_misspelled_variable_names_the_nearest(monkeypatch: pytest.MonkeyPatch, name: str, meant: str) -> None:
    monkeypatch.setenv(name, "5")
    with pytest.raises(VragError, match=rf"the variable {name} is no setting: did you mean {meant}\?"):
        load_settings()


def test_variables_of_other_uses_are_passed_over(monkeypatch: pytest.MonkeyPatch) -> None:
    others = {"VRAG_API_KEYS": "a", "VRAG_URL": "b", "VRAG_IMAGE_TAG": "c", "VRAG_SERVING_PORT": "tcp://10.0.0.1:80"}
    for name, value in others.items():
        monkeypatch.setenv(name, value)
    assert load_settings() == load_settings()
    monkeypatch.setenv("VRAG_NOTHING__LIKE_IT", "5")
    with pytest.raises(VragError, match=r"the variable VRAG_NOTHING__LIKE_IT is no setting: docs/settings\.md"):
        load_settings()


@pytest.mark.parametrize(
    "text",
    [
        "corpus: {limits: {memory_mb: 0}}",
        "corpus: {limits: {max_file_mb: -1}}",
        "corpus: {limits: {max_pages: 0}}",
        "corpus: {ocr_dpi: 0}",
        "corpus: {window_words: 20, window_overlap: 20}",
        "agent: {abstain_below: 50}",
        "agent: {deadline_s: 0}",
        "agent: {energy_feedback: -0.1}",
        "serving: {port: 70000}",
        "serving: {max_upload_mb: 0}",
        "index: {threads: 0}",
    ],
)
def test_a_limit_under_which_nothing_works_is_refused_by_its_section(tmp_path: Path, text: str) -> None:
    path = tmp_path / "vrag.yaml"
    path.write_text(text)
    with pytest.raises(VragError, match=rf"wrong at {text.partition(':')[0]}\b.*"):
        load_settings(path)


@pytest.mark.parametrize("word", ["off", "Off", "no", "false"])
def test_off_is_a_value_in_yaml_which_reads_it_as_false(tmp_path: Path, word: str) -> None:
    path = tmp_path / "vrag.yaml"
    endpoint = f"openai: {{base_url: http://x/v1, model: m, constraint: {word}}}"
    text = f"agent: {{marks: {word}}}\ncorpus: {{office: {word}}}\n{endpoint}\n"
    path.write_text(text)
    settings = load_settings(path)
    assert settings.openai is not None
    assert (settings.agent.marks, settings.corpus.office, settings.openai.constraint) == ("off", "off", "off")
    # As `serve run` reads it.
    assert Settings.model_validate(yaml.safe_load(text)) == settings
    path.write_text(f"serving: {{auth: {word}}}\n")
    with pytest.raises(VragError, match=r"at serving\.auth: Input should be 'keys', 'loopback' or 'open'"):
        load_settings(path)


@pytest.mark.parametrize(
    ("text", "says"),
    [
        ("on: true", "the name on in line 1 is read as true or false"),
        ("gpus: 0\nnull: x", "the name null in line 2 is read as nothing"),
        ("collections: {2024: /x}", "the name 2024 in line 1 is read as a number"),
        ("collections: {2024-05-01: /x}", "the name 2024-05-01 in line 1 is read as a date"),
    ],
)
def test_a_name_that_is_no_text_in_yaml_is_refused_at_its_place(tmp_path: Path, text: str, says: str) -> None:
    path = tmp_path / "vrag.yaml"
    path.write_text(text)
    with pytest.raises(VragError, match=rf"vrag\.yaml: {says}: write it in quotes"):
        load_settings(path)


def test_names_that_nothing_follows_have_their_defaults(tmp_path: Path) -> None:
    path = tmp_path / "vrag.yaml"
    path.write_text("serving:\n  # port: 9000\nindex:\ncollections:\nagent:\n  marks:\nreranker:\n")
    assert load_settings(path) == load_settings()
    path.write_text("openai:\n  base_url:\n  model: m\n")
    with pytest.raises(VragError, match=r"at openai\.base_url: Field required"):
        load_settings(path)


@pytest.mark.parametrize("text", ["serving: {port: true}", "gpus: yes", "agent: {deadline_s: on}", "gpus: false"])
def test_a_switch_is_no_number(tmp_path: Path, text: str) -> None:
    path = tmp_path / "vrag.yaml"
    path.write_text(text)
    with pytest.raises(VragError, match=r"Input should be a number, not (true|false)"):
        load_settings(path)


@pytest.mark.parametrize(
    ("text", "origin"),
    [
        ("https://chat.example.org/", "https://chat.example.org"),
        ("https://A.example:443", "https://a.example"),
        ("http://localhost:3000", "http://localhost:3000"),
        ("http://[::1]:80", "http://[::1]"),
        ("chrome-extension://abc", "chrome-extension://abc"),
        ("*", "*"),
    ],
)
def test_an_origin_is_read_as_browsers_write_it(text: str, origin: str) -> None:
    assert Settings.model_validate({"serving": {"cors_origins": [text]}}).serving.cors_origins == (origin,)


@pytest.mark.parametrize("text", ["chat.example.org", "chat.example.org:443", "https://a/b", "https://*.a", "//a", ""])
def test_what_is_no_origin_is_refused(text: str) -> None:
    with pytest.raises(ValueError, match=r"is no origin: write it as https://chat\.example\.org"):
        Settings.model_validate({"serving": {"cors_origins": [text]}})


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("VRAG_SERVING__CORS_ORIGINS", "https://a"),
        ("VRAG_COLLECTIONS", "/a,/b"),
        ("VRAG_AGENT__INSTRUCTION", "x.txt"),
        ("vrag_vllm__engine_args", "a=b"),
    ],
)
def test_a_variable_that_must_be_json_is_named_with_the_form(
    monkeypatch: pytest.MonkeyPatch, name: str, value: str
) -> None:
    monkeypatch.setenv(name, value)
    with pytest.raises(VragError, match=rf'at {name}: it is no JSON: write a list as \["a", "b"\], and names'):
        load_settings()


def test_a_variable_that_nothing_reads_is_reported(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setenv("VRAG_PORT", "9000")
    assert load_settings() == Settings()
    assert "the variable VRAG_PORT is passed over; did you mean VRAG_SERVING__PORT?" in caplog.text
    monkeypatch.setenv("VRAG_APIKEYS", "secret")
    with pytest.raises(VragError, match=r"the variable VRAG_APIKEYS is no setting: did you mean VRAG_API_KEYS\?"):
        load_settings()


OURS = "import_path: vrag_ray.serving.app:build"


@pytest.mark.parametrize(
    ("text", "says"),
    [
        ("applications:", "has 0 applications"),
        ("applications: [x]", r"at applications\.0: "),
        ("applications: {a: b}", "at applications: Input should be a valid list"),
        (f"applications: [{{{OURS}, args: []}}]", r"at applications\.0\.args: Input should be a valid dictionary"),
        (f"applications: [{{{OURS}, args: {{serving: 5}}}}]", r"at args\.serving: Input should be a valid dictionary"),
        (f"applications: [{{{OURS}, deployments: [{{num_replicas: 2}}]}}]", r"deployments\.0\.name: Field required"),
        (f"applications: [{{{OURS}, deployments: {{Gateway: {{}}}}}}]", r"deployments: Input should be a valid list"),
        (f"applications: [{{{OURS}, deployments: [Gateway]}}]", r"applications\.0\.deployments\.0: "),
        (f"applications: [{{{OURS}}}]\nhttp_options: [1]", "at http_options: Input should be a valid dictionary"),
        (f"applications: [{{{OURS}}}]\nserving: {{port: 5}}", "at serving: beside `applications` nothing reads it"),
    ],
)
def test_a_serve_config_of_another_shape_is_refused_at_its_place(tmp_path: Path, text: str, says: str) -> None:
    path = tmp_path / "serve.yaml"
    path.write_text(text)
    with pytest.raises(VragError, match=says):
        read_serve_config(path)


def test_a_serve_config_gives_the_settings_and_the_deployments_with_options(tmp_path: Path) -> None:
    path = tmp_path / "serve.yaml"
    path.write_text(
        f"http_options: {{port: 9000}}\napplications: [{{name: a, {OURS}, args: {{serving: }}, "
        "deployments: [{name: Gateway, num_replicas: 2}, {name: Library, num_replicas: 1}]}]\n"
    )
    settings, listed = read_serve_config(path)
    assert (settings.serving.port, listed) == (9000, ["Gateway"])
