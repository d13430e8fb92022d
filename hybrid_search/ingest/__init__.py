"""From JSON lines to an index. ``python -m hybrid_search.ingest --index calls`` is the command."""
