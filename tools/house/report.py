"""The counts of a top folder, the limits they are held to, and what breaks them."""

from __future__ import annotations

import ast
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from statistics import median, quantiles
from typing import Any

from tools.house import syntax

FOLDERS = ("hybrid_search", "export", "papers", "benchmarks", "tools", "tests")

LINE_COLUMNS = 100
STATEMENT_OPERATIONS = 8
COMPREHENSION_DEPTH = 2
BODY_LINES = 60
MEDIAN_BODY_LINES = 10
NINTH_DECILE_BODY_LINES = 30
MODULE_LINES = 400
"""Lines of code, as are those of bodies: docstrings, imports, comments and empty
lines are free.

The longest module had 310 when this was chosen, so that a module ends where its idea ends. One with
more than 400 holds several ideas.
"""
SMALL_MODULE_LINES = 60
"""Lines of a file below which a module is counted as small: many of these are one idea in pieces.

`__init__.py` is not counted.
"""
SUMMARY_WORDS = 20
FILLER_PERCENT = 1.0
ROOT_MODULES = 10


@dataclass(frozen=True, slots=True)
class SourceFile:
    """A Python file, read and parsed once."""

    path: Path
    text: str
    tree: ast.Module
    code: frozenset[int]
    """The numbers of the lines with code."""

    @classmethod
    def parse(cls, path: Path, text: str) -> SourceFile:
        """Parse `text`, which is at `path`."""
        tree = ast.parse(text)
        return cls(path, text, tree, syntax.code_lines(text, tree))


@dataclass(frozen=True, slots=True)
class Violation:
    """One place that breaks a limit."""

    path: Path
    line: int
    message: str

    def __str__(self) -> str:
        return f"{self.path}:{self.line}: {self.message}"


@dataclass(frozen=True, slots=True)
class Counts:
    """The counts of one folder; `make house` prints them as a row."""

    files: int
    small_modules: int
    lines: int
    code_lines: int
    classes: int
    protocols: int
    bindings: int
    fillers: int
    participles: int
    wide_lines: int
    dense_statements: int
    deep_comprehensions: int
    median_body: float
    ninth_decile_body: float
    longest_body: int
    longest_module: int
    long_summaries: int

    @property
    def filler_percent(self) -> float:
        """Share of the bound names that say nothing, in percent."""
        return 100 * self.fillers / max(self.bindings, 1)


@cache
def read_folder(folder: Path) -> list[SourceFile]:
    """Read all Python files below `folder`, in the order of their paths."""
    paths = sorted(folder.rglob("*.py"))
    return [SourceFile.parse(path, path.read_text(encoding="utf-8")) for path in paths]


def filler_names(file: SourceFile) -> Iterator[Violation]:
    """Yield the names that say nothing."""
    for binding in syntax.filler_names(file.tree):
        yield Violation(file.path, binding.line, f"the name {binding.name!r} says nothing")


def participle_functions(file: SourceFile) -> Iterator[Violation]:
    """Yield the functions that are named by no verb."""
    for binding in syntax.participle_functions(file.tree):
        yield Violation(file.path, binding.line, f"the function {binding.name!r} is no verb")


def wide_lines(file: SourceFile) -> Iterator[Violation]:
    """Yield the lines that are wider than `LINE_COLUMNS`."""
    for number, line in enumerate(file.text.splitlines(), 1):
        if len(line) > LINE_COLUMNS:
            yield Violation(file.path, number, f"{len(line)} columns, more than {LINE_COLUMNS}")


def dense_statements(file: SourceFile) -> Iterator[Violation]:
    """Yield the statements that do more than `STATEMENT_OPERATIONS` things."""
    for statement in syntax.statements(file.tree):
        count = syntax.operations(statement)
        if count > STATEMENT_OPERATIONS:
            message = f"{count} operations in a statement, more than {STATEMENT_OPERATIONS}"
            yield Violation(file.path, statement.lineno, message)


def deep_comprehensions(file: SourceFile) -> Iterator[Violation]:
    """Yield the comprehensions that stand deeper than `COMPREHENSION_DEPTH` in one another."""
    for statement in syntax.statements(file.tree):
        depth = syntax.statement_depth(statement)
        if depth > COMPREHENSION_DEPTH:
            yield Violation(file.path, statement.lineno, f"comprehensions nested {depth} deep")


