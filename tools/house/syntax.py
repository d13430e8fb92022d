"""Counts of one parsed file: what it binds, how dense its statements and long its bodies are."""

from __future__ import annotations

import ast
import io
import re
import tokenize
from collections.abc import Collection, Iterable, Iterator
from dataclasses import dataclass
from typing import TypeGuard

from tools.house.names import is_bare_participle, is_filler

Function = ast.FunctionDef | ast.AsyncFunctionDef
Definition = Function | ast.ClassDef

COMPREHENSIONS = (ast.ListComp, ast.SetComp, ast.DictComp, ast.GeneratorExp)
DISPLAYS = (ast.List, ast.Tuple, ast.Set, ast.Dict)
OPERATIONS = (
    ast.Await,
    ast.BinOp,
    ast.BoolOp,
    ast.Call,
    ast.Compare,
    ast.IfExp,
    ast.Lambda,
    ast.NamedExpr,
    ast.Subscript,
    *COMPREHENSIONS,
)
"""The operations that a reader has to work out; names, attributes and constants are free."""


NO_CODE = frozenset(
    (
        tokenize.COMMENT,
        tokenize.NL,
        tokenize.NEWLINE,
        tokenize.INDENT,
        tokenize.DEDENT,
        tokenize.ENDMARKER,
    )
)
"""The tokens that do nothing by themselves."""


@dataclass(frozen=True, slots=True)
class Binding:
    """One place where a name is bound."""

    line: int
    name: str


def bindings(tree: ast.AST) -> Iterator[Binding]:
    """Yield every variable, parameter, attribute, function, class and alias that `tree` binds."""
    for node in ast.walk(tree):
        name = _bound_name(node)
        if name is not None:
            yield Binding(getattr(node, "lineno", 0), name)


def _bound_name(node: ast.AST) -> str | None:
    match node:
        case ast.Name(id=name, ctx=ast.Store()) | ast.Attribute(attr=name, ctx=ast.Store()):
            return name
        case ast.arg(arg=name) | ast.alias(asname=str(name)) | ast.ExceptHandler(name=str(name)):
            return name
        case ast.FunctionDef(name=name) | ast.AsyncFunctionDef(name=name) | ast.ClassDef(name=name):
            return name
    return None


def filler_names(tree: ast.AST) -> list[Binding]:
    """Return the bindings whose name says nothing."""
    return [binding for binding in bindings(tree) if is_filler(binding.name)]


def participle_functions(tree: ast.AST) -> list[Binding]:
    """Return the functions named by a bare participle. Properties and fixtures may be nouns."""
    return [
        Binding(node.lineno, node.name)
        for node in ast.walk(tree)
        if isinstance(node, Function) and is_bare_participle(node.name) and not _is_value(node)
    ]


def _is_value(function: Function) -> bool:
    decorators = " ".join(ast.unparse(decorator) for decorator in function.decorator_list)
    return "property" in decorators or "fixture" in decorators


def statements(tree: ast.AST) -> Iterator[ast.stmt]:
    """Yield every statement but those that only define a function or class."""
    for node in ast.walk(tree):
        if isinstance(node, ast.stmt) and not isinstance(node, Definition):
            yield node


def operations(statement: ast.stmt) -> int:
    """Return the number of operations of a statement, without the statements inside it.

    The elements of a list, tuple, set or dict are read one by one: the largest counts, not the sum.
    Annotations are not counted.
    """
    own = [child for child in _own_children(statement) if not _is_annotation(child, statement)]
    return sum(_operations(child) for child in own)


def _own_children(statement: ast.stmt) -> Iterator[ast.AST]:
    for child in ast.iter_child_nodes(statement):
        if not isinstance(child, ast.stmt | ast.ExceptHandler | ast.match_case):
            yield child


def _is_annotation(child: ast.AST, statement: ast.stmt) -> bool:
    return isinstance(statement, ast.AnnAssign) and child is statement.annotation


def _operations(node: ast.AST) -> int:
    inner = [_operations(child) for child in ast.iter_child_nodes(node)]
    if isinstance(node, DISPLAYS):
        return max(inner, default=0)
    return isinstance(node, OPERATIONS) + sum(inner)


