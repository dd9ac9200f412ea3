"""Names are the field's nouns: words of a private idiom name no function, class, parameter or variable."""

from __future__ import annotations

import ast

from tests.support.paths import ROOT

PRIVATE = frozenset({"asked", "having", "told", "wanted", "whoever"})
"""See "Code" in CONTRIBUTING.md for what stands in their place."""


def names_in(tree: ast.AST) -> list[tuple[str, int]]:
    """The names that the module gives, without underscores, and their lines."""
    names: list[tuple[str, int]] = []
    for node in ast.walk(tree):
        match node:
            case ast.FunctionDef() | ast.AsyncFunctionDef() | ast.ClassDef():
                names.append((node.name, node.lineno))
            case ast.arg():
                names.append((node.arg, node.lineno))
            case ast.Name(ctx=ast.Store()):
                names.append((node.id, node.lineno))
    return [(name.strip("_").lower(), line) for name, line in names]


def test_nothing_is_named_in_a_private_idiom() -> None:
    modules = [path for folder in ("vrag_ray", "ui", "jobs") for path in (ROOT / folder).rglob("*.py")]
    assert modules
    named = [
        f"{path.relative_to(ROOT)}:{line}: {name}"
        for path in modules
        for name, line in names_in(ast.parse(path.read_text(encoding="utf-8")))
        if name in PRIVATE
    ]
    assert named == []
