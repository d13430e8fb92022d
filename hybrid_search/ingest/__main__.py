"""``python -m hybrid_search.ingest`` is ``hybrid-search ingest``."""

from hybrid_search.cli.app import ingest_app

ingest_app(prog_name="python -m hybrid_search.ingest")
