"""Backends by the scheme of their URL. A backend's module is imported when it is first asked for."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

from hybrid_search.backends.base import Backend
from hybrid_search.errors import UsageError

__all__ = ["BACKENDS", "Backend", "open_backend"]


def _embedded(rest: str) -> Backend:
    from hybrid_search.backends.embedded.backend import EmbeddedBackend

    if not rest:
        raise UsageError("embedded: needs a folder, as in embedded:/srv/search")
    return EmbeddedBackend(Path(rest).expanduser())


def _memory(_: str) -> Backend:
    from hybrid_search.backends.memory import MemoryBackend

    return MemoryBackend()


BACKENDS: dict[str, Callable[[str], Backend]] = {"embedded": _embedded, "memory": _memory}


def open_backend(url: str) -> Backend:
    """The backend that `url` names. Raises UsageError for a scheme that there is none for."""
    scheme, _, rest = url.partition(":")
    if scheme not in BACKENDS:
        raise UsageError(f"cannot open {scheme!r} as a place for indexes: use {', '.join(f'{name}:' for name in BACKENDS)} (as in embedded:PATH)")
    return BACKENDS[scheme](rest)
