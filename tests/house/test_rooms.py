"""Small rooms: the size of modules and functions, and that each says what it is for.

A function's body is counted from its first statement to its last line, its docstring left out,
nested functions included.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from statistics import median, quantiles

import pytest

import hybrid_search

PACKAGE = Path(hybrid_search.__file__).parent
MODULES = sorted(path.relative_to(PACKAGE).as_posix() for path in PACKAGE.rglob("*.py"))

Definition = ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef


@dataclass(frozen=True)
class CodeUnit:
    """A function or class, where it is, and whether callers may know it: it, and all that it is in,
    has a public name.
    """

    name: str
    node: Definition
    public: bool

    @property
    def body(self) -> int:
        first = self.node.body[1 if ast.get_docstring(self.node) is not None else 0 :]
        return (self.node.end_lineno or 0) - first[0].lineno + 1 if first else 0


def iterate_units(node: ast.AST, within: str, public: bool = True) -> Iterator[CodeUnit]:
    """All functions and classes in `node`. What is inside a function is not public."""
    for child in ast.iter_child_nodes(node):
        if isinstance(child, Definition):
            name, is_public = f"{within}:{child.name}", public and not child.name.startswith("_")
            yield CodeUnit(name, child, is_public)
            yield from iterate_units(child, name, is_public and isinstance(child, ast.ClassDef))
        else:
            yield from iterate_units(child, within, public)


def parse_module(module: str) -> ast.Module:
    return ast.parse((PACKAGE / module).read_text(encoding="utf-8"))


def list_units() -> list[CodeUnit]:
    return [unit for module in MODULES for unit in iterate_units(parse_module(module), module)]


def functions() -> list[CodeUnit]:
    return [unit for unit in list_units() if not isinstance(unit.node, ast.ClassDef)]


@pytest.mark.parametrize("module", MODULES)
def test_a_module_is_under_400_lines_and_says_what_it_is_for(module: str) -> None:
    assert len((PACKAGE / module).read_text(encoding="utf-8").splitlines()) < 400
    assert ast.get_docstring(parse_module(module))


def test_no_function_is_over_60_lines_and_most_are_under_10() -> None:
    lengths = {unit.name: unit.body for unit in functions()}
    assert not {name: length for name, length in lengths.items() if length > 60}
    assert median(lengths.values()) < 10
    assert quantiles(lengths.values(), n=10)[-1] <= 30  # nine of ten


def test_every_function_says_what_it_returns() -> None:
    assert not [
        unit.name
        for unit in functions()
        if not isinstance(unit.node, ast.ClassDef) and unit.node.returns is None
    ]


def test_everything_public_has_a_docstring() -> None:
    assert not [
        unit.name for unit in list_units() if unit.public and not ast.get_docstring(unit.node)
    ]


def test_the_count_is_what_it_says() -> None:
    source = 'def one():\n    """Said."""\n    def two():\n        return 1\n\n    return two\nclass _A:\n    def three(self): ...\n'
    sizes = {unit.name: (unit.body, unit.public) for unit in iterate_units(ast.parse(source), "x")}
    assert sizes == {
        "x:one": (4, True),
        "x:one:two": (1, False),
        "x:_A": (1, False),
        "x:_A:three": (1, False),
    }
