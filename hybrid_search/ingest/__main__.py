"""``python -m hybrid_search.ingest``: the command ``hybrid-search ingest`` by itself."""

import typer

from hybrid_search.cli.ingest import ingest

program = typer.Typer(add_completion=False, pretty_exceptions_enable=False)
program.command()(ingest)
program(prog_name="python -m hybrid_search.ingest")
