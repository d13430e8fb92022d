"""Options that several commands have, and what happens to errors: one line on standard error, exit
status 2.
"""

from __future__ import annotations

import json
import logging
import os
import sys
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Annotated, Any

import typer
from rich.console import Console

from hybrid_search.errors import HybridSearchError, UsageError
from hybrid_search.observability import logs

Index = Annotated[str, typer.Option(help="Name of the index.")]
Url = Annotated[
    str | None,
    typer.Option(
        help="Where indexes live: embedded:PATH, opensearch+https://HOST, elasticsearch+https://HOST. "
        "Default: HYBRID_SEARCH_URL, else the user's data folder."
    ),
]
Model = Annotated[
    Path | None,
    typer.Option(help="Model folder. Default: HYBRID_SEARCH_MODEL, else the shipped model."),
]
Device = Annotated[
    str | None,
    typer.Option(help="auto, cpu, cuda or tensorrt. Default: HYBRID_SEARCH_DEVICE, else auto."),
]
Precision = Annotated[
    str | None,
    typer.Option(
        help="auto, int8, float16 or float32. Default: HYBRID_SEARCH_PRECISION, else auto: int8 on CPUs, float16 elsewhere."
    ),
]
Dimension = Annotated[
    int | None,
    typer.Option(
        help="Numbers of a vector in a new index. Default: HYBRID_SEARCH_DIMENSION, else the model's usual size.",
        min=1,
    ),
]
Context = Annotated[
    str | None,
    typer.Option(help="A text that holds the phrase, to say in which sense it is meant."),
]
Json = Annotated[bool, typer.Option("--json", help="Print JSON for programs.")]

EXIT_FAILED = 2


@contextmanager
def report_errors(
    log_format: logs.Format = logs.Format.text, log_level: logs.Level | None = None
) -> Iterator[None]:
    """Our errors as one line each; warnings of the library as lines of their own, or all of it as
    JSON.
    """
    logging.getLogger("hybrid_search.encoder").setLevel(
        logging.INFO
    )  # the first use of a model takes some seconds more: say why
    with logs.configure_logging(log_format, log_level):
        try:
            yield
            sys.stdout.flush()
        except HybridSearchError as error:
            logs.log_or_print(str(error), logging.ERROR)
            raise typer.Exit(EXIT_FAILED) from error
        except BrokenPipeError:
            os.dup2(
                os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno()
            )  # our reader has gone; the interpreter would complain at its end
            raise typer.Exit(0) from None


class Output(Console):
    """Standard output, for people."""

    def __init__(self) -> None:
        super().__init__(highlight=False)

    def on_broken_pipe(self) -> None:
        """Leave it to `told`: rich would end the program with status 1, which says that documents
        were refused.
        """
        raise BrokenPipeError


def parse_conditions(pairs: list[str] | None) -> Mapping[str, Any] | None:
    """``KEY=VALUE`` pairs as `where`; a key that is given twice may have either value."""
    where: dict[str, list[str]] = {}
    for pair in pairs or []:
        key, equals, value = pair.partition("=")
        if not equals or not key:
            raise UsageError(f"--where takes KEY=VALUE, and {pair!r} is none")
        where.setdefault(key, []).append(value)
    return where or None


def print_json(value: Any) -> None:
    """One line of JSON on standard output."""
    print(json.dumps(value, ensure_ascii=False))
