"""What messages and addresses may say to those outside of this machine: no paths of it, no secrets."""

from __future__ import annotations

import re
from functools import lru_cache
from pathlib import PurePosixPath, PureWindowsPath
from urllib.parse import urlsplit

from vrag_ray.types.file_names import is_file_uri, path_in_uri, shown_name

_QUOTED_PATH = re.compile(r"""(?P<quote>['"`])(?P<path>(?:file://)?(?:/|[A-Za-z]:\\)[^'"`]+)(?P=quote)""")
_BARE_PATH = re.compile(r"""(?<![\w/:.~-])(?:file://)?/(?!v1/|search\b)(?:[^\s/'"`:,;()<>|]+/)+[^\s/'"`:,;()<>|]*""")


def scrub(message: str) -> str:
    """``message`` with every absolute path of this machine cut down to its last name; URLs stay."""
    message = _QUOTED_PATH.sub(lambda match: match["quote"] + _last_name(match["path"]) + match["quote"], message)
    return _BARE_PATH.sub(lambda match: _last_name(match[0]), message)


@lru_cache(maxsize=10_000)
def public_uri(uri: str) -> str:
    """What a reply may say about where a document came from: a remote URI without secrets, or a bare file name."""
    parts = urlsplit(uri)
    if len(parts.scheme) > 1 and parts.scheme != "file":
        # User names, passwords, signatures and tokens live in the authority and the query.
        host = parts.netloc.rpartition("@")[2]
        return f"{parts.scheme}://{host}{parts.path}" if parts.netloc else f"{parts.scheme}:{parts.path}"
    return _last_name(uri)


def _last_name(path: str) -> str:
    bare = shown_name(path_in_uri(path)) if is_file_uri(path) else path
    name = PurePosixPath(bare).name
    return (PureWindowsPath(name).name or name) if "\\" in name or ":" in name else name
