"""Where a model runs, with which numbers, and what running out of memory looks like."""

from __future__ import annotations

import importlib.util
import logging
import re
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING

from vrag_ray.placement import device_of_process
from vrag_ray.types import VragError

if TYPE_CHECKING:
    import torch

EXTRA = "pip install '.[embedded,visual]' in the checkout (with vLLM: '.[cpu]' or '.[gpu]')"
_REPORTED = re.compile(r"^(\S+) +\| (?:\x1b\[\d+m)?(?:UNEXPECTED|MISSING|MISMATCH|CONVERSION)", re.MULTILINE)
"""The keys of a report on loaded weights."""
DTYPES = ("float32", "bfloat16", "float16")


def require(package: str, model: str) -> None:
    """Raises VragError where ``package`` is not installed."""
    if importlib.util.find_spec(package) is None:
        raise VragError(f"{model} needs the package {package}, which is not installed: {EXTRA}")


def chosen_device(device: str) -> str:
    """``cpu`` or ``cuda``, for this process. Raises VragError as ``device_of_process``."""
    import torch

    return device_of_process(device, visible=torch.cuda.is_available(), granted=_granted_a_gpu())


def chosen_dtype(dtype: str, device: str) -> torch.dtype:
    """``auto``: float32 on a CPU, bfloat16 on a GPU."""
    import torch

    if dtype == "auto":
        dtype = "bfloat16" if device == "cuda" else "float32"
    if dtype not in DTYPES:
        raise VragError(f"dtype is {dtype!r}: use auto, {', '.join(DTYPES)}")
    chosen: torch.dtype = getattr(torch, dtype)
    return chosen


@contextmanager
def head_unreported() -> Iterator[None]:
    """While a model without a head of language is loaded: transformers reports that published weights have one, as a
    warning at each load. A report of anything else stays."""
    reports = logging.getLogger("transformers.modeling_utils")
    reports.addFilter(_says_more_than_head)
    try:
        yield
    finally:
        reports.removeFilter(_says_more_than_head)


def _says_more_than_head(record: logging.LogRecord) -> bool:
    keys = _REPORTED.findall(record.getMessage())
    return keys != ["lm_head.weight"]


def is_out_of_memory(error: BaseException) -> bool:
    import torch

    if isinstance(error, MemoryError | torch.OutOfMemoryError):
        return True
    return isinstance(error, RuntimeError) and "can't allocate memory" in str(error)


def _granted_a_gpu() -> bool | None:
    """Whether Ray gave this worker a GPU; None outside of Ray's workers, where nobody grants any."""
    ray = sys.modules.get("ray")
    if ray is None or not ray.is_initialized():
        return None
    in_worker = ray.get_runtime_context().worker.mode == ray.WORKER_MODE
    return bool(ray.get_gpu_ids()) if in_worker else None
