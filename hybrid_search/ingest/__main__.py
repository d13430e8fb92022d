"""``python -m hybrid_search.ingest``: the command ``hybrid-search ingest`` by itself."""

from hybrid_search.cli.app import ingest_app

ingest_app(prog_name="python -m hybrid_search.ingest")
