"""The paths of a configuration, made absolute where a run is submitted: workers have working folders of their own.

Relative paths begin at the caller's working folder. Inside a submitted job that folder is Ray's copy of
``--working-dir``, named by its content and removed after the job. Inputs are read from it; what is written goes to Ray
Train's default place instead (``~/ray_results`` of the node that runs the job), where the next job finds it.
"""

from __future__ import annotations

import os
import re
from pathlib import Path

from vrag_ray.cluster import in_job_copy
from vrag_ray.training.run.storage import filesystem, is_uri
from vrag_ray.types import VragError
from vrag_ray.types.file_names import expanded

_HUB_ID = re.compile(r"[A-Za-z0-9_][\w.-]*(/[\w.-]+)?", re.ASCII)
_PASSWORD = re.compile(r"^[a-z][a-z0-9+.-]*://[^/@]*:[^/@]*@", re.IGNORECASE)


def output_place(field: str, place: str) -> str:
    """Where a run writes: an absolute local path, or the URI of an object store as it is.

    Raises VragError for a URI that no filesystem knows, for one with a password, and for a local path below something
    that is no folder or cannot be written to.
    """
    if is_uri(place) or place.startswith("file:"):
        opened = _opened(field, place)
        return opened if is_uri(opened) else _writable(field, opened)
    return _writable(field, os.path.abspath(_outputs() / expanded(place)))  # noqa: PTH100  resolve() follows links


def input_place(field: str, place: str) -> str:
    """What a run reads: an existing local path, absolute, or the URI of an object store as it is.

    Raises VragError where there is nothing.
    """
    if is_uri(place) or place.startswith("file:"):
        existing = _opened(field, place)
        if is_uri(existing) or Path(existing).exists():
            return existing
    else:
        existing = _existing(place)
        if existing:
            return existing
    raise VragError(f"{field}: there is no {_looked_for(place)}")


def model_place(place: str) -> str:
    """The same for a model, which may also be an id of the Hugging Face hub (``name`` or ``organisation/name``)."""
    if is_uri(place) or place.startswith("file:"):
        return input_place("model.path", place)
    existing = _existing(place)
    if existing:
        return existing
    if _HUB_ID.fullmatch(place):
        return place
    raise VragError(f"model.path: there is no {_looked_for(place)}, and it is no id of the Hugging Face hub")


def _writable(field: str, place: str) -> str:
    there = next(path for path in (Path(place), *Path(place).parents) if path.exists())
    if not (there.is_dir() and os.access(there, os.W_OK)):
        why = "cannot be written to" if there.is_dir() else "is no folder"
        raise VragError(f"{field}: {place} cannot be made, because {there} {why}")
    return place


def _outputs() -> Path:
    if not in_job_copy():
        return Path.cwd()
    from ray.train.constants import DEFAULT_STORAGE_PATH

    return Path(DEFAULT_STORAGE_PATH)


def _existing(place: str) -> str:
    """Where ``place`` is, absolute: in the working folder, or where an earlier job has left it; "" for nowhere."""
    path = expanded(place)
    candidates = (Path.cwd() / path, _outputs() / path)
    return next((os.path.abspath(candidate) for candidate in candidates if candidate.exists()), "")  # noqa: PTH100


def _looked_for(place: str) -> str:
    path = expanded(place)
    where = f" in {Path.cwd()}" if not path.is_absolute() and not is_uri(place) else ""
    also = f" and none in {_outputs()}" if where and in_job_copy() else ""
    return f"{path if not is_uri(place) else place}{where}{also}"


def _opened(field: str, uri: str) -> str:
    """A URI as it is once it is known to be one; of ``file://`` the path."""
    if _PASSWORD.match(uri):
        raise VragError(
            f"{field}: a URI with a password would be shown in logs and written to config.yaml: give credentials in "
            "the environment of every node"
        )
    if not uri.startswith("file:"):
        filesystem(uri)
        return uri
    return filesystem(uri)[1]
