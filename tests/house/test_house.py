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
    file = SourceFile.parse(Path("example.py"), source)
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


DOCUMENTED = '''
"""A module."""

LIMIT = 4
"""Why it is 4."""


def one():
    """Said.

    At length.
    """

    def two():
        # a comment
        return """a text
of two lines"""

    return two


class _A:
    """A class."""

    def three(self): ...
'''


def test_docstrings_comments_and_empty_lines_are_no_code() -> None:
    tree = ast.parse(DOCUMENTED)
    code = syntax.code_lines(DOCUMENTED, tree)
    lengths = {node.name: syntax.body_lines(node, code) for node in syntax.functions(tree)}
    assert lengths == {"one": 4, "two": 2, "three": 1}
    first_words = [DOCUMENTED.splitlines()[line - 1].split()[0] for line in sorted(code)]
    assert first_words == ["LIMIT", "def", "def", "return", "of", "return", "class", "def"]


@pytest.mark.parametrize(
    ("rule", "head", "limit"),
    [(report.long_modules, "", 400), (report.long_bodies, "def run():\n", 60)],
    ids=["module", "body"],
)
def test_only_lines_of_code_are_limited(rule: Rule, head: str, limit: int) -> None:
    indent = " " * (4 * bool(head))
    comments = f"{indent}# why\n\n" * limit
    enough = head + f"{indent}print()\n" * limit + comments
    assert find_violations(rule, enough) == []
    assert len(find_violations(rule, enough + f"{indent}print()\n")) == 1


def test_protocols_are_counted_among_the_classes() -> None:
    source = "class A(Protocol): ...\nclass B(Protocol[T]): ...\nclass C:\n    class D(A): ...\n"
    classes = list(syntax.classes(ast.parse(source)))
    assert [node.name for node in classes if syntax.is_protocol(node)] == ["A", "B"]
    assert len(classes) == 4


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
