"""The result of one check, also of a check that fails."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from typing import Literal

from hybrid_search.errors import AccessError, HybridSearchError

State = Literal["ok", "warning", "problem"]


@dataclass(frozen=True, slots=True)
class Check:
    """A finding, how bad it is (a `problem` stops a run), and one line that says what to do."""

    name: str
    state: State
    found: str
    remedy: str = ""


def ok(name: str, finding: str) -> Check:
    """Return a check that passed."""
    return Check(name, "ok", finding)


def warning(name: str, finding: str, remedy: str) -> Check:
    """Return a check that passed, with something that the user should know."""
    return Check(name, "warning", finding, remedy)


def problem(name: str, finding: str, remedy: str) -> Check:
    """Return a check that failed: a run would not work."""
    return Check(name, "problem", finding, remedy)


def attempt(name: str, run_checks: Callable[[], Iterable[Check]]) -> Iterator[Check]:
    """Yield the results of `run_checks`; an error becomes a result and stops no other check."""
    try:
        yield from run_checks()
    except AccessError as error:
        remedy = "leave it, if this login is restricted on purpose: see the check of privileges"
        yield warning(name, f"this login may not see it: {error}", remedy)
    except HybridSearchError as error:
        yield problem(name, str(error), "do as the message says, then run doctor again")
    except Exception as error:  # it must not hide the results of the others
        remedy = "the check itself failed: look into what the message names"
        yield problem(name, f"{type(error).__name__}: {error}", remedy)
