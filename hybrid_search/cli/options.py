"""Shared options, and error reports: one line on standard error, exit status 2."""

from __future__ import annotations

import json
import logging
import re
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from typing import TYPE_CHECKING, Annotated, Any, NoReturn

import typer

from hybrid_search.config import settings
from hybrid_search.errors import HybridSearchError, UsageError
from hybrid_search.observability import logs
from hybrid_search.observability.escapes import escape_json, escape_lines
from hybrid_search.text.filters import RANGES

if TYPE_CHECKING:
    from rich.console import Console

    from hybrid_search.client import Client

Index = Annotated[str, typer.Option(help="Name of the index.")]
Url = Annotated[
    str | None,
    typer.Option(
        help="Where indexes are: embedded:PATH, tantivy:PATH, opensearch+https://HOST or "
        "elasticsearch+https://HOST. Default: HYBRID_SEARCH_URL, else the user's data folder."
    ),
]
Model = Annotated[
    str | None,
    typer.Option(
        help="A model folder, or the name of an installed model. Default: HYBRID_SEARCH_MODEL, "
        "else the shipped model."
    ),
]
Device = Annotated[
    str | None,
    typer.Option(help="auto, cpu, cuda or tensorrt. Default: HYBRID_SEARCH_DEVICE, else auto."),
]
Precision = Annotated[
    str | None,
    typer.Option(
        help="auto, int8, float16 or float32. Default: HYBRID_SEARCH_PRECISION, else auto: "
        "int8 on CPUs, float16 elsewhere."
    ),
]
Dimension = Annotated[
    int | None,
    typer.Option(
        help="Dimensions of a vector in a new index. Default: HYBRID_SEARCH_DIMENSION, "
        "else the model's usual size.",
        min=1,
    ),
]
Speaker = Annotated[
    list[str] | None,
    typer.Option(help="Count only what this speaker says; may be repeated."),
]
Not = Annotated[
    list[str] | None,
    typer.Option(
        "--not", metavar="PHRASE", help="Not meant: leave out spans nearer to it; may be repeated."
    ),
]
Context = Annotated[
    str | None,
    typer.Option(help="A text that contains the phrase, to show in which sense it is meant."),
]
Where = Annotated[
    list[str] | None,
    typer.Option(
        help="KEY=VALUE that the metadata must have, also KEY!=VALUE, KEY>=VALUE, KEY<VALUE and so "
        "on, in quotes; may be repeated."
    ),
]
LogFormat = Annotated[logs.Format, typer.Option(help="text, or json: each line a JSON object.")]
LogLevel = Annotated[logs.Level | None, typer.Option(help="Lowest level that is logged.")]
SpansBy = Annotated[
    str,
    typer.Option(help="What spans are chosen by: score (cosine and ends of clauses) or cosine."),
]
Json = Annotated[bool, typer.Option("--json", help="Print JSON for programs.")]

EXIT_FAILED = 2

_COMPARISONS = {sign: name for name, sign in RANGES.items()}
_CONDITION = re.compile(r"(.+?)(!=|>=|<=|=|>|<)(.*)", re.DOTALL)


@contextmanager
def report_errors(
    log_format: logs.Format = logs.Format.text, log_level: logs.Level | None = None
) -> Iterator[None]:
    """Report our errors in one line with exit status 2, and log as lines or JSON.

    Raises:
        Exit: If an error was reported.
    """
    with logs.configure_logging(log_format, log_level):
        try:
            yield
        except HybridSearchError as error:
            logs.log_or_print(str(error), logging.ERROR)
            raise typer.Exit(EXIT_FAILED) from error


def exit_with(status: int) -> NoReturn:
    """End the command with an exit status."""
    raise typer.Exit(status)


def open_output() -> Console:
    """Return a console on standard output."""
    from rich.console import Console

    # ids and texts may look like markup
    return Console(highlight=False, markup=False, emoji=False)


def parse_conditions(expressions: list[str] | None) -> Mapping[str, Any] | None:
    """Return the `where` of conditions such as ``KEY=VALUE`` or ``KEY>=VALUE``.

    If a key is repeated, ``=`` allows any of the values, and ``!=`` none of them.

    Raises:
        UsageError: If an expression is not a key, a comparison and a value, or two are
            contradictory.
    """
    where: dict[str, Any] = {}
    for expression in expressions or []:
        match = _CONDITION.fullmatch(expression)
        if not match:
            raise UsageError(
                f"--where takes KEY=VALUE, also with !=, <, <=, > or >=, and {expression!r} is not "
                "of that form"
            )
        key, sign, value = match.groups()
        criterion = where.setdefault(key, [] if sign == "=" else {})
        if isinstance(criterion, list) != (sign == "="):
            raise UsageError(f"--where has {key}= and another comparison of {key}: give one")
        if sign == "=":
            criterion.append(value)
        elif sign == "!=":
            criterion.setdefault("ne", []).append(value)
        elif _COMPARISONS[sign] in criterion:
            raise UsageError(f"--where has {key}{sign} twice: give it once")
        else:
            criterion[_COMPARISONS[sign]] = value
    return where or None


def check_lasting(url: str | None) -> None:
    """Raise UsageError for an index that would be lost at the end of the command."""
    if settings(url).url.partition(":")[0] == "memory":
        raise UsageError(
            "an index in memory is gone when the command ends, so nothing was done: "
            "give a folder, as in --url embedded:FOLDER"
        )


def explain_nothing(client: Client, index: str, *narrowing: str) -> None:
    """Explain on standard error why nothing was found: an empty index, or narrow options.

    Args:
        client: The client that found nothing.
        index: The index that was searched.
        *narrowing: The options that exclude results, as given.
    """
    from hybrid_search.search.no_hits import describe_empty_index

    if client.describe(index).documents == 0:
        logs.log_or_print(describe_empty_index(index))
    elif narrowing:
        logs.log_or_print(f"nothing is left: try it without {', '.join(narrowing)}")


def print_json(value: Any) -> None:
    """Print a value as one line of JSON on standard output."""
    print(escape_json(format_json(value)))


def format_json(value: Any, indent: int | None = None) -> str:
    """Return a value as strict JSON, without NaN and infinity.

    Raises:
        HybridSearchError: If a number is NaN or infinite.
    """
    try:
        return json.dumps(value, ensure_ascii=False, allow_nan=False, indent=indent)
    except ValueError as error:
        raise HybridSearchError(
            f"the answer cannot be printed as JSON ({error}): "
            "hybrid-search doctor checks the model, hybrid-search verify the index"
        ) from error


def print_lines(text: str, *, err: bool = False) -> None:
    """Print lines, with terminal control characters escaped."""
    typer.echo(escape_lines(text), err=err)
