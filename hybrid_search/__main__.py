"""Run ``hybrid-search`` as ``python -m hybrid_search``."""

from hybrid_search.cli.app import app

if __name__ == "__main__":  # guarded: the reference in docs/api.md imports every module
    app(prog_name="hybrid-search")
