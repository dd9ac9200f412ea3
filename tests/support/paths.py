"""Where the tests find what they read beside the package."""

from __future__ import annotations

from pathlib import Path

ROOT = Path(__file__).parents[2]
"""The root of the repository."""
