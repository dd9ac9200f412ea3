"""Questions on disk: the original's unified JSON and Parquet rows, and JSON lines of ``Example``."""

from vrag_ray.training.data.files import load_examples, save_examples

__all__ = ["load_examples", "save_examples"]
