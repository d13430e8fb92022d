"""`IngestOptions`: how one run ingests, from the command line to the pipeline.

Queries import this, so what only an ingest needs is imported when one begins.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from hybrid_search.ingest.cleaning import NOTHING, Cleaning
from hybrid_search.ingest.executors.base import LOCAL
from hybrid_search.ingest.shards import ALL_DOCUMENTS, Shard
from hybrid_search.ingest.summary import Summary

if TYPE_CHECKING:
    from hybrid_search.ingest.checkpoint import Checkpoint

Report = Callable[[Summary], None]
"""Called with the summary so far: when a run begins, and after each block."""


def ignore_report(_: Summary) -> None:
    """Ignore the progress of a run."""


@dataclass(frozen=True, slots=True, eq=False)
class IngestOptions:
    """How a run ingests: into which index, which of the documents, and where it reports."""

    index: str
    rejects: Path | None = None
    """The file for refused documents; None: `default_rejects_path` for the URL of the index."""
    policy: str | None = None
    """Which windows find passages, as in ``5/1``; None: as in the index, or the default."""
    report: Report = ignore_report
    where: Mapping[str, Any] | None = None
    """What the metadata of a document must have (`hybrid_search.text.filters`), or None."""
    checkpoint: Checkpoint | None = None
    shard: Shard = ALL_DOCUMENTS
    cleaning: Cleaning = NOTHING
    """What is taken out of the texts."""
    executor: str = LOCAL
    """Where texts are encoded: local or ray."""
    workers: int | None = None
    """How many workers encode, where the executor has any; None: as many as there is room for."""

    def find_rejects(self, url: str = "") -> Path:
        """Return the file for refused documents: the default one of the URL if none was named."""
        from hybrid_search.ingest.rejects import default_rejects_path

        return self.rejects or default_rejects_path(url, self.index, self.shard)
