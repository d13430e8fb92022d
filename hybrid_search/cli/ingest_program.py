"""The program ``python -m hybrid_search.ingest``: the command ``ingest`` alone."""

from __future__ import annotations

import typer

from hybrid_search.cli.app import SingleCommand
from hybrid_search.cli.callback import build_callback
from hybrid_search.cli.commands import list_examples
from hybrid_search.cli.ingest import ingest

app = typer.Typer(add_completion=False, pretty_exceptions_enable=False)
app.command(cls=SingleCommand, epilog=list_examples("ingest"))(build_callback(ingest))
