"""The formats of files that hold whole conversations, recognised by their first bytes."""

from __future__ import annotations

from hybrid_search.ingest.sources.formats.base import Format

FORMATS: tuple[Format, ...] = ()
"""All formats, in the order in which a file is tried."""
