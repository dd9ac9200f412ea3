"""The tool call in a model's reply, in any of the forms in which models write one: pure, total functions over text.

Understood are JSON with small faults (code fences, trailing commas, Python literals, no closing tag), the call forms of
other model families (``{"function": …}``, ``name({…})``, ``name(key="value")``, ``<function=name>``), and the name
before or as the key of the arguments. Whatever needs a guess is no call.
"""

from __future__ import annotations

import ast
import json
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import json5

MAX_LOOSE_CHARS = 20_000
"""Of a call that is not JSON: reading that many characters of JSON5 takes a second."""
_FENCE = re.compile(r"^```[a-z]*\s*|\s*```$")
_JSON = json.JSONDecoder(strict=False)
_NAME_KEYS = ("name", "tool", "tool_name", "function", "action")
_ARGUMENT_KEYS = ("arguments", "args", "parameters", "input", "kwargs")
_ELEMENT = re.compile(r"<function=(\w{1,40})>(.*?)(?:</function>|\Z)", re.DOTALL)
_PARAMETER = re.compile(r"<parameter=(\w{1,40})>(.*?)</parameter>", re.DOTALL)
_BEFORE_BRACE = 80
"""Characters before the first brace among which the name may stand."""


@dataclass(frozen=True, slots=True)
class LooseCall:
    """``arguments`` is whatever stands in their place; ``problem`` says why there is no call at all."""

    name: str = ""
    arguments: object = None
    problem: str = ""


def find_call(text: str, names: Sequence[str]) -> LooseCall:
    """The first call in ``text``, a reply from its ``<tool_call>`` on, or without one. ``names`` are the tools'."""
    element = _ELEMENT.search(text)
    if element is not None:
        return LooseCall(element[1], {key: _json_or_text(value) for key, value in _PARAMETER.findall(element[2])})
    before, name_before = text[: max(text.find("{"), 0)], ""
    for name in names:
        if re.search(rf"\b{name}\W{{0,6}}\Z", before[-_BEFORE_BRACE:]):
            name_before = name
    python = _python_call(text, names)
    if python is not None:
        return python
    value = _first_object(text)
    if value is None:
        body = _braces(text)
        if body is None and "{" not in text and "[" not in text:
            return LooseCall(problem="the reply holds no tool call")
        value = loose_json(body if body is not None else text)
    if isinstance(value, list) and value:
        value = value[0]
    if not isinstance(value, dict):
        return LooseCall(problem="the tool call is not a JSON object")
    return _of_object(value, name_before, names)


def _of_object(value: Mapping[str, object], name_before: str, names: Sequence[str]) -> LooseCall:
    nested = value.get("function")
    if isinstance(nested, dict):
        value = nested
    if name_before and value.get("name") not in names:
        return LooseCall(name_before, _arguments(value, ()))
    for key in _NAME_KEYS:
        if isinstance(value.get(key), str):
            return LooseCall(str(value[key]), _arguments(value, (key,)))
    if len(value) == 1 and (name := next(iter(value))) in names:
        return LooseCall(name, value[name])
    return LooseCall(str(value.get("name")), _arguments(value, ("name",)))


def _arguments(value: Mapping[str, object], without: Sequence[str]) -> object:
    """What stands under one of the usual keys, else the rest of the object itself."""
    for key in _ARGUMENT_KEYS:
        if key in value:
            return value[key]
    return {key: argument for key, argument in value.items() if key not in without}


def _python_call(text: str, names: Sequence[str]) -> LooseCall | None:
    """``name(key="value", …)`` or ``name({…})``, alone or fenced."""
    bare = _FENCE.sub("", re.sub(r"</?tool_call>", "", text).strip()).strip()
    if len(bare) > MAX_LOOSE_CHARS or not bare.startswith(tuple(f"{name}(" for name in names)):
        return None
    try:
        call = ast.parse(bare, mode="eval").body
        if not isinstance(call, ast.Call) or not isinstance(call.func, ast.Name):
            return None
        arguments = {word.arg: ast.literal_eval(word.value) for word in call.keywords if word.arg is not None}
        positional = [ast.literal_eval(value) for value in call.args]
    except (ValueError, SyntaxError, TypeError, RecursionError, MemoryError):
        return None
    if positional:
        return LooseCall(call.func.id, positional[0]) if len(positional) == 1 and not arguments else None
    return LooseCall(call.func.id, arguments)


def _json_or_text(text: str) -> object:
    try:
        value: object = _JSON.decode(text.strip())
    except (ValueError, RecursionError):
        return text.strip()
    return value


def _first_object(text: str) -> object:
    """The JSON value that begins with the first brace; None where there is none, or it is no JSON.

    It says itself where it ends: a page quoted inside of it may hold a closing tag.
    """
    brace = text.find("{")
    try:
        value: object = _JSON.raw_decode(text, brace)[0] if brace >= 0 else None
    except (ValueError, RecursionError):
        return None
    return value


def loose_json(text: str) -> object:
    """The JSON or Python value in ``text``, None where there is none."""
    bare = _FENCE.sub("", text.strip()).strip()
    braced = _braces(bare)
    for candidate in (bare, braced):
        if candidate is None:
            continue
        try:
            value: object = _JSON.decode(candidate)
        except (ValueError, RecursionError):
            continue
        return value
    if len(bare) <= MAX_LOOSE_CHARS:
        try:
            loose: object = json5.loads(braced or bare)
        except (ValueError, RecursionError):
            pass
        else:
            return loose
    try:
        literal: object = ast.literal_eval(bare)
    except (ValueError, SyntaxError, TypeError, RecursionError, MemoryError):
        return None
    return literal


def _braces(text: str) -> str | None:
    """The first balanced ``{…}`` of ``text``; braces inside JSON strings do not count."""
    start = text.find("{")
    if start < 0:
        return None
    depth, quoted, escaped = 0, False, False
    for place in range(start, len(text)):
        char = text[place]
        if quoted:
            if escaped:
                escaped = False
            elif char == "\\":
                escaped = True
            elif char == '"':
                quoted = False
        elif char == '"':
            quoted = True
        elif char == "{":
            depth += 1
        elif char == "}":
            depth -= 1
            if depth == 0:
                return text[start : place + 1]
    return None
