"""`Client` methods that manage indexes: set up, describe, verify, reindex, drop.

Modules that a single method needs are imported inside it, to keep the first query fast.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Self

from hybrid_search import backends
from hybrid_search.backends.types import IndexInfo, IndexSpec
from hybrid_search.client.encoders import ClientEncoders
from hybrid_search.config import DEFAULT_INDEX, DEFAULT_POLICY, DEFAULT_SAMPLE, Settings
from hybrid_search.encoder import Encoder
from hybrid_search.errors import IndexMissingError
from hybrid_search.ingest.options import Report, ignore_report
from hybrid_search.text import window_policy
from hybrid_search.text.residual_codes import DEFAULT_BITS, check_bits

if TYPE_CHECKING:
    from hybrid_search.ingest.summary import Summary
    from hybrid_search.ingest.types import SourceLine
    from hybrid_search.maintenance.plan.estimate import Plan
    from hybrid_search.maintenance.verify.report import Verification


class IndexAdmin:
    """Management of the indexes of one backend; `Client` adds queries and ingest.

    Attributes:
        backend: The underlying store, for programs that build on `hybrid_search.backends.base`.
    """

    def __init__(self, settings: Settings) -> None:
        self._settings = settings
        self.backend = backends.open_backend(settings.url, settings.access)
        self._encoders = ClientEncoders(settings)

    def _encoders_of(self, index: str) -> ClientEncoders:
        """Return the encoders with which an index is searched.

        Reads the index head only if there is a choice of models.
        """
        if not self._encoders.may_choose:
            return self._encoders
        return self._encoders.for_spec(self.backend.read_head(index)[0])

    @property
    def encoder(self) -> Encoder:
        """Return the encoder, with vectors of the dimension that this client's new indexes have."""
        return self._encoders.default

    def plan_lines(
        self,
        lines: Iterable[SourceLine],
        *,
        documents: int | None = None,
        index: str | None = None,
        policy: str | None = None,
    ) -> Plan:
        """Return an estimate of the space and time that indexing takes, based on sample documents.

        Args:
            lines: JSON lines of sample documents.
            documents: How many documents there will be (default: the number in `index`, else in the
                sample).
            index: Take the policy, vectors and number of documents from this index.
            policy: The span policy to plan for.

        Raises:
            UsageError: If no line is a document that contains a word.

        >>> line = SourceLine("calls.jsonl", 1, b'{"id": "a", "text": "My money back."}')
        >>> with hybrid_search.connect() as client:
        ...     client.plan_lines([line], documents=1_000_000).load.documents
        1000000
        """
        from hybrid_search.maintenance.plan.estimate import plan
        from hybrid_search.maintenance.plan.policy_recall import POLICIES, compare
        from hybrid_search.maintenance.plan.sample import take_sample

        info = self.describe(index) if index else None
        spec = info.spec if info else None
        encoders = self._encoders.for_spec(spec)
        index_encoder, span_policy = encoders.truncated_to(spec), policy or policy_of(spec)
        window_policy.parse(span_policy)
        sample = take_sample(index_encoder, lines)
        planned_documents = documents or (info.documents if info else 0) or sample.documents
        policies = compare(index_encoder, sample, list(dict.fromkeys([*POLICIES, span_policy])))
        return plan(
            sample,
            span_policy,
            index_encoder.info.dimension,
            planned_documents,
            policies,
            on_gpu=encoders.full.info.is_accelerated,
        )

    def setup(
        self,
        index: str = DEFAULT_INDEX,
        *,
        policy: str = DEFAULT_POLICY,
        codes: int = DEFAULT_BITS,
        options: Mapping[str, str] | None = None,
    ) -> None:
        """Create an empty index for this model, unless it exists.

        Args:
            index: The name of the index.
            policy: Which spans become vectors.
            codes: The bits in which a number of a stored vector is kept: 2, 3, 4 or 8.
            options: Server options, see `hybrid_search.backends.index_options`.

        Raises:
            UsageError: If the store does not support these options, or there are no such codes.

        >>> with hybrid_search.connect("memory:") as client:
        ...     client.setup("notes")
        ...     client.indexes()
        ['notes']
        """
        window_policy.parse(policy)
        earlier = self._spec(index)
        index_encoder = self._encoders.for_spec(earlier).truncated_to(earlier)
        spec = IndexSpec.from_encoder(index_encoder.info, policy, check_bits(codes))
        self.backend.create_index(index, spec, options or {})

    def reindex(
        self,
        index: str = DEFAULT_INDEX,
        lines: Iterable[SourceLine] | None = None,
        *,
        rejects: str | Path | None = None,
        policy: str | None = None,
        options: Mapping[str, str] | None = None,
        keep: bool = False,
        report: Report = ignore_report,
    ) -> Summary:
        """Replace an index with a new version of it, atomically.

        Args:
            index: The index.
            lines: JSON lines of all documents, to be encoded. Without them passages are copied.
            rejects: As in `ingest`.
            policy: The policy of the new version (default: that of the old one).
            options: Options of the new version; others stay as they were.
            keep: Keep the old version.
            report: Called with the summary so far.

        Returns:
            How many documents the new version has.

        Raises:
            UsageError: If the index is in memory, or is embedded and to be kept or given options.
            IndexStoreError: If a document was rejected or counts differ; the index stays as it was.

        >>> with hybrid_search.connect("opensearch+https://HOST") as client:  # doctest: +SKIP
        ...     client.reindex("calls", policy="4/1").documents
        88
        """
        from hybrid_search.ingest.rejects import default_rejects_path
        from hybrid_search.maintenance import reindex

        if lines is None:
            spec = self._spec(index)
            if spec:  # so that the stored codes can be read
                self._encoders.for_spec(spec).load_codebook(spec.dimension)
            return reindex.copy_index(self.backend, index, policy, options or {}, report, keep=keep)
        spec = self._spec(index)
        rejects_path = Path(rejects or default_rejects_path(self._settings.url, index))
        return reindex.ingest_new_version(
            self.backend,
            self._encoders.for_spec(spec).for_new_version(spec),
            index,
            lines,
            rejects_path,
            policy or policy_of(spec),
            codes_of(spec),
            options or {},
            report,
            keep=keep,
        )

    def verify(
        self,
        index: str = DEFAULT_INDEX,
        *,
        sample: int = DEFAULT_SAMPLE,
        full: bool = False,
        repair: bool = False,
    ) -> Verification:
        """Return the faults of an index: passages that are missing, damaged or encoded otherwise.

        Args:
            index: The index. It is not changed without `repair`.
            sample: How many documents, evenly spread, to encode again and compare.
            full: Also read all word codes, and compare the graphs with them.
            repair: First make damaged graphs again from word codes, and encode documents with
                damaged codes again from their stored text. Implies `full`.

        Raises:
            IndexMissingError: If there is no such index.
            ModelError: If the index was written with another model.

        >>> with hybrid_search.connect() as client:
        ...     client.verify(sample=1).is_sound
        True
        """
        from hybrid_search.maintenance import verify

        salvage = verify.salvage_file(self.backend, index) if repair else None
        spec, _ = self.backend.read_head(index)
        encoder = self._encoders.for_spec(spec).truncated_to(spec)
        return verify.verify(
            self.backend, encoder, index, sample, full=full, repair=repair, salvage=salvage
        )

    def delete(self, ids: Sequence[str], *, index: str = DEFAULT_INDEX) -> int:
        """Return how many documents of these ids there were, after deleting them.

        >>> with hybrid_search.connect() as client:
        ...     client.delete(["no such call"])
        0
        """
        spec, _ = self.backend.read_head(index)
        with self.backend.writer(index, spec) as writer:
            return writer.delete(list(ids))

    def describe(self, index: str = DEFAULT_INDEX) -> IndexInfo:
        """Return the spec and fields of an index, and its numbers of documents, passages, spans.

        >>> with hybrid_search.connect() as client:
        ...     client.describe("calls").fields["sector"]
        'string'
        """
        return self.backend.describe_index(index)

    def indexes(self) -> list[str]:
        """Return the names of all indexes, sorted.

        >>> with hybrid_search.connect() as client:
        ...     client.indexes()
        ['calls']
        """
        return self.backend.list_indexes()

    def drop(self, index: str) -> None:
        """Remove an index and all in it.

        >>> with hybrid_search.connect("memory:") as client:
        ...     client.setup("notes")
        ...     client.drop("notes")
        """
        self.backend.drop_index(index)

    def close(self) -> None:
        """Close what is open; the next call opens it again."""
        self._encoders.close()
        self.backend.close()

    def _spec(self, index: str) -> IndexSpec | None:
        """Return the spec of an index, None if there is no such index."""
        try:
            return self.backend.read_head(index)[0]
        except IndexMissingError:
            return None

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def __repr__(self) -> str:
        return f"{type(self).__name__}({self._settings.url!r})"


def codes_of(spec: IndexSpec | None) -> int:
    """Return the bits of a number in an index, the default if there is no index."""
    return spec.codes if spec else DEFAULT_BITS


def policy_of(spec: IndexSpec | None) -> str:
    """Return the policy of an index, the default one if there is no index."""
    return spec.policy if spec else DEFAULT_POLICY
