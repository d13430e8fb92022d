"""Names that an index may have: those that OpenSearch and Elasticsearch take, so that an index can
move to a server under its own name.
"""

from __future__ import annotations

from hybrid_search.errors import UsageError

_FORBIDDEN = set('\\/*?"<>|,#: ')
MAX_BYTES = 200
"""Servers take 255; versioned names (``calls-000001``) and file endings need room."""


def check_index_name(index: str) -> str:
    """`index`, if it is a name. Raises UsageError saying what is wrong with it."""
    forbidden = sorted(_FORBIDDEN & set(index))
    if not index or index in (".", "..") or index[0] in "-_+.":
        raise UsageError(f"index name {index!r} must begin with a lower-case letter or a digit")
    if forbidden or index != index.lower() or not index.isprintable():
        problem = (
            f"without {''.join(forbidden)!r}"
            if forbidden
            else "without capitals and control characters"
        )
        raise UsageError(f"index name {index!r} must be in lower case, {problem}")
    if len(index.encode()) > MAX_BYTES:
        raise UsageError(
            f"index name {index[:20]!r}... has {len(index.encode())} bytes, {MAX_BYTES} are allowed"
        )
    return index
