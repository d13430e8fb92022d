"""`Client`: one place for indexes and one encoder.

Everything that the module-level functions do is a method here.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping, Sequence
from contextlib import AbstractContextManager, nullcontext
from functools import partial
from pathlib import Path
from types import TracebackType
from typing import Any, Self

from hybrid_search import backends, encoder
from hybrid_search.backends.types import IndexInfo, IndexSpec
from hybrid_search.config import DEFAULT_INDEX, Settings
from hybrid_search.encoder import Encoder, model_folder
from hybrid_search.encoder.truncated import default_dimension
from hybrid_search.errors import IndexMissingError
from hybrid_search.ingest.checkpoint import Checkpoint
from hybrid_search.ingest.executors.local import LOCAL, Executor, ExecutorCache, check_executor
from hybrid_search.ingest.pipeline import Report, ignore_report, ingest
from hybrid_search.ingest.shards import ALL_DOCUMENTS, Shard
from hybrid_search.ingest.summary import Summary
from hybrid_search.ingest.types import SourceLine
from hybrid_search.maintenance import reindex, verify
from hybrid_search.maintenance.plan.estimate import Plan, plan
from hybrid_search.maintenance.plan.policy_recall import POLICIES, compare
from hybrid_search.maintenance.plan.sample import take_sample
from hybrid_search.search import calibration, phrase_vector, pipeline, span_search
from hybrid_search.search.fusion import DEFAULT
from hybrid_search.search.query import Query
from hybrid_search.search.result import Result, Span
from hybrid_search.text import window_policy
from hybrid_search.text.window_policy import DEFAULT_POLICY


class Client:
    """Opened by `hybrid_search.connect`, closed by leaving its ``with`` block.

    The encoder is loaded when it is first needed.

    `backend` is the store itself, for those who want to build on the seam
    (`hybrid_search.backends.base`).
    """

    def __init__(self, settings: Settings) -> None:
        self._settings = settings
        self.backend = backends.open_backend(settings.url, settings.access)
        self._workers = ExecutorCache()

    @property
    def encoder(self) -> Encoder:
        """The encoder of this client's model folder, loaded once a process; with vectors as those
        of indexes that this client makes.
        """
        return encoder.truncate_encoder(self._full_encoder, self._settings.dimension)

    @property
    def _full_encoder(self) -> Encoder:
        return encoder.load(self._folder, self._settings.device, self._settings.precision)

    @property
    def _folder(self) -> Path:
        return self._settings.model or encoder.SHIPPED

    def query(
        self,
        phrase: str | Sequence[str],
        *,
        index: str = DEFAULT_INDEX,
        alpha: float = 0.5,
        size: int = 10,
        where: Mapping[str, Any] | None = None,
        fusion: str = DEFAULT,
        context: str | None = None,
        spans: int = 3,
        min_score: float | None = None,
        offset: int = 0,
        group_by: str = "document",
        refine: str | None = None,
        explain: bool = False,
        compat: str | None = None,
        highlight: bool = False,
        sort: str | None = None,
        facets: Sequence[str] = (),
        facets_over: str = "window",
    ) -> Result:
        """Find `phrase`, or the best of several phrases, in `index`.

        `alpha` is the weight of the span cosine: 1 is spans only, 0 is BM25 only. `where` filters
        by metadata (`hybrid_search.text.filters`); `fusion` is one of calibrated, min_max, l2,
        z_score, rrf; `context` is a text that holds the phrase, to say in which sense it is meant.
        Hits from `offset` on, `size` of them, each a document (or, by `group_by`, a passage) with
        its `spans` best spans; those under `min_score` are left out. ``refine="isolate"`` ranks the
        shown spans again, each encoded by itself. `explain` adds what the score is made of.
        ``compat="opensearch"`` ranks as the server's own hybrid query does.

        `highlight` adds the places of the words that BM25 matched. `sort` puts the fused documents
        (the window: at most ``max(100, offset + size)`` passages of each leg) in the order of a
        metadata field, ``-field`` the largest first. `facets` counts the documents with each value
        of these fields, over the window, or with ``facets_over="matches"`` over all documents in
        which a term of the phrase occurs.

        Raises UsageError, IndexMissingError, and ModelError where the index is of another model.
        """
        query = Query(
            phrases=_as_tuple(phrase),
            index=index,
            alpha=alpha,
            size=size,
            where=where,
            fusion=fusion,
            context=context,
            spans=spans,
            min_score=min_score,
            offset=offset,
            group_by=group_by,
            refine=refine,
            explain=explain,
            compat=compat,
            highlight=highlight,
            sort=sort,
            facets=_as_tuple(facets),
            facets_over=facets_over,
        )
        return pipeline.search(
            self.backend, self._full_encoder, partial(calibration.load, self._folder), query
        )

    def requests(
        self,
        phrase: str,
        *,
        index: str = DEFAULT_INDEX,
        alpha: float = 0.5,
        size: int = 10,
        where: Mapping[str, Any] | None = None,
        fusion: str = DEFAULT,
        context: str | None = None,
        offset: int = 0,
        compat: str | None = None,
    ) -> list[tuple[str, dict[str, Any]]]:
        """Path and body of what `query` sends to a server for its legs, or with
        ``compat="opensearch"`` of the server's own hybrid query.
        """
        query = Query(
            (phrase,), index, alpha, size, where, fusion, context, offset=offset, compat=compat
        )
        return pipeline.requests(self.backend, self._full_encoder, query)

    def best_spans(
        self, phrase_: str, text: str, *, k: int = 1, context: str | None = None
    ) -> list[Span]:
        """The `k` best spans of `text` that do not overlap, with their cosines, best first.

        No index is used.
        """
        return span_search.best_spans(self.encoder, phrase_, text, k, context)

    def phrase_similarity(
        self, a: str, b: str, *, context1: str | None = None, context2: str | None = None
    ) -> float:
        """The cosine, -1..1, of two phrases, each taken inside its context where one is given."""
        return phrase_vector.similarity(self.encoder, a, b, context1, context2)

    def ingest(
        self,
        documents: Iterable[Mapping[str, Any]],
        *,
        index: str = DEFAULT_INDEX,
        rejects: str | Path | None = None,
        policy: str | None = None,
    ) -> Summary:
        """Index `documents`, each with ``id`` and ``text`` or ``turns``, as on the command line.

        Refused ones go to the file `rejects`.

        `policy` says which spans find passages: that of the index unless it is given, or the
        default for a new one.
        """
        lines = (_line(number, document) for number, document in enumerate(documents, 1))
        return self.ingest_lines(lines, index=index, rejects=rejects, policy=policy)

    def ingest_lines(
        self,
        lines: Iterable[SourceLine],
        *,
        index: str = DEFAULT_INDEX,
        rejects: str | Path | None = None,
        policy: str | None = None,
        report: Report = ignore_report,
        where: Mapping[str, Any] | None = None,
        checkpoint: Checkpoint | None = None,
        shard: Shard = ALL_DOCUMENTS,
        engine: str = LOCAL,
        workers: int | None = None,
    ) -> Summary:
        """Index JSON lines as `hybrid_search.ingest.sources.files.read` gives them, those that
        fulfil `where`; `report` is called with the summary so far.

        Lines that `checkpoint` says are done are passed over. It is to be finished where the lines
        came to their end. Of `shard`'s documents alone. `engine` says where they are encoded: here
        ("local"), or by `workers` actors of a Ray cluster ("ray"), which stay for the next call
        until this client is closed.
        """
        rejects_path = Path(rejects or f"{index}.rejected.jsonl")
        spec = self._spec(index)
        with self._executor(engine, workers, spec) as executor:
            return ingest(
                lines,
                self.backend,
                executor,
                index,
                rejects_path,
                policy or _policy(spec),
                report,
                where,
                checkpoint,
                shard,
            )

    def _executor(
        self, name: str, workers: int | None, spec: IndexSpec | None
    ) -> AbstractContextManager[Encoder | Executor]:
        check_executor(name, workers)
        if name == LOCAL:
            return nullcontext(self._encoder_for(spec))
        from hybrid_search.ingest.executors.ray import RayExecutor

        # what the model can do is not asked of an encoder here, where there may be no such device
        settings = self._settings
        model = model_folder.read(self._folder)
        size = (
            spec.dimension
            if spec and spec.dimension in model.sizes
            else settings.dimension or default_dimension(model)
        )
        return self._workers.acquire(
            RayExecutor, self._folder, settings.device, settings.precision, size, workers
        )

    def _spec(self, index: str) -> IndexSpec | None:
        """What an index was made for; None where there is none yet."""
        try:
            return self.backend.read_head(index)[0]
        except IndexMissingError:
            return None

    def _encoder_for(self, spec: IndexSpec | None) -> Encoder:
        """The encoder with vectors of the size that the index has, where the model has that."""
        full_encoder = self._full_encoder
        return (
            encoder.truncate_encoder(full_encoder, spec.dimension)
            if spec and spec.dimension in full_encoder.info.sizes
            else self.encoder
        )

    def plan_lines(
        self,
        lines: Iterable[SourceLine],
        *,
        documents: int | None = None,
        index: str | None = None,
        policy: str | None = None,
    ) -> Plan:
        """What indexing `documents` like those of `lines` takes: of `index`'s policy, vectors and
        number of documents, where it is named.

        Raises UsageError where no line is a document with a word.
        """
        info = self.describe(index) if index else None
        spec = info.spec if info else None
        index_encoder, span_policy = self._encoder_for(spec), policy or _policy(spec)
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
            on_gpu=self._full_encoder.info.is_accelerated,
        )

    def setup(
        self,
        index: str = DEFAULT_INDEX,
        *,
        policy: str = DEFAULT_POLICY,
        options: Mapping[str, str] | None = None,
    ) -> None:
        """Make an empty `index` for this model, if there is none.

        On a server `options` are those of `hybrid_search.backends.index_options`.
        """
        window_policy.parse(policy)
        self.backend.create_index(
            index,
            IndexSpec.from_encoder(self._encoder_for(self._spec(index)).info, policy),
            options or {},
        )

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
        """Put a new version of `index` in the place of the old one, at once (on a server only).

        Without `lines` every passage is copied with its token codes, so that `policy` and `options`
        can change and nothing is encoded again. With `lines`, JSON lines of all documents, they are
        ingested by this client's model. What is not given stays as it is in the old version, which
        is removed unless it is to be kept. Raises IndexStoreError, and leaves the index as it was,
        where a document was refused or counts differ.
        """
        if lines is None:
            return reindex.copy_index(self.backend, index, policy, options or {}, report, keep=keep)
        rejects_path, spec = Path(rejects or f"{index}.rejected.jsonl"), self._spec(index)
        index_encoder = self.encoder if self._settings.dimension else self._encoder_for(spec)
        return reindex.ingest_new_version(
            self.backend,
            index_encoder,
            index,
            lines,
            rejects_path,
            policy or _policy(spec),
            options or {},
            report,
            keep=keep,
        )

    def verify(
        self, index: str = DEFAULT_INDEX, *, sample: int = verify.SAMPLE
    ) -> verify.Verification:
        """Look whether all passages of `index` are there and whole, and encode `sample` of its
        documents again, evenly spread, to compare offsets and token codes.

        Nothing is changed. Raises UsageError, IndexMissingError, and ModelError where the index is
        of another model.
        """
        return verify.verify(
            self.backend, self._encoder_for(self.backend.read_head(index)[0]), index, sample
        )

    def delete(self, ids: Sequence[str], *, index: str = DEFAULT_INDEX) -> int:
        """Remove documents from `index`; how many there were."""
        spec, _ = self.backend.read_head(index)
        with self.backend.writer(index, spec) as writer:
            return writer.delete(list(ids))

    def describe(self, index: str = DEFAULT_INDEX) -> IndexInfo:
        """What `index` was made for, and how many documents, passages and spans it holds."""
        return self.backend.describe_index(index)

    def indexes(self) -> list[str]:
        """The names of all indexes."""
        return self.backend.list_indexes()

    def drop(self, index: str) -> None:
        """Remove `index` and all in it."""
        self.backend.drop_index(index)

    def close(self) -> None:
        """Close what is open; the next call opens it again."""
        self._workers.close()
        self.backend.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.close()

    def __repr__(self) -> str:
        return f"Client({self._settings.url!r})"


def _policy(spec: IndexSpec | None) -> str:
    return spec.policy if spec else DEFAULT_POLICY


def _as_tuple(values: str | Sequence[str]) -> tuple[str, ...]:
    return (values,) if isinstance(values, str) else tuple(values)


def _line(number: int, document: Mapping[str, Any]) -> SourceLine:
    try:
        return SourceLine("documents", number, json.dumps(document).encode())
    except (TypeError, ValueError) as error:
        return SourceLine(
            "documents",
            number,
            repr(document).encode("utf-8", "backslashreplace"),
            f"not JSON: {error}",
        )
