"""What a process must know of the Ray cluster that it runs on."""

from __future__ import annotations

import os
from pathlib import Path

from vrag_ray.types import VragError

_JOB = "RAY_JOB_CONFIG_JSON_ENV_VAR"
"""What Ray's job manager sets for an entrypoint, and nothing else does."""
_COPIES = "working_dir_files"
"""The folder of a Ray session that holds the copies of working folders."""


def in_job_copy() -> bool:
    """Whether this process is a submitted job that works in Ray's copy of ``--working-dir``, which is removed later."""
    return _JOB in os.environ and _COPIES in Path.cwd().parts


def refuse_lost_output(option: str, place: str) -> None:
    """Raise VragError for a relative ``place`` to write to in a job: it would be removed with the job's copy."""
    if "://" not in place and not Path(place).expanduser().is_absolute() and in_job_copy():
        raise VragError(
            f"{option} {place} lies in Ray's copy of --working-dir, which does not outlive the job: give an absolute "
            "path or a URI that every node can write to"
        )
