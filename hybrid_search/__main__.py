"""Run ``hybrid-search`` as ``python -m hybrid_search``."""

from hybrid_search.cli.app import app

app(prog_name="hybrid-search")
