"""The command line: ``hybrid-search``, ``python -m hybrid_search`` and, for its ``ingest``,
``python -m hybrid_search.ingest``.
"""
