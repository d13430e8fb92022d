"""Shared options, and error reports: one line on standard error, exit status 2."""

# The annotations of a table are read at run time, so they are not postponed here.
import json
import logging
import re
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, NoReturn, TypedDict

import typer

from hybrid_search.config import Dimension, ModelOptions, Url, settings
from hybrid_search.errors import HybridSearchError, UsageError
from hybrid_search.observability import logs
from hybrid_search.observability.escapes import escape_json, escape_lines
from hybrid_search.parameters import Parameter
from hybrid_search.search.query import PARAMETERS
from hybrid_search.text.filters import RANGES

if TYPE_CHECKING:
    from rich.console import Console

    from hybrid_search.client import Client

EXIT_NOT_FOUND, EXIT_FAILED = 1, 2

_COMPARISONS = {sign: name for name, sign in RANGES.items()}
_CONDITION = re.compile(r"(.+?)(!=|>=|<=|=|>|<)(.*)", re.DOTALL)


def make_option(parameter: Parameter) -> Any:
    """Return the option of a parameter of a table."""
    is_named = parameter.option or parameter.kind is bool  # typer would add a --no-... to a switch
    facts = "; may be repeated" if parameter.has_several else ""
    if parameter.panel and parameter.limits:
        facts = f", {parameter.describe_limits()}"
    return typer.Option(
        *([parameter.option_name] if is_named else []),
        help=f"{parameter.words.removesuffix('.')}{facts}.",
        metavar=parameter.value,
        rich_help_panel=parameter.panel or None,
    )


class Store(TypedDict, total=False):
    """Where indexes are."""

    url: Url


class Place(Store, ModelOptions, total=False):
    """Where indexes are, and the model that reads them."""


class NewPlace(Place, total=False):
    """Where an index is made, and the model that it is made with."""

    dimension: Dimension


class LogOptions(TypedDict, total=False):
    """How a command logs."""

    log_format: Annotated[
        logs.Format,
        Parameter(
            "Standard error as text for people, or a JSON object a line.",
            default=logs.Format.text,
            panel="Watching",
        ),
    ]
    log_level: Annotated[
        logs.Level | None,
        Parameter(
            "The least that is logged. Default: warning; info with --log-format json.",
            panel="Watching",
        ),
    ]


Index = Annotated[str, make_option(PARAMETERS["index"])]
Where = Annotated[
    list[str] | None,
    typer.Option(
        help="KEY=VALUE that the metadata must have, also KEY!=VALUE, KEY>=VALUE, KEY<VALUE and so "
        "on, in quotes; may be repeated.",
        metavar="KEY=VALUE",
    ),
]
Rejects = Annotated[
    Path | None, typer.Option(help="File for refused documents. Default: INDEX.rejected.jsonl")
]
Json = Annotated[bool, typer.Option("--json", help="Print JSON for programs.")]


@contextmanager
def report_errors(
    log_format: logs.Format | None = None, log_level: logs.Level | None = None
) -> Iterator[None]:
    """Report our errors in one line with exit status 2, and log as lines or JSON.

    Raises:
        Exit: If an error was reported.
    """
    with logs.configure_logging(log_format or logs.Format.text, log_level):
        try:
            yield
        except HybridSearchError as error:
            logs.log_or_print(str(error), logging.ERROR)
            raise typer.Exit(EXIT_FAILED) from error


def exit_with(status: int) -> NoReturn:
    """End the command with an exit status."""
    raise typer.Exit(status)


def open_output() -> "Console":
    """Return a console on standard output."""
    from rich.console import Console

    # ids and texts may look like markup
    return Console(highlight=False, markup=False, emoji=False)


def parse_conditions(expressions: list[str] | None) -> Mapping[str, Any] | None:
    """Return the `where` of conditions such as ``KEY=VALUE`` or ``KEY>=VALUE``.

    If a key is repeated, ``=`` allows any of the values, and ``!=`` none of them.

    Raises:
        UsageError: If an expression is not of this form, or two are contradictory.
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


def parse_object(name: str, text: str) -> dict[str, Any]:
    """Return the object of JSON that an option of this name has.

    Raises:
        UsageError: If it is none.
    """
    try:
        value = json.loads(text)
    except (ValueError, RecursionError):
        value = None
    if not isinstance(value, dict):
        raise UsageError(f"{name} takes an object of JSON in quotes, and {text[:80]!r} is none")
    return value


def check_lasting(url: str | None) -> None:
    """Raise UsageError for an index that would be lost at the end of the command."""
    if settings(url).url.partition(":")[0] == "memory":
        raise UsageError(
            "an index in memory is gone when the command ends, so nothing was done: "
            "give a folder, as in --url embedded:FOLDER"
        )


def explain_nothing(client: "Client", index: str, *narrowing: str) -> None:
    """Explain on standard error why nothing was found: an empty index, or `narrowing` options."""
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
