"""``python -m hybrid_search.ingest``: the command ``hybrid-search ingest`` as a program."""

from hybrid_search.cli.ingest_program import app

if __name__ == "__main__":  # guarded: the reference in docs/api.md imports every module
    app(prog_name="python -m hybrid_search.ingest")
