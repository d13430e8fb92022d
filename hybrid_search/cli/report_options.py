"""The options of ``mine`` for a report: its path, and the fields it counts."""

from __future__ import annotations

from dataclasses import dataclass
from functools import partial
from pathlib import Path

from hybrid_search.client import Client
from hybrid_search.errors import UsageError
from hybrid_search.ingest.shards import Shard
from hybrid_search.topics.report import writer
from hybrid_search.topics.run import MiningSummary


@dataclass(frozen=True, slots=True)
class ReportOptions:
    """The path of the report, the fields it counts, and the date field."""

    path: Path | None
    by: tuple[str, ...]
    date_field: str | None

    def check(self, out: Path | None, output_format: str, to_index: str | None = None) -> None:
        """Check that the options are compatible.

        Raises:
            UsageError: If they are not.
        """
        if self.path is None:
            if self.by or (self.date_field and not to_index):
                raise UsageError("--by and --date belong to a report: add --report FILE.html")
            return
        if out is None or output_format != "jsonl":
            raise UsageError("--report is made from a file of matches: add --out FILE, in jsonl")
        if self.path.resolve() == out.resolve():
            raise UsageError(f"--report and --out are both {out}: name another file")
        if not self.path.absolute().parent.is_dir():
            raise UsageError(f"there is no folder for the report {self.path}: make it first")

    def check_index(self, client: Client, index: str) -> None:
        """Raise UsageError if the index lacks a field."""
        names = [*self.by, *filter(None, [self.date_field])]
        if names:
            writer.check_fields(names, client.describe(index).fields)

    def write(
        self, client: Client, index: str, out: Path, summary: MiningSummary, shard: Shard | None
    ) -> None:
        """Write the report of the matches in `out`, if requested.

        `shard` selects the mined documents; None for documents written since an earlier run, whose
        metadata is not counted.
        """
        if self.path is None:
            return
        values = writer.count_values(client.backend, index, shard, self.by) if shard else {}
        writer.write_report(
            self.path,
            out,
            summary,
            partial(client.open_document, index=index),
            index=index,
            model=client.describe(index).spec.fingerprint,
            by=self.by,
            date_field=self.date_field,
            values=values,
        )
