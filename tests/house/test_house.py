"""The house rules: names, width, density and size of the code, as `make house` counts them."""

from __future__ import annotations

import ast
from pathlib import Path

import pytest

from tools.house import report, syntax
from tools.house.report import Rule, SourceFile

ROOT = Path(__file__).parents[2]
FOLDERS = [name for name in report.FOLDERS if (ROOT / name).is_dir()]
RULES = [(folder, rule) for folder in FOLDERS for rule in report.rules_of(folder)]
RULE_IDS = [f"{folder}-{rule.__name__}" for folder, rule in RULES]


@pytest.mark.parametrize(("folder", "rule"), RULES, ids=RULE_IDS)
def test_no_file_breaks_a_rule(folder: str, rule: Rule) -> None:
    violations = [
        str(violation) for file in report.read_folder(ROOT / folder) for violation in rule(file)
    ]
    assert not violations, "\n".join(violations)


@pytest.mark.parametrize("folder", FOLDERS)
def test_names_say_what_they_hold_and_most_functions_are_short(folder: str) -> None:
    counts = report.count_folder(ROOT / folder)
    assert counts.filler_percent < report.FILLER_PERCENT
    assert counts.median_body <= report.MEDIAN_BODY_LINES
    assert counts.ninth_decile_body <= report.NINTH_DECILE_BODY_LINES


def test_the_root_of_the_package_has_few_modules() -> None:
    modules = sorted(path.name for path in (ROOT / "hybrid_search").glob("[!_]*.py"))
    assert len(modules) <= report.ROOT_MODULES, modules


# the counters


def count_operations(source: str) -> int:
    (statement,) = ast.parse(source).body
    return syntax.operations(statement)


def find_violations(rule: Rule, source: str) -> list[tuple[int, str]]:
    file = SourceFile(Path("example.py"), source, ast.parse(source))
    return [(violation.line, violation.message) for violation in rule(file)]


def test_every_kind_of_binding_of_a_filler_is_counted() -> None:
    source = """
import json as that
def found(held, *, kept=1): ...
class Which: ...
for each, hit in pairs: ...
with open(path) as _given: ...
try: ...
except OSError as said: ...
self.told = [one for one in hits]
hits = lambda what: what
"""
    names = [binding.name for binding in syntax.filler_names(ast.parse(source))]
    fillers = ["_given", "each", "found", "held", "kept", "one", "said", "that", "told", "what"]
    assert sorted(names) == fillers


def test_a_function_named_by_a_participle_is_counted_and_a_property_is_not() -> None:
    source = """
def listed(): ...
def _of(): ...
def written(): ...
def list_indexes(): ...
def feed(): ...
def listed_hits(): ...
class Index:
    @property
    def loaded(self): ...
    @pytest.fixture
    def filled(self): ...
    async def sorted_(self): ...
"""
    names = [binding.name for binding in syntax.participle_functions(ast.parse(source))]
    assert names == ["listed", "_of", "written", "sorted_"]


@pytest.mark.parametrize(
    ("source", "operations"),
    [
        ("x = a.b.c", 0),
        ("x = f(a)[0] + 1", 3),
        ("x = a if b < c else not d", 2),
        ("x: dict[str, list[int]] = f()", 1),
        ("x = [f(a), g(h(b)), c]", 2),
        ("if f(a):\n    g(h(b))", 1),
        ("x = f(g(h(i(j(k(m(n(a))))))))", 8),
        ("x = f(g(h(i(j(k(m(n(o(a)))))))))", 9),
    ],
)
def test_the_operations_of_a_statement_are_counted(source: str, operations: int) -> None:
    assert count_operations(source) == operations
    too_dense = operations > report.STATEMENT_OPERATIONS
    assert bool(find_violations(report.dense_statements, source)) is too_dense


def test_comprehensions_inside_one_another_are_counted() -> None:
    two = "x = [[b for b in a] for a in rows]"
    three = "x = [[[c for c in b] for b in a] for a in rows]"
    side_by_side = "x = f([a for a in b], [c for c in d], {e for e in f})"
    assert find_violations(report.deep_comprehensions, two) == []
    assert find_violations(report.deep_comprehensions, side_by_side) == []
    message = "comprehensions nested 3 deep"
    assert find_violations(report.deep_comprehensions, three) == [(1, message)]


def test_a_body_is_counted_from_its_first_statement_without_its_docstring() -> None:
    source = """
def one():
    \"\"\"Said.\"\"\"
    def two():
        return 1

    return two
class _A:
    def three(self): ...
"""
    lengths = {node.name: syntax.body_lines(node) for node in syntax.functions(ast.parse(source))}
    assert lengths == {"one": 4, "two": 1, "three": 1}


def test_only_what_callers_may_know_needs_a_docstring() -> None:
    source = """
def public():
    def inner(): ...
class Public:
    def method(self): ...
    def _helper(self): ...
class _Private:
    def method(self): ...
"""
    missing = [binding.name for binding in syntax.list_undocumented(ast.parse(source))]
    assert missing == ["module", "public", "Public", "method"]


def test_lines_and_first_sentences_have_a_length() -> None:
    summary = " ".join(["word"] * 20)
    source = f'"""{summary}. And more."""\n'
    assert find_violations(report.long_summaries, source) == []
    assert len(find_violations(report.long_summaries, source.replace("word.", "a word."))) == 1
    line = "x" * 100
    assert find_violations(report.wide_lines, f"{line}\n{line}x\n") == [
        (2, "101 columns, more than 100")
    ]