def long_bodies(file: SourceFile) -> Iterator[Violation]:
    """Yield the functions whose body is longer than `BODY_LINES`."""
    for function in syntax.functions(file.tree):
        length = syntax.body_lines(function, file.code)
        if length > BODY_LINES:
            yield Violation(file.path, function.lineno, f"{function.name}: {length} lines of code")


def long_modules(file: SourceFile) -> Iterator[Violation]:
    """Yield the file itself if it has more than `MODULE_LINES` lines of code."""
    if len(file.code) > MODULE_LINES:
        message = f"{len(file.code)} lines of code, more than {MODULE_LINES}"
        yield Violation(file.path, max(file.code), message)


def long_summaries(file: SourceFile) -> Iterator[Violation]:
    """Yield the docstrings whose first sentence is longer than `SUMMARY_WORDS` words."""
    for binding in syntax.long_summaries(file.tree, SUMMARY_WORDS):
        message = f"the docstring of {binding.name} opens with more than {SUMMARY_WORDS} words"
        yield Violation(file.path, binding.line, message)


def missing_docstrings(file: SourceFile) -> Iterator[Violation]:
    """Yield what is public and has no docstring."""
    for binding in syntax.list_undocumented(file.tree):
        yield Violation(file.path, binding.line, f"{binding.name} has no docstring")


def missing_annotations(file: SourceFile) -> Iterator[Violation]:
    """Yield the functions that do not say what they return."""
    for binding in syntax.list_unannotated(file.tree):
        yield Violation(file.path, binding.line, f"{binding.name} does not say what it returns")


Rule = Callable[[SourceFile], Iterator[Violation]]

RULES: tuple[Rule, ...] = (
    participle_functions,
    wide_lines,
    dense_statements,
    deep_comprehensions,
    long_bodies,
    long_summaries,
)
"""The rules that no file of any folder may break."""

PRODUCT_RULES: tuple[Rule, ...] = (long_modules, missing_annotations)
"""Rules for all folders but the tests: a test module may be as long as its subject."""

PACKAGE_RULES: tuple[Rule, ...] = (missing_docstrings,)
"""Rules for the installed package alone."""


def rules_of(folder: str) -> tuple[Rule, ...]:
    """Return all rules that the files of a top folder are held to."""
    product_rules = () if folder == "tests" else PRODUCT_RULES
    package_rules = PACKAGE_RULES if folder == "hybrid_search" else ()
    return (*RULES, *product_rules, *package_rules)


def count_violations(files: list[SourceFile], rule: Rule) -> int:
    """Count what breaks `rule` in `files`."""
    return sum(1 for file in files for _ in rule(file))


def is_small(file: SourceFile) -> bool:
    """Return whether a module has fewer than `SMALL_MODULE_LINES` lines."""
    return file.path.name != "__init__.py" and file.text.count("\n") < SMALL_MODULE_LINES


def count_folder(folder: Path) -> Counts:
    """Count all that `Counts` lists in the Python files below `folder`."""
    files = read_folder(folder)
    bodies = [
        syntax.body_lines(function, file.code)
        for file in files
        for function in syntax.functions(file.tree)
    ]
    bindings = [binding for file in files for binding in syntax.bindings(file.tree)]
    classes = [node for file in files for node in syntax.classes(file.tree)]
    sizes: dict[str, Any] = {
        "small_modules": sum(map(is_small, files)),
        "lines": sum(file.text.count("\n") for file in files),
        "code_lines": sum(len(file.code) for file in files),
        "classes": len(classes),
        "protocols": sum(map(syntax.is_protocol, classes)),
        "median_body": median(bodies or [0]),
        "ninth_decile_body": quantiles(bodies or [0, 0], n=10)[-1],
        "longest_body": max(bodies, default=0),
        "longest_module": max((len(file.code) for file in files), default=0),
    }
    violations = {
        "fillers": count_violations(files, filler_names),
        "participles": count_violations(files, participle_functions),
        "wide_lines": count_violations(files, wide_lines),
        "dense_statements": count_violations(files, dense_statements),
        "deep_comprehensions": count_violations(files, deep_comprehensions),
        "long_summaries": count_violations(files, long_summaries),
    }
    return Counts(files=len(files), bindings=len(bindings), **sizes, **violations)
