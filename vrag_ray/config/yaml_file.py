"""A configuration file as values: YAML in the encodings in which editors and shells write it."""

from __future__ import annotations

import codecs
from collections.abc import Generator
from pathlib import Path

import yaml

from vrag_ray.types import VragError

_MARKS = (
    (codecs.BOM_UTF32_LE, "utf-32"),
    (codecs.BOM_UTF32_BE, "utf-32"),
    (codecs.BOM_UTF16_LE, "utf-16"),
    (codecs.BOM_UTF16_BE, "utf-16"),
)
"""In this order: the mark of UTF-32 begins with that of UTF-16. PowerShell 5 writes UTF-16."""


def read_yaml(path: Path) -> object:
    """The value in ``path``. Raises VragError, naming the file, where it cannot be read or gives a key twice."""
    try:
        return yaml.load(_text_of(path), _UniqueKeys)  # noqa: S506  a SafeLoader
    except (OSError, yaml.YAMLError) as error:
        raise VragError(f"cannot read the configuration {path}: {error}") from error


def _text_of(path: Path) -> str:
    data = path.read_bytes()
    encoding = next((name for mark, name in _MARKS if data.startswith(mark)), "utf-8-sig")
    try:
        return data.decode(encoding)
    except UnicodeDecodeError as error:
        line = data.count(b"\n", 0, error.start) + 1
        raise VragError(
            f"cannot read the configuration {path}: line {line} is not UTF-8 (byte 0x{data[error.start]:02x}): "
            "save the file as UTF-8"
        ) from error


_NO_TEXT = {
    "tag:yaml.org,2002:bool": "true or false",
    "tag:yaml.org,2002:null": "nothing",
    "tag:yaml.org,2002:int": "a number",
    "tag:yaml.org,2002:float": "a number",
    "tag:yaml.org,2002:timestamp": "a date",
}
"""What a bare name may be in YAML, by tag: ``on``, ``null``, ``2024``. Settings, and what users name, have texts."""


class _UniqueKeys(yaml.SafeLoader):
    """Plain YAML would take the last of two values of a key."""

    def construct_yaml_map(self, node: yaml.MappingNode) -> Generator[dict[object, object], None, None]:
        first: dict[str, yaml.Node] = {}
        for key, _ in node.value:
            if not isinstance(key, yaml.ScalarNode):
                continue
            if key.tag in _NO_TEXT:
                raise yaml.YAMLError(
                    f"the name {key.value} in line {key.start_mark.line + 1} is read as {_NO_TEXT[key.tag]}: "
                    "write it in quotes"
                )
            before = first.setdefault(key.value, key)
            if before is not key:
                raise yaml.YAMLError(
                    f"the key {key.value} is given twice, in lines {before.start_mark.line + 1} and "
                    f"{key.start_mark.line + 1}: put both into one"
                )
        yield from super().construct_yaml_map(node)


_UniqueKeys.add_constructor("tag:yaml.org,2002:map", _UniqueKeys.construct_yaml_map)
