"""The page of all settings is what the classes say."""

from __future__ import annotations

import importlib.util
from pathlib import Path

ROOT = Path(__file__).parents[2]


def test_the_page_is_what_the_tool_writes() -> None:
    spec = importlib.util.spec_from_file_location("write_settings", ROOT / "tools/write_settings.py")
    assert spec is not None and spec.loader is not None
    tool = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(tool)
    written = tool.page()
    assert (ROOT / "docs/settings.md").read_text(encoding="utf-8") == written, "run tools/write_settings.py"
    for name in ("gpus", "corpus.limits.memory_mb", "spaces.NAME.model", "agent.entailment", "serving.port"):
        assert f"| `{name}` |" in written
