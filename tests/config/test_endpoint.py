"""The endpoint of a language model in the configuration."""

from __future__ import annotations

from pathlib import Path

import pytest

from vrag_ray.config import load_settings
from vrag_ray.types import VragError


@pytest.mark.parametrize(
    ("base_url", "model", "fault"),
    [
        ("", "m", r"openai\.base_url: '' is no address: write it as https://HOST/v1"),
        ("x", "m", r"openai\.base_url: 'x' is no address"),
        ("localhost:8000/v1", "m", r"openai\.base_url: 'localhost:8000/v1' is no address"),
        ("ftp://x/v1", "m", r"openai\.base_url: 'ftp://x/v1' is no address"),
        ("https:///v1", "m", r"openai\.base_url: 'https:///v1' is no address"),
        (
            "https://h/v1/chat/completions",
            "m",
            r"openai\.base_url: .* goes on to /chat/completions: write it up to there",
        ),
        ("https://h/v1", " ", r"openai\.model: the name is empty"),
    ],
)
def test_an_endpoint_without_an_address_or_a_name_is_refused(
    tmp_path: Path, base_url: str, model: str, fault: str
) -> None:
    file = tmp_path / "vrag.yaml"
    file.write_text(f"openai: {{base_url: {base_url!r}, model: {model!r}}}\n")
    with pytest.raises(VragError, match=fault):
        load_settings(file)


@pytest.mark.parametrize(
    "base_url", ["http://127.0.0.1:8000/v1", "https://h/v1/", "HTTPS://h/openai", "http://[::1]:80/v1"]
)
def test_an_address_stays_as_it_is_written(tmp_path: Path, base_url: str) -> None:
    file = tmp_path / "vrag.yaml"
    file.write_text(f"openai: {{base_url: {base_url!r}, model: m}}\n")
    endpoint = load_settings(file).openai
    assert endpoint is not None and endpoint.base_url == base_url
