"""Copied as ``sitecustomize.py`` before a process starts: it finds no package that a bare machine with a card lacks.

Such a machine has torch, transformers, peft and what these need, and pydantic where it was brought along.
"""

import sys
from importlib.machinery import ModuleSpec, PathFinder

ABSENT = {
    "av", "decord", "datasets", "faiss", "fastapi", "fitz", "lance", "mcp", "onnx", "onnxruntime", "openai",
    "prometheus_client", "pyarrow", "pymupdf", "rapidocr", "ray", "starlette", "Stemmer", "streamlit", "tensorboardX",
    "trl", "vllm", "xxhash",
}  # fmt: skip


class Without:
    """A finder that has everything of ``finder`` but the absent packages."""

    def __init__(self, finder: object) -> None:
        self._finder = finder

    def find_spec(self, name: str, path: object = None, target: object = None) -> ModuleSpec | None:
        if name.partition(".")[0] in ABSENT:
            return None
        spec: ModuleSpec | None = self._finder.find_spec(name, path, target)  # type: ignore[attr-defined]
        return spec

    def __getattr__(self, name: str) -> object:
        return getattr(self._finder, name)


# The one that finds installed packages; others may have to find themselves in the list.
sys.meta_path[:] = [Without(finder) if finder is PathFinder else finder for finder in sys.meta_path]
