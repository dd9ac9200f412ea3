"""Lets a CUDA-linked torchvision be imported beside a CPU build of torch.

``tools/torchvision_cpu_fix.py`` copies this file into site-packages and starts it from a ``.pth`` line, because the
failure happens in every process, those that vLLM starts included. It runs at each start of Python, so it imports
nothing but the standard library until somebody imports torchvision.

torchvision's native library needs libcudart; without it the library is left out silently, and the import then stops
at "operator torchvision::nms does not exist". Declaring the missing operators (a schema, no kernel) is enough for
the image transforms that the processors use; calling such an operator still fails, with torch's own message.
"""

import sys
from collections.abc import Sequence
from importlib.machinery import ModuleSpec, PathFinder
from types import ModuleType

SCHEMAS = {
    "torchvision::nms": "(Tensor dets, Tensor scores, float iou_threshold) -> Tensor",
    "torchvision::qnms": "(Tensor dets, Tensor scores, float iou_threshold) -> Tensor",
}


class SchemaFinder:
    """A ``sys.meta_path`` entry that finds nothing: it acts once, just before torchvision is imported."""

    def find_spec(
        self, fullname: str, path: Sequence[str] | None = None, target: ModuleType | None = None
    ) -> ModuleSpec | None:
        del target
        if fullname == "torchvision":
            sys.meta_path[:] = [finder for finder in sys.meta_path if finder is not self]
            _declare_missing_operators(PathFinder.find_spec(fullname, path))
        return None


def _declare_missing_operators(torchvision: ModuleSpec | None) -> None:
    try:
        import torch
    except ImportError:
        # torchvision's own import names the missing package better than this file could.
        return
    if torchvision is None or torch.version.cuda is not None or _native_library_loads(torchvision):
        return
    for name, schema in SCHEMAS.items():
        torch.library.define(name, schema)


def _native_library_loads(torchvision: ModuleSpec) -> bool:
    """Whether torchvision brings its own operators, as a CPU build does; declaring them twice would be an error."""
    import ctypes
    from pathlib import Path

    for folder in torchvision.submodule_search_locations or ():
        for library in sorted(Path(folder).glob("_C*.so")):
            try:
                ctypes.CDLL(str(library))
            except OSError:
                continue
            return True
    return False


def install() -> None:
    """Put the finder first on ``sys.meta_path``, once."""
    if not any(isinstance(finder, SchemaFinder) for finder in sys.meta_path):
        sys.meta_path.insert(0, SchemaFinder())
