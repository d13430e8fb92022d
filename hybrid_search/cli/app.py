"""All commands in one program."""

from __future__ import annotations

import typer

from hybrid_search.cli.doctor import doctor
from hybrid_search.cli.index_admin import delete, reindex, setup
from hybrid_search.cli.ingest import ingest
from hybrid_search.cli.plan import plan
from hybrid_search.cli.query import best_spans, query
from hybrid_search.cli.verify import verify

app = typer.Typer(
    help="Span-level hybrid search.",
    no_args_is_help=True,
    add_completion=False,
    pretty_exceptions_enable=False,
)
app.command()(ingest)
app.command()(query)
app.command("best-spans")(best_spans)
app.command()(setup)
app.command()(reindex)
app.command()(delete)
app.command()(verify)
app.command()(doctor)
app.command()(plan)
