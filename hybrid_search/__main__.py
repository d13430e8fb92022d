"""``python -m hybrid_search`` is ``hybrid-search``."""

from hybrid_search.cli.app import app

app(prog_name="hybrid-search")
