"""The program: all commands, its version, and one line for each error in a command line."""

from __future__ import annotations

import atexit
import gc
import logging
import re
import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from difflib import get_close_matches
from functools import cache, partial
from itertools import pairwise
from pkgutil import resolve_name
from typing import Annotated, Any

import typer
from typer.core import TyperCommand, TyperGroup

from hybrid_search import config
from hybrid_search.cli import streams
from hybrid_search.cli.options import EXIT_FAILED
from hybrid_search.observability import logs

USAGE_ERROR: Any = typer.BadParameter.__base__
"""The base class of all errors in a command line.

typer itself exports only subclasses: older ones take the class from click, newer ones from a copy.
"""

EXIT_INTERRUPTED = 130
"""Exit status of a program that Ctrl-C ended, as shells report it: 128 and SIGINT's number."""


class _OneLineErrors:
    """Mix-in for commands: a wrong command line is one line on standard error, with status 2.

    typer would print a usage line and a box around the message.
    """

    def main(self, args: Sequence[str] | None = None, *names: Any, **options: Any) -> Any:
        """Run the program, and end the process with its exit status."""
        _save_processor_time()
        parent: Any = super()
        arguments = list(sys.argv[1:] if args is None else args)
        if not options.pop("standalone_mode", True):
            return parent.main(arguments, *names, standalone_mode=False, **options)
        run = partial(parent.main, arguments, *names, standalone_mode=False, **options)
        with streams.guard_messages():
            sys.exit(_get_status(run, arguments))


GARBAGE_OBJECTS = 100_000
"""New objects after which Python looks for cycles to free, in place of 700.

A query makes fewer: looking for cycles among what it imports took 25 ms of its 540, in vain.
"""


@cache
def _save_processor_time() -> None:
    """Switch off work of this process that serves no command.

    When a process ends, Python looks for cycles in all that is loaded, several times. That took
    45 ms of a query's 600, to free what the system frees anyway: by then files and stores are
    closed. What is frozen is not looked at.
    """
    config.stop_idle_spinning()
    config.leave_out_plugins()
    gc.set_threshold(GARBAGE_OBJECTS)
    atexit.register(gc.freeze)


def _get_status(run: Callable[[], Any], arguments: Sequence[str]) -> int:
    """Run the program, report its error, and return its exit status."""
    try:
        with streams.guard_output():
            status = run()
    except USAGE_ERROR as error:
        _report(_describe(error, arguments), arguments)
        return EXIT_FAILED
    except typer.Abort:
        return EXIT_INTERRUPTED
    except streams.OutputError as error:
        if error.is_closed:
            return streams.EXIT_READER_LEFT
        _report(str(error), arguments)
        return EXIT_FAILED
    return status if isinstance(status, int) else 0


SIMILARITY = 0.72
"""From here on a word is taken for another one misspelled: --alfa is --alpha (0.77), and "indexes"
is not "reindex" (0.71). From 0 to 1, as `difflib` measures it.
"""


COMMANDS: Mapping[str, str] = {
    "ingest": "ingest:ingest",
    "query": "query:query",
    "best-spans": "query:best_spans",
    "serve": "serve:serve",
    "mcp": "mcp:mcp",
    "mine": "mine:mine",
    "similar": "grouping:similar",
    "cluster": "grouping:cluster",
    "discover": "grouping:discover",
    "topics": "topics:topics",
    "judge": "judge:judge",
    "tune": "tune:tune",
    "setup": "index_admin:setup",
    "reindex": "index_admin:reindex",
    "delete": "index_admin:delete",
    "verify": "verify:verify",
    "doctor": "doctor:doctor",
    "plan": "plan:plan",
}
"""Module and function of each command, in the order in which the help lists them."""


class _Commands(Mapping[str, Any]):
    """The commands by name, each imported and built when it is asked for.

    All of them took a query 35 ms of its first half second, and it needs one.
    """

    def __getitem__(self, name: str) -> Any:
        return _build_command(name)

    def __iter__(self) -> Iterator[str]:
        return iter(COMMANDS)

    def __len__(self) -> int:
        return len(COMMANDS)


@cache
def _build_command(name: str) -> Any:
    program = typer.Typer(add_completion=False, pretty_exceptions_enable=False)
    program.command(name)(resolve_name(f"{__package__}.{COMMANDS[name]}"))
    return typer.main.get_command(program)


class _Program(_OneLineErrors, TyperGroup):
    """The program with all commands."""

    def __init__(self, **options: Any) -> None:
        super().__init__(**options)
        self.commands: Any = _Commands()

    def resolve_command(self, ctx: Any, args: list[str]) -> Any:
        """Return the command that the first argument names; fail if it does not exist."""
        if args[0] not in COMMANDS and not ctx.resilient_parsing:
            ctx.fail(f"no such command {args[0]}{_suggest(args[0], list(COMMANDS))}")
        return super().resolve_command(ctx, args)


class SingleCommand(_OneLineErrors, TyperCommand):
    """A command that is a program by itself."""


def _describe(error: Any, arguments: Sequence[str]) -> str:
    """Return an error in the command line as one sentence that ends with where the help is."""
    option = getattr(error, "option_name", "")
    if option and hasattr(error, "possibilities"):
        text = f"no such option {option}{_suggest(option, error.possibilities or [])}"
    elif value := _find_value(error, arguments):
        reason = error.message.removeprefix("Value error, ").rstrip(".")
        text = f"{value}: {reason[:1].lower()}{reason[1:]}"
    else:
        words = " ".join(error.format_message().split()).rstrip(".")
        text = words[:1].lower() + re.sub(r"'(-[\w-]+)'", r"\1", words[1:])
    return f"{text} (see {error.ctx.command_path} --help)" if error.ctx else text


def _find_value(error: Any, arguments: Sequence[str]) -> str:
    """Return the option that an error is about, with its value; "" for any other error."""
    for name in getattr(getattr(error, "param", None), "opts", ()):
        for argument, following in pairwise([*arguments, ""]):
            if argument == name and following:
                return f"{name} is {following!r}"
            if argument.startswith(f"{name}="):
                return f"{name} is {argument.removeprefix(f'{name}=')!r}"
    return ""


def _suggest(word: str, candidates: Sequence[str]) -> str:
    closest = get_close_matches(word, candidates, n=1, cutoff=SIMILARITY)
    return f": did you mean {closest[0]}?" if closest else ""


def _report(message: str, arguments: Sequence[str]) -> None:
    """Write an error as text, or as JSON if the command line asks for logs in JSON."""
    is_json = "--log-format json" in " ".join(arguments).replace("=", " ")
    log_format = logs.Format.json if is_json else logs.Format.text
    with logs.configure_logging(log_format):
        logs.log_or_print(message, logging.ERROR)


def _print_version(requested: bool) -> None:
    if requested:
        # not above: doctor must start even if another distribution replaced the root module
        from hybrid_search import __version__

        typer.echo(f"hybrid-search {__version__}")
        raise typer.Exit


Version = Annotated[
    bool,
    typer.Option(
        "--version", help="Print name and version.", callback=_print_version, is_eager=True
    ),
]


def _start(ctx: typer.Context, version: Version = False) -> None:  # noqa: ARG001
    """Search calls and documents for a phrase by words and by meaning, down to the span."""
    if ctx.invoked_subcommand is None:
        typer.echo(ctx.get_help())
        raise typer.Exit(EXIT_FAILED)


app = typer.Typer(
    name="hybrid-search",
    cls=_Program,
    invoke_without_command=True,
    pretty_exceptions_enable=False,
)
app.callback()(_start)
