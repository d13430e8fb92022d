"""``python -m hybrid_search.ingest``: the command ``hybrid-search ingest`` as a program."""

from hybrid_search.cli.app import SingleCommand
from hybrid_search.cli.commands import build_command

if __name__ == "__main__":  # guarded: the reference in docs/api.md imports every module
    build_command("ingest", SingleCommand)(prog_name="python -m hybrid_search.ingest")
