"""The program: all commands, ``--version``, and one-line usage errors."""

from __future__ import annotations

import atexit
import gc
import logging
import sys
from collections.abc import Callable, Sequence
from functools import cache, partial
from typing import Annotated, Any

import typer
from typer.core import TyperGroup

from hybrid_search import config
from hybrid_search.cli import streams, usage_errors
from hybrid_search.cli.command import Command, describe_options
from hybrid_search.cli.commands import COMMANDS, Commands
from hybrid_search.cli.options import EXIT_FAILED
from hybrid_search.observability import logs

USAGE_ERROR: Any = typer.BadParameter.__base__
"""The base class of all usage errors.

typer exports only its subclasses: older versions take the class from click, newer ones from a copy.
"""

EXIT_INTERRUPTED = 130
"""Exit status of a program that Ctrl-C ended, as shells report it: 128 and SIGINT's number."""


class _OneLineErrors:
    """A mix-in for commands that reports usage errors in one line, with status 2.

    typer would print a usage line and a box around the message.
    """

    def main(self, args: Sequence[str] | None = None, *names: Any, **options: Any) -> Any:
        """Run the program and exit with its status."""
        _save_processor_time()
        parent: Any = super()
        arguments = list(sys.argv[1:] if args is None else args)
        if not options.pop("standalone_mode", True):
            return parent.main(arguments, *names, standalone_mode=False, **options)
        run = partial(parent.main, arguments, *names, standalone_mode=False, **options)
        with streams.guard_messages():
            sys.exit(_get_status(run, arguments))


GARBAGE_OBJECTS = 100_000
"""Number of new objects that triggers garbage collection, instead of 700.

A query creates fewer. Collections during its imports took 25 ms of its 540 and freed nothing.
"""


@cache
def _save_processor_time() -> None:
    """Switch off garbage collection that does not help a command.

    At exit Python collects garbage among all loaded objects, several times. That took 45 ms of a
    query's 600, to free memory that the system frees anyway; files and stores are closed by then.
    Frozen objects are skipped.
    """
    config.save_processor_time()
    gc.set_threshold(GARBAGE_OBJECTS)
    atexit.register(gc.freeze)


def _get_status(run: Callable[[], Any], arguments: Sequence[str]) -> int:
    """Run the program, report its error, and return its exit status."""
    try:
        with streams.guard_output():
            status = run()
    except USAGE_ERROR as error:
        _report(usage_errors.describe(error, arguments), arguments)
        return EXIT_FAILED
    except typer.Abort:
        return EXIT_INTERRUPTED
    except streams.OutputError as error:
        if error.is_closed:
            return streams.EXIT_READER_LEFT
        _report(str(error), arguments)
        return EXIT_FAILED
    return status if isinstance(status, int) else 0


class _Program(_OneLineErrors, TyperGroup):
    """The program with all commands."""

    def __init__(self, **options: Any) -> None:
        super().__init__(**options)
        self.commands: Any = Commands()

    def format_help(self, ctx: Any, formatter: Any) -> None:
        """Write the help, with the commands in panels."""
        describe_options(self, ctx)
        super().format_help(ctx, formatter)

    def resolve_command(self, ctx: Any, args: list[str]) -> Any:
        """Return the command that the first argument names; fail if it does not exist."""
        if args[0] not in COMMANDS and not ctx.resilient_parsing:
            ctx.fail(f"no such command {args[0]}{usage_errors.suggest(args[0], COMMANDS)}")
        return super().resolve_command(ctx, args)


class SingleCommand(_OneLineErrors, Command):
    """A command that is a program of its own."""


def _report(message: str, arguments: Sequence[str]) -> None:
    """Write an error as text, or as JSON if the command line asks for logs in JSON."""
    is_json = "--log-format json" in " ".join(arguments).replace("=", " ")
    log_format = logs.Format.json if is_json else logs.Format.text
    with logs.configure_logging(log_format):
        logs.log_or_print(message, logging.ERROR)


def _print_version(requested: bool) -> None:
    if requested:
        # imported late: doctor must start even if another distribution replaced the root module
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
