"""Count the lines of code that a user of a library writes."""

from __future__ import annotations

import ast
import io
import tokenize

NO_CODE = (
    tokenize.COMMENT,
    tokenize.NL,
    tokenize.NEWLINE,
    tokenize.INDENT,
    tokenize.DEDENT,
    tokenize.ENDMARKER,
)
OWN_IMPORTS = ("__future__", "benchmarks.peers.types")
"""Imports that the benchmark needs, and a user does not."""


def count_lines(source: str) -> int:
    """Return the lines of `source` that have code.

    Neither blank lines, comments and docstrings count, nor the imports of the benchmark itself. A
    statement over several lines counts as so many; all programs are formatted alike.
    """
    tree = ast.parse(source)
    ignored = {line for node in ast.walk(tree) if _is_ignored(node) for line in _list_lines(node)}
    tokens = tokenize.generate_tokens(io.StringIO(source).readline)
    lines = {
        line
        for token in tokens
        if token.type not in NO_CODE
        for line in range(token.start[0], token.end[0] + 1)
    }
    return len(lines - ignored)


def _is_ignored(node: ast.AST) -> bool:
    """Tell whether a node is a string that stands by itself, or an import of the benchmark's."""
    if isinstance(node, ast.Expr):
        return isinstance(node.value, ast.Constant) and isinstance(node.value.value, str)
    return isinstance(node, ast.ImportFrom) and node.module in OWN_IMPORTS


def _list_lines(node: ast.AST) -> range:
    assert isinstance(node, ast.Expr | ast.ImportFrom)
    return range(node.lineno, (node.end_lineno or node.lineno) + 1)
