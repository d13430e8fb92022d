"""``python -m hybrid_search.ingest``: the command ``hybrid-search ingest`` by itself."""

from hybrid_search.cli.app import ingest_app

if __name__ == "__main__":  # the reference in docs/api.md imports every module
    ingest_app(prog_name="python -m hybrid_search.ingest")
