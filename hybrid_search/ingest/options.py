"""`IngestOptions`: the settings of one run, from the command line to the pipeline.

Queries import this module, so modules for ingestion are imported only on use.
"""

# The annotations of a table are read at run time, so they are not postponed here.
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Self, TypedDict

from hybrid_search.config import DEFAULT_INDEX
from hybrid_search.ingest.cleaning import NOTHING, Cleaning
from hybrid_search.ingest.executors import LOCAL
from hybrid_search.ingest.shards import ALL_DOCUMENTS, Shard
from hybrid_search.ingest.sources.read_options import Rows
from hybrid_search.ingest.summary import Summary
from hybrid_search.parameters import Parameter

if TYPE_CHECKING:
    from hybrid_search.ingest.checkpoint import Checkpoint

Report = Callable[[Summary], None]
"""Called with the summary so far: at the start of a run, and after each block."""


ROWS = Parameter(
    "turn: make a call of all rows with the same id. Else: document.", default="document"
)
SPLIT_SPEAKERS = Parameter('Make turns of lines such as "Agent: Hello" of a text.', default=False)


class WriteOptions(TypedDict, total=False):
    """How documents are written."""

    index: Annotated[
        str,
        Parameter(
            "The name of the index.", "It is made if it does not exist.", default=DEFAULT_INDEX
        ),
    ]
    rejects: Annotated[
        Path | str | None,
        Parameter(
            "File for refused documents. Default: INDEX.rejected.jsonl beside an embedded index, "
            "else here; of a shard INDEX.I-of-N.rejected.jsonl."
        ),
    ]
    policy: Annotated[
        str | None,
        Parameter("Windows whose vectors find passages, as in 5/1. Default: the index's."),
    ]
    codes: Annotated[
        int | None,
        Parameter(
            "Bits in which a number of a stored vector is kept: 2, 3, 4 or 8. Default: the index's."
        ),
    ]
    language: Annotated[
        str | None,
        Parameter(
            "The language of documents that do not say theirs: a code such as de, or detect. "
            "Default: their words are cut as English ones are.",
            value="CODE",
        ),
    ]
    strip_html: Annotated[bool, Parameter("Take the tags of HTML out of texts.", default=False)]
    strip_quotes: Annotated[
        bool, Parameter("Take quoted mails and signatures out of texts.", default=False)
    ]
    recogniser: Annotated[
        str | None,
        Parameter(
            "PACKAGE.MODULE:FUNCTION that returns (start, end, type) of each part of a text, or of "
            "a turn, that is to be masked.",
            value="FUNCTION",
        ),
    ]


class ObjectOptions(WriteOptions, total=False):
    """How Python objects are read and written."""

    columns: Annotated[
        Mapping[str, str] | None,
        Parameter(
            "The column or dotted key of id, text, turns, speaker, start, end or any other key."
        ),
    ]
    rows: Annotated[Rows, ROWS]
    split_speakers: Annotated[bool, SPLIT_SPEAKERS]


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
    checkpoint: "Checkpoint | None" = None
    shard: Shard = ALL_DOCUMENTS
    cleaning: Cleaning = NOTHING
    """The parts to remove from texts."""
    language: str | None = None
    """The language of documents that do not say theirs, or ``detect``."""
    recogniser: str | None = None
    """The path of a function that finds what is to be masked."""
    executor: str = LOCAL
    """Where texts are encoded: local or ray."""
    workers: int | None = None
    """Number of workers, if the executor has workers; None for as many as fit."""

    @classmethod
    def build(cls, writing: Mapping[str, Any], **settings: Any) -> Self:
        """Return the settings with `writing`, the values of `WriteOptions`."""
        from hybrid_search.ingest.document_language import check_language

        rejects = Path(writing["rejects"]) if writing["rejects"] else None
        language = check_language(writing["language"])
        cleaning = Cleaning(html=writing["strip_html"], quotes=writing["strip_quotes"])
        place = {name: writing[name] for name in ("index", "policy", "codes", "recogniser")}
        return cls(rejects=rejects, cleaning=cleaning, language=language, **place, **settings)

    def reporting_to(self, report: Report) -> Self:
        """Return these settings with one more report."""
        earlier = self.report

        def report_to_both(summary: Summary) -> None:
            earlier(summary)
            report(summary)

        return replace(self, report=report_to_both)

    def find_rejects(self, url: str = "") -> Path:
        """Return the file for refused documents, by default the one for `url`."""
        from hybrid_search.ingest.rejects import default_rejects_path

        return self.rejects or default_rejects_path(url, self.index, self.shard)
