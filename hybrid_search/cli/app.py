"""The program: all commands, ``--version``, and one-line usage errors."""

from __future__ import annotations

import atexit
import gc
import logging
import re
import sys
from collections.abc import Callable, Iterable, Sequence
from functools import cache, partial
from itertools import pairwise
from typing import Annotated, Any

import typer
from typer.core import TyperGroup

from hybrid_search import config
from hybrid_search.cli import streams
from hybrid_search.cli.command import Command, describe_options
from hybrid_search.cli.commands import COMMANDS, build_command, list_examples
from hybrid_search.cli.options import EXIT_FAILED
from hybrid_search.errors import put_plainly, show_value
from hybrid_search.observability import logs
from hybrid_search.text.near_names import find_near_name

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


class _Program(_OneLineErrors, TyperGroup):
    """The program with all commands."""

    def list_commands(self, ctx: Any) -> list[str]:  # noqa: ARG002
        """Return the names of all commands."""
        return list(COMMANDS)

    def get_command(self, ctx: Any, cmd_name: str) -> Any:  # noqa: ARG002
        """Return a command, None if there is none of this name."""
        return build_command(cmd_name) if cmd_name in COMMANDS else None

    def format_help(self, ctx: Any, formatter: Any) -> None:
        """Write the help, with the commands in panels."""
        describe_options(self, ctx)
        super().format_help(ctx, formatter)

    def resolve_command(self, ctx: Any, args: list[str]) -> Any:
        """Return the command that the first argument names; fail if it does not exist."""
        if args[0] not in COMMANDS and not ctx.resilient_parsing:
            ctx.fail(f"no such command {args[0]}{_suggest(args[0], COMMANDS)}")
        return super().resolve_command(ctx, args)


class SingleCommand(_OneLineErrors, Command):
    """A command that is a program of its own."""


def _report(message: str, arguments: Sequence[str]) -> None:
    """Write an error as text, or as JSON if the command line asks for logs in JSON."""
    is_json = "--log-format json" in " ".join(arguments).replace("=", " ")
    log_format = logs.Format.json if is_json else logs.Format.text
    with logs.configure_logging(log_format):
        logs.log_or_print(message, logging.ERROR)


def _describe(error: Any, arguments: Sequence[str]) -> str:
    """Return a usage error as one sentence that ends with a pointer to the help."""
    error.message = put_plainly(error.message)
    option = getattr(error, "option_name", "")
    if option and hasattr(error, "possibilities"):
        text = f"no such option {option}{_suggest(option, _list_options(error.ctx))}"
    elif value := _find_value(error, arguments):
        reason = error.message.rstrip(".")
        reason = f"it {reason}" if reason.startswith("must ") else reason
        text = f"{value}: {reason[:1].lower()}{reason[1:]}"
    else:
        words = " ".join(error.format_message().split()).rstrip(".")
        text = words[:1].lower() + re.sub(r"'(-[\w-]+)'", r"\1", words[1:])
        if text.startswith("missing") and error.ctx and error.ctx.command.name in COMMANDS:
            text += f": as in hybrid-search {list_examples(error.ctx.command.name)[0]}"
    if error.ctx:
        return f"{text} (see {error.ctx.command_path} --help)"
    command = arguments[0] if arguments and arguments[0] in COMMANDS else ""
    return f"{text} (see hybrid-search {command} --help)" if command else text


def _suggest(word: str, known_words: Iterable[str]) -> str:
    """Return the end of a message about an unknown word: a suggestion, or nothing."""
    near_word = find_near_name(word, list(known_words))
    return f": did you mean {near_word}?" if near_word else ""


def _list_options(context: Any) -> list[str]:
    """Return the options of the called command."""
    params = context.command.get_params(context) if context else ()
    return [option for param in params for option in param.opts if option.startswith("-")]


def _find_value(error: Any, arguments: Sequence[str]) -> str:
    """Return the option in an error, with its value; "" for other errors."""
    for name in getattr(getattr(error, "param", None), "opts", ()):
        for argument, following in pairwise([*arguments, ""]):
            if argument == name and following:
                return f"{name} is {show_value(following)}"
            if argument.startswith(f"{name}="):
                return f"{name} is {show_value(argument.removeprefix(f'{name}='))}"
    return ""


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
    name="hybrid-search", cls=_Program, invoke_without_command=True, pretty_exceptions_enable=False
)
app.callback()(_start)
