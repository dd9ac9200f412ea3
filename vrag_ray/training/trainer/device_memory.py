"""The device's memory, which trainer and engine have in turns."""

from __future__ import annotations

import gc


def release_cached_memory() -> None:
    """Give back what torch keeps of freed tensors for its next ones: the engine maps memory that is free to all.

    Cycles of Python objects may hold tensors, hence the collection before it. Without a GPU there is nothing to give.
    """
    import torch

    if torch.cuda.is_available():
        gc.collect()
        torch.cuda.empty_cache()
