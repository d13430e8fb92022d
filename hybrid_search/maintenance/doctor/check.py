"""One thing that was looked at."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from typing import Literal

from hybrid_search.errors import AccessError, HybridSearchError

State = Literal["ok", "warning", "problem"]


@dataclass(frozen=True, slots=True)
class Check:
    """What was found, whether a run can do with it (`problem`: it cannot), and one line of what to
    do.
    """

    name: str
    state: State
    found: str
    remedy: str = ""


def ok(name: str, finding: str) -> Check:
    """All is well."""
    return Check(name, "ok", finding)


def warning(name: str, finding: str, remedy: str) -> Check:
    """It works, and somebody should know."""
    return Check(name, "warning", finding, remedy)


def problem(name: str, finding: str, remedy: str) -> Check:
    """It does not work."""
    return Check(name, "problem", finding, remedy)


def attempt(name: str, look: Callable[[], Iterable[Check]]) -> Iterator[Check]:
    """What `look` finds; an error of any kind is a finding, and stops no other check.

    What a login is not shown may be as it should be.
    """
    try:
        yield from look()
    except AccessError as error:
        yield warning(
            name,
            f"it is not shown to this login: {error}",
            "nothing, where that is as it should be: see privileges",
        )
    except HybridSearchError as error:
        yield problem(name, str(error), "do as the message says, and run this again")
    # a check that was not prepared for what it met is no reason to be silent about the rest
    except Exception as error:
        yield problem(
            name,
            f"{type(error).__name__}: {error}",
            "this check itself failed: see to what the message names",
        )
