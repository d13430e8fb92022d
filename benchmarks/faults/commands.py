"""The product as its users run it: commands in this process, with all that they print."""

from __future__ import annotations

import json
import logging
import traceback
from collections.abc import Iterator
from contextlib import contextmanager, redirect_stderr, redirect_stdout
from dataclasses import dataclass
from functools import cache
from io import StringIO
from typing import Any
from unittest.mock import patch

import typer

from hybrid_search import encoder
from hybrid_search.cli.app import app
from tests.helpers import tiny_encoder
from tests.helpers.tiny_encoder import TinyEncoder

PROGRAM: Any = typer.main.get_command(app)

MESSAGES = ("error: ", "WARNING: ", "ERROR: ")
"""How lines on standard error begin that tell of a fault."""

PLAN_WITHOUT_FAULT = {
    "phrase",
    "index",
    "alpha",
    "fusion",
    "legs",
    "window",
    "sort",
    "model",
    "precision",
    "query_precision",
    "candidates",
    "passages",
    "spans_by",
    "probabilities",
    "milliseconds",
}
"""The keys of a sound query's plan; any other key is a warning."""


@dataclass(frozen=True, slots=True)
class CommandReport:
    """A command that has ended: its exit status, both outputs, and the traceback if it crashed."""

    arguments: tuple[str, ...]
    status: int
    output: str
    errors: str
    crash: str

    @property
    def answer(self) -> dict[str, Any] | None:
        """What its JSON says, without the plan; None if it printed none."""
        parsed = self._parse()
        return parsed and {name: value for name, value in parsed.items() if name != "plan"}

    @property
    def messages(self) -> list[str]:
        """The errors, the warnings, those in the plan of a result, and what ``verify`` found."""
        lines = [line for line in self.errors.splitlines() if line.startswith(MESSAGES)]
        parsed = self._parse() or {}
        plan, findings = parsed.get("plan", {}), parsed.get("findings", [])
        warnings = [str(plan[name]) for name in plan if name not in PLAN_WITHOUT_FAULT]
        return [*lines, *warnings, *[f"{row['found']}; {row['remedy']}" for row in findings]]

    @property
    def is_strict_json(self) -> bool:
        """Whether no number of its JSON is one that JSON lacks."""
        return not {"NaN", "Infinity", "-Infinity"} & set(self._bad_constants())

    def _parse(self) -> dict[str, Any] | None:
        lines = self.output.splitlines()
        try:
            parsed = json.loads(lines[-1]) if lines else None
        except ValueError:
            return None
        return parsed if isinstance(parsed, dict) else None

    def _bad_constants(self) -> list[str]:
        constants: list[str] = []
        for line in self.output.splitlines()[-1:]:
            try:
                json.loads(line, parse_constant=constants.append)
            except ValueError:
                continue
        return constants


def run_command(*arguments: str) -> CommandReport:
    """Run the command line in this process, without the cost of typer's own test runner."""
    logging.getLogger().handlers.clear()  # with handlers of others the product logs nothing
    output, errors = StringIO(), StringIO()
    status, crash = 0, ""
    with redirect_stdout(output), redirect_stderr(errors):
        try:
            PROGRAM.main(list(arguments))
        except SystemExit as end:
            status = end.code if isinstance(end.code, int) else 1
        except Exception as error:  # that nothing else gets out is what is tried
            status, crash = 1, _format_crash(error)
    if not crash and "Traceback (most recent call last)" in errors.getvalue():
        crash = errors.getvalue()[-500:]  # of a thread, which ends without a word to its caller
    return CommandReport(arguments, status, output.getvalue(), errors.getvalue(), crash)


def _format_crash(error: BaseException) -> str:
    """Return the exception and the product's own lines that it came through."""
    frames = traceback.extract_tb(error.__traceback__)
    own = [frame for frame in frames if "hybrid_search" in frame.filename]
    places = [f"{frame.filename.rpartition('/')[2]}:{frame.lineno}" for frame in own[-3:]]
    return f"{type(error).__name__}: {error} ({', '.join(places)})"


WORD_VECTOR = cache(tiny_encoder._word_vector)


@contextmanager
def use_tiny_encoder() -> Iterator[None]:
    """Encode by a tiny encoder."""
    with (
        patch.object(tiny_encoder, "_word_vector", WORD_VECTOR),
        patch.object(encoder, "load", lambda *_: TinyEncoder()),
        patch.object(encoder, "truncate_encoder", lambda full, *_: full),
    ):
        yield


def main() -> None:
    """Be the program with the tiny encoder, in a process of its own."""
    with use_tiny_encoder():
        PROGRAM.main()
