"""Failures of files as errors of use, with the reason and what to do."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

from hybrid_search.errors import UsageError


@contextmanager
def explain_failure(failure: str, remedy: str) -> Iterator[None]:
    """Raise an OSError of the block as a UsageError."""
    try:
        yield
    except OSError as error:
        raise UsageError(f"{failure} ({error.strerror}): {remedy}") from error
