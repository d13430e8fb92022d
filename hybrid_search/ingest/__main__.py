"""``python -m hybrid_search.ingest``: the ``ingest`` of ``hybrid-search``."""

import typer

from hybrid_search.cli.ingest import ingest

program = typer.Typer(add_completion=False, pretty_exceptions_enable=False)
program.command()(ingest)
if __name__ == "__main__":  # the reference in docs/api.md imports every module
    program(prog_name="python -m hybrid_search.ingest")