def comprehension_depth(node: ast.AST) -> int:
    """Return how many comprehensions stand inside one another in `node`."""
    inner = max(map(comprehension_depth, ast.iter_child_nodes(node)), default=0)
    return inner + isinstance(node, COMPREHENSIONS)


def public_definitions(tree: ast.AST) -> Iterator[Definition]:
    """Yield the functions and classes that callers may know.

    They and all that they stand in have public names; what is inside a function is not public.
    """
    for child in ast.iter_child_nodes(tree):
        if not isinstance(child, Definition):
            yield from public_definitions(child)
        elif not child.name.startswith("_"):
            yield child
            yield from public_definitions(child) if isinstance(child, ast.ClassDef) else ()


def list_undocumented(tree: ast.Module) -> list[Binding]:
    """Return the public definitions without a docstring, and the module if it has none."""
    nodes = [tree, *public_definitions(tree)]
    return [_binding(node) for node in nodes if not ast.get_docstring(node)]


def list_unannotated(tree: ast.AST) -> list[Binding]:
    """Return the functions that do not say what they return."""
    return [Binding(node.lineno, node.name) for node in functions(tree) if node.returns is None]


def classes(tree: ast.AST) -> Iterator[ast.ClassDef]:
    """Yield all classes of a file, nested ones too."""
    return (node for node in ast.walk(tree) if isinstance(node, ast.ClassDef))


def is_protocol(definition: ast.ClassDef) -> bool:
    """Return whether a class is a `typing.Protocol`."""
    return any(ast.unparse(base).startswith("Protocol") for base in definition.bases)


def functions(tree: ast.AST) -> Iterator[Function]:
    """Yield all functions and methods of a file, nested ones too."""
    return (node for node in ast.walk(tree) if isinstance(node, Function))


def code_lines(text: str, tree: ast.Module) -> frozenset[int]:
    """Return the numbers of the lines with code: no docstring, import, comment or empty line.

    A string that stands alone, as below a constant, is a docstring too.
    """
    tokens = tokenize.generate_tokens(io.StringIO(text).readline)
    spans = [(token.start[0], token.end[0]) for token in tokens if token.type not in NO_CODE]
    free = (node for node in ast.walk(tree) if _is_lone_string(node) or _is_import(node))
    return _lines(spans) - _lines((node.lineno, node.end_lineno or 0) for node in free)


def _is_import(node: ast.AST) -> TypeGuard[ast.Import | ast.ImportFrom]:
    return isinstance(node, ast.Import | ast.ImportFrom)


def _is_lone_string(node: ast.AST) -> TypeGuard[ast.Expr]:
    return isinstance(node, ast.Expr) and isinstance(getattr(node.value, "value", None), str)


def _lines(spans: Iterable[tuple[int, int]]) -> frozenset[int]:
    return frozenset(line for first, last in spans for line in range(first, last + 1))


def body_lines(definition: Definition, code: Collection[int]) -> int:
    """Count the lines of a body that are in `code`, nested functions included."""
    first, last = definition.body[0].lineno, definition.end_lineno or 0
    return sum(line in code for line in range(first, last + 1))


def long_summaries(tree: ast.AST, words: int) -> list[Binding]:
    """Return the definitions whose docstring opens with a sentence of more than `words` words."""
    documented = (node for node in ast.walk(tree) if isinstance(node, ast.Module | Definition))
    return [_binding(node) for node in documented if summary_words(node) > words]


def summary_words(node: ast.Module | Definition) -> int:
    """Count the words of the first sentence of a docstring."""
    return len(first_sentence(ast.get_docstring(node) or "").split())


def _binding(node: ast.Module | Definition) -> Binding:
    return Binding(getattr(node, "lineno", 1), getattr(node, "name", "module"))


def first_sentence(docstring: str) -> str:
    """Return a docstring's first sentence, which a blank line may end too."""
    paragraph = docstring.strip().split("\n\n")[0]
    return re.split(r"(?<=[.!?])\s|:\n", paragraph, maxsplit=1)[0]


def statement_depth(statement: ast.stmt) -> int:
    """Return the `comprehension_depth` of a statement, without the statements inside it."""
    return max(map(comprehension_depth, _own_children(statement)), default=0)
