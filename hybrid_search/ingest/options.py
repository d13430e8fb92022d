"""`IngestOptions`: the settings of one run, from the command line to the pipeline.

Queries import this module, so modules for ingestion are imported only on use.
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
"""Called with the summary so far: at the start of a run, and after each block."""


def ignore_report(_: Summary) -> None:
    """Ignore the progress of a run."""


@dataclass(frozen=True, slots=True, eq=False)
class IngestOptions:
    """The settings of a run: target index, selected documents, and reports."""

    index: str
    rejects: Path | None = None
    """The file for refused documents; None for `default_rejects_path` of the index URL."""
    policy: str | None = None
    """The window policy, such as ``5/1``; None for the policy of the index, or the default."""
    codes: int | None = None
    """The bits of a number of a vector; None for those of the index, or the default."""
    report: Report = ignore_report
    where: Mapping[str, Any] | None = None
    """Conditions on the metadata of documents (`hybrid_search.text.filters`), or None."""
    checkpoint: Checkpoint | None = None
    shard: Shard = ALL_DOCUMENTS
    cleaning: Cleaning = NOTHING
    """The parts to remove from texts."""
    executor: str = LOCAL
    """Where texts are encoded: local or ray."""
    workers: int | None = None
    """Number of workers, if the executor has workers; None for as many as fit."""

    def find_rejects(self, url: str = "") -> Path:
        """Return the file for refused documents, by default the one for `url`."""
        from hybrid_search.ingest.rejects import default_rejects_path

        return self.rejects or default_rejects_path(url, self.index, self.shard)
