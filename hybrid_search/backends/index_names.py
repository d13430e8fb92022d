"""The names that an index may have: those that servers accept, so that it can move to one."""

from __future__ import annotations

from hybrid_search.errors import UsageError, show_value

_FORBIDDEN = set('\\/*?"<>|,#: ')
MAX_BYTES = 200
"""Servers accept 255; the rest is for version numbers (``calls-000001``) and file suffixes."""


def check_index_name(index: str) -> str:
    """Return `index` if it is a valid index name, else raise UsageError, which says why."""
    forbidden = sorted(_FORBIDDEN & set(index))
    if not index or index in (".", "..") or index[0] in "-_+.":
        raise UsageError(
            f"index name {show_value(index)} must begin with a lower-case letter or a digit"
        )
    if forbidden or not index.isprintable():
        excluded = repr("".join(forbidden)) if forbidden else "control characters"
        raise UsageError(f"index name {show_value(index)} must be without {excluded}")
    if index != index.lower():
        raise UsageError(
            f"index name {show_value(index)} must be in lower case: {show_value(index.lower())}"
        )
    if len(index.encode()) > MAX_BYTES:
        raise UsageError(
            f"index name {index[:20]!r}... has {len(index.encode())} bytes, "
            f"at most {MAX_BYTES} are allowed"
        )
    return index
