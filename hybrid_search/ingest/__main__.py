"""``python -m hybrid_search.ingest``: the command ``hybrid-search ingest`` by itself."""

from hybrid_search.cli.ingest_program import app

if __name__ == "__main__":  # the reference in docs/api.md imports every module
    app(prog_name="python -m hybrid_search.ingest")
