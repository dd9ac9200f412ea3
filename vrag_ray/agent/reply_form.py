"""What a reply may be at one step, as a grammar and a JSON schema: servers that can hold a model to one are given it.

A schema is written once, with the values that are valid at that step, in the subset of JSON Schema that ``json_rules``
turns into GBNF, the grammar form that llama.cpp reads and that vLLM's xgrammar shares.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property

Schema = Mapping[str, object]
"""In this subset: ``enum``, ``anyOf``, ``object`` (every property required, in their order), ``array`` with ``items``,
``minItems`` and ``maxItems``, ``string``, ``TEXT``, ``TITLE``, ``integer`` with ``minimum`` and ``maximum``, ``number``
and ``boolean``."""
TEXT: Schema = {"type": "string", "minLength": 1}
TITLE: Schema = {"type": "string", "pattern": "^[^#]+$"}
"""A string without a number sign, which would pass for a reference."""
_THOUGHT = """\
thought ::= ( [^<] | "<" [^/] )* "</think>" [ \\n]*"""
NUMBER_RULE = r'number ::= "-"? [0-9]{1,9} ( "." [0-9]{1,6} )?'
_JSON_RULES = {
    "text": r'text ::= "\"" char+ "\""',
    "string": r'string ::= "\"" char* "\""',
    "char": r"""char ::= [^"\\\x7F\x00-\x1F] | "\\" ( ["\\/bfnrt] | "u" hex hex hex hex )""",
    "hex": "hex ::= [0-9a-fA-F]",
    "title": r'title ::= "\"" [^"\\#\x7F\x00-\x1F]+ "\""',
    "number": NUMBER_RULE,
    "boolean": 'boolean ::= "true" | "false"',
}


@dataclass(frozen=True)
class ReplyForm:
    """The replies that are accepted: by a protocol at one step, or by a caller who sent a JSON schema.

    ``rules`` are GBNF; their rule ``reply`` is a whole reply without its thoughts. They are "" for a caller's schema,
    which may use all of JSON Schema. ``schema`` describes a reply that is one JSON object, for servers that know
    nothing else; None where the protocol's replies are no JSON.
    """

    rules: str
    schema: Schema | None = None

    def grammar(self, *, opened: bool = False) -> str:
        """GBNF with ``root``: thoughts between think tags where the model has some, then the reply.

        ``opened``: the prompt has opened the thoughts already.
        """
        start = "thought reply" if opened else '( "<think>" thought )? reply'
        return f"root ::= {start}\n{_THOUGHT}\n{self.rules}\n"

    @cached_property
    def schema_json(self) -> str:
        """``schema`` as JSON text, "" where there is none."""
        return json.dumps(self.schema, ensure_ascii=False) if self.schema is not None else ""


def literal(text: str) -> str:
    """``text`` as a GBNF terminal."""
    escaped = text.replace("\\", "\\\\").replace('"', '\\"').replace("\n", "\\n")
    return f'"{escaped}"'


def json_rules(name: str, schema: Schema) -> str:
    """GBNF whose rule ``name`` is the JSON that ``schema`` describes, with single spaces behind commas and colons."""
    rules = {name: ""} | _JSON_RULES
    rules[name] = f"{name} ::= {_expression(schema)}"
    return "\n".join(rules.values())


def _expression(schema: Schema) -> str:
    if "enum" in schema:
        values = schema["enum"]
        assert isinstance(values, Sequence)
        return _either(literal(json.dumps(value, ensure_ascii=False)) for value in values)
    if "anyOf" in schema:
        choices = schema["anyOf"]
        assert isinstance(choices, Sequence)
        return _either(_expression(choice) for choice in choices)
    kind = {json.dumps(TEXT): "text", json.dumps(TITLE): "title"}.get(json.dumps(schema), schema["type"])
    if kind == "object":
        properties = schema["properties"]
        assert isinstance(properties, Mapping)
        pairs = [f"{literal(f'{json.dumps(name)}: ')} {_expression(value)}" for name, value in properties.items()]
        return " ".join(['"{"', ' ", " '.join(pairs), '"}"'])
    if kind == "integer":
        low, high = schema["minimum"], schema["maximum"]
        assert isinstance(low, int) and isinstance(high, int)
        return _either(literal(str(number)) for number in range(low, high + 1))
    return _array(schema) if kind == "array" else str(kind)


def _array(schema: Schema) -> str:
    items, least, most = schema["items"], schema.get("minItems", 0), schema.get("maxItems")
    assert isinstance(items, Mapping) and isinstance(least, int) and (most is None or isinstance(most, int))
    item = _expression(items)
    if most == 0:
        return '"[]"'
    more = f'( ", " {item} ){{{max(least - 1, 0)},{"" if most is None else most - 1}}}'
    some = f"{item} {more}" if most != 1 else item
    return f'"[" {some} "]"' if least else f'"[" ( {some} )? "]"'


def _either(choices: Iterator[str] | Sequence[str]) -> str:
    return f"( {' | '.join(choices)} )"
