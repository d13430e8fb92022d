"""`Client`: one backend and one encoder, with a method for every operation.

Modules for ingestion are imported when an ingest starts, to keep the first query fast.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any, Unpack

from hybrid_search.client.admin import codes_of, policy_of
from hybrid_search.client.grouping import PhraseGrouping
from hybrid_search.encoder.base import span_prior
from hybrid_search.errors import InputError, UsageError
from hybrid_search.ingest.executors.base import LOCAL
from hybrid_search.ingest.options import (
    IngestOptions,
    ObjectOptions,
    Report,
    WriteOptions,
    ignore_report,
)
from hybrid_search.ingest.shards import ALL_DOCUMENTS, Shard
from hybrid_search.parameters import check_phrase, check_text, complete, expand_options
from hybrid_search.search import open_document, phrase_vector, pipeline, span_search
from hybrid_search.search.calibration import SCORE, Calibration
from hybrid_search.search.document_view import DocumentView
from hybrid_search.search.hit import Span
from hybrid_search.search.query import DocumentOptions, Query, QueryOptions, SpanOptions
from hybrid_search.search.result import Result
from hybrid_search.text.types import Document

if TYPE_CHECKING:
    from hybrid_search.ingest.checkpoint import Checkpoint
    from hybrid_search.ingest.sources.python_objects import ArrowStream
    from hybrid_search.ingest.summary import Summary
    from hybrid_search.ingest.types import SourceLine


class Client(PhraseGrouping):
    """A client with queries, ingestion, and the methods of its base classes.

    Open it with `hybrid_search.connect`, in a ``with`` block, which closes it. The encoder is
    loaded on first use. Every call may raise `HybridSearchError`.
    """

    @expand_options(QueryOptions)
    def query(self, phrase: str | Sequence[str], **options: Unpack[QueryOptions]) -> Result:
        """Find a phrase, or the best of several phrases, in an index.

        Args:
            phrase: The phrase, or several phrases: each passage is scored by the one that fits it
                best.
            **options: The other parameters; docs/query.md says more about some.

        Returns:
            The hits, best first, with the offsets of the words that matched.

        Raises:
            UsageError: If a value is not allowed, or a field is not in the index.
            IndexMissingError: If there is no such index.
            ModelError: If the index was written with another model.

        >>> with hybrid_search.connect() as client:
        ...     client.query("money back", size=1, where={"sector": "shop"}).hits[0].id
        'shop-001'
        """
        query = Query(phrase, **options)
        encoders = self._encoders_of(query.index)
        return pipeline.search(
            self.backend, encoders.full, encoders.load_calibration, query, self._find_tuned_map
        )

    def _find_tuned_map(self, fingerprint: str, phrases: Sequence[str]) -> Calibration | None:
        if self._settings.tuning is None:
            return None
        from hybrid_search.phrases.mention_calibration import find_query_map

        return find_query_map(self._settings.tuning, fingerprint, phrases)

    @expand_options(DocumentOptions)
    def open_document(
        self, document_id: str, phrase: str | None = None, **options: Unpack[DocumentOptions]
    ) -> DocumentView:
        """Return a whole document, with the scores of a phrase in it.

        Args:
            document_id: The id of the document, as in `Hit.id`.
            phrase: The phrase. Without one there are no scores and no spans.
            **options: The index, how its spans are scored, and how many to list.

        Raises:
            UsageError: If a value is not allowed.
            IndexMissingError: If there is no such index.
            DocumentMissingError: If the index has no document with this id.
            ModelError: If the index was written with another model.

        >>> with hybrid_search.connect() as client:
        ...     view = client.open_document("shop-001", "money back", spans=1)
        >>> view.spans[0].text, len(view.turns), view.metadata["sector"]
        ("I'd like my money back", 15, 'shop')
        """
        check_text("document_id", document_id)
        values = complete(DocumentOptions, options, "Client.open_document")
        # the other values are checked even without a phrase
        query, index = Query("-" if phrase is None else phrase, **values), values["index"]
        if phrase is None:
            return open_document.read_document(self.backend, index, document_id)
        encoders = self._encoders_of(index)
        return open_document.score_document(
            self.backend, encoders.full, encoders.load_calibration, document_id, query
        )

    @expand_options(QueryOptions)
    def requests(
        self, phrase: str, **options: Unpack[QueryOptions]
    ) -> list[tuple[str, dict[str, Any]]]:
        """Return the path and body of each search request that `query` sends to a server.

        Args:
            phrase: The phrase.
            **options: The parameters of a query; not all of them change its requests.

        Raises:
            UsageError: If a value is not allowed, or the index is not on a server.

        >>> with hybrid_search.connect("opensearch+https://HOST") as client:  # doctest: +SKIP
        ...     [path for path, body in client.requests("money back")]
        ['/calls/_search', '/calls/_search']
        """
        query = Query(phrase, **options)
        return pipeline.requests(self.backend, self._encoders_of(query.index).full, query)

    @expand_options(SpanOptions)
    def best_spans(
        self,
        phrase: str,
        text: str | Sequence[str | Mapping[str, Any]],
        **options: Unpack[SpanOptions],
    ) -> list[Span]:
        """Return the best non-overlapping spans of one text, best first. No index is used.

        Args:
            phrase: The phrase.
            text: The text to look in, or the turns of a call.
            **options: Which spans. With a speaker, the text must have turns.

        Raises:
            UsageError: If `k` is less than 1, the phrase has no word, or the context lacks it.

        >>> text = "I bought it last week. I want my money back."
        >>> with hybrid_search.connect() as client:
        ...     client.best_spans("refund request", text)[0].text
        'I want my money back'
        """
        check_phrase("phrase", phrase)
        values = complete(SpanOptions, options, "hybrid_search.best_spans")
        document, speaker = _build_document(text), values["speaker"]
        if speaker and not any(turn.speaker for turn in document.turns):
            raise UsageError(
                f"speaker is {speaker[0]!r}, but the text has no speakers: give turns with a "
                "speaker"
            )
        encoder = self.encoder
        prior = span_prior(encoder) if values["spans_by"] == SCORE else None
        span_filter = span_search.build_span_filter(encoder, speaker, values["not_"])
        return span_search.best_spans(
            encoder, phrase, document, values["k"], values["context"], prior, span_filter
        )

    def phrase_similarity(
        self, a: str, b: str, *, context1: str | None = None, context2: str | None = None
    ) -> float:
        """Return the cosine of two phrases, -1..1, each encoded in its context if it has one.

        Args:
            a: The first phrase.
            b: The second phrase.
            context1: A text that contains `a`, to show in which sense it is meant.
            context2: A text that contains `b`.

        Raises:
            UsageError: If a phrase has no word, or its context lacks it.

        >>> with hybrid_search.connect() as client:
        ...     client.phrase_similarity("refund", "money back") > 0.5
        True
        """
        return phrase_vector.similarity(self.encoder, a, b, context1, context2)

    @expand_options(ObjectOptions)
    def ingest(
        self,
        documents: Iterable[Mapping[str, Any]] | ArrowStream,
        **options: Unpack[ObjectOptions],
    ) -> Summary:
        """Index documents, replacing those whose id is already indexed and whose content changed.

        Integers become text where text is needed, times become ISO 8601, and NaN counts as missing.

        Args:
            documents: Dicts with ``id`` and ``text`` or ``turns``; all other keys are metadata.
                Or a data frame of pandas or polars, or a table of Arrow, with such columns.
            **options: How they are read and written.

        Returns:
            How many documents were read, indexed, skipped and rejected.

        Raises:
            UsageError: If `documents` is a path or a single document, or a table without these
                columns or with repeated ids.
            InputError: If all documents are rejected.
            ModelError: If the index was written with another model or policy.
            IndexBusyError: If another process is writing the index.

        >>> with hybrid_search.connect("memory:") as client:
        ...     client.ingest([{"id": "a", "text": "I want my money back."}]).documents
        1
        """
        from hybrid_search.ingest.sources.python_objects import put_in_python, read_objects
        from hybrid_search.ingest.sources.read_options import Columns, ReadOptions

        values = complete(ObjectOptions, options, "Client.ingest")
        columns = Columns(values.pop("columns") or {})
        rows, split_speakers = values.pop("rows"), values.pop("split_speakers")
        reading = ReadOptions(columns, rows, split_speakers=split_speakers)
        summary = self.ingest_lines(read_objects(documents, reading), **values)
        if summary.failed and summary.failed == summary.read:
            reason = put_in_python(next(iter(summary.reasons)))
            raise InputError(
                f"none of {summary.read} documents was taken, the first because of this: {reason}. "
                f"They are in {summary.rejected}"
            )
        return summary

    @expand_options(WriteOptions)
    def ingest_lines(
        self,
        lines: Iterable[SourceLine],
        *,
        report: Report = ignore_report,
        where: Mapping[str, Any] | None = None,
        checkpoint: Checkpoint | None = None,
        shard: Shard = ALL_DOCUMENTS,
        engine: str = LOCAL,
        workers: int | None = None,
        **options: Unpack[WriteOptions],
    ) -> Summary:
        """Index JSON lines, such as `hybrid_search.ingest.sources.files.read` yields.

        Args:
            lines: The lines, with their source.
            **options: How they are written.
            report: Called with the summary so far, while the ingest runs.
            where: Index only documents with this metadata, as in `hybrid_search.query`.
            checkpoint: Records the lines already indexed, which are skipped. The caller must finish
                it.
            shard: Index only this shard's documents.
            engine: Where to encode: ``local``, or ``ray``, whose workers stay until this client
                closes.
            workers: How many workers to use in the cluster.

        Returns:
            How many documents were read, indexed, skipped and rejected.

        Raises:
            UsageError: If `engine` is unknown, or `workers` is given for the local engine.
            ModelError: If the index was written with another model or policy.

        >>> line = SourceLine("calls.jsonl", 1, b'{"id": "a", "text": "My money back."}')
        >>> with hybrid_search.connect("memory:") as client:
        ...     client.ingest_lines([line], where={"id": "b"}).documents
        0
        """
        run_options = IngestOptions.build(
            complete(WriteOptions, options, "Client.ingest_lines"),
            report=report,
            where=where,
            checkpoint=checkpoint,
            shard=shard,
            executor=engine,
            workers=workers,
        )
        return self.run_ingest(lines, run_options)

    def run_ingest(self, lines: Iterable[SourceLine], options: IngestOptions) -> Summary:
        """Index JSON lines as `ingest_lines` does, with all its parameters in one object.

        Args:
            lines: The lines, with their source.
            options: The parameters of `ingest_lines`.

        Returns:
            How many documents were read, indexed, skipped and rejected.

        >>> line = SourceLine("calls.jsonl", 1, b'{"id": "a", "text": "My money back."}')
        >>> with hybrid_search.connect("memory:") as client:
        ...     client.run_ingest([line], IngestOptions(index="calls")).documents
        1
        """
        from hybrid_search.ingest.pipeline import ingest

        spec = self._spec(options.index)
        options = replace(
            options,
            policy=options.policy or policy_of(spec),
            codes=options.codes or codes_of(spec),
            rejects=options.find_rejects(self._settings.url),
        )
        encoders = self._encoders.for_spec(spec)
        executor = encoders.acquire_executor(options.executor, options.workers, spec)
        with executor as encoder:
            return ingest(lines, self.backend, encoder, options)


def _build_document(text: str | Sequence[str | Mapping[str, Any]]) -> Document:
    """Return a document made of a text or of turns.

    Raises:
        UsageError: If it is neither.
    """
    if isinstance(text, str) or not isinstance(text, Sequence):
        return span_search.build_document(text)
    from hybrid_search.ingest import document_parser  # imports pydantic, so only when needed

    try:
        data = json.dumps({"id": "-", "turns": list(text)}).encode()
        return document_parser.parse(data)[0]
    except (TypeError, ValueError, InputError) as error:
        raise UsageError(f"text is no text and no list of turns: {error}") from error
