"""`Client`: one backend and one encoder, with a method for everything that can be done.

What an ingest needs is imported when one begins, so that the first query does not wait for it.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, Unpack

from hybrid_search.client.admin import policy_of
from hybrid_search.client.grouping import PhraseGrouping
from hybrid_search.config import DEFAULT_INDEX
from hybrid_search.encoder.base import span_prior
from hybrid_search.errors import UsageError
from hybrid_search.ingest.executors.base import LOCAL
from hybrid_search.ingest.options import IngestOptions, Report, ignore_report
from hybrid_search.ingest.shards import ALL_DOCUMENTS, Shard
from hybrid_search.search import open_document, phrase_vector, pipeline, span_search
from hybrid_search.search.calibration import SCORE, Calibration
from hybrid_search.search.document_view import DocumentView
from hybrid_search.search.parameters import check_choice, check_text
from hybrid_search.search.query import (
    CHOICES,
    DOCUMENT_SPANS,
    Query,
    QueryOptions,
    RequestOptions,
    expand_options,
)
from hybrid_search.search.result import Result, Span

if TYPE_CHECKING:
    from hybrid_search.ingest.checkpoint import Checkpoint
    from hybrid_search.ingest.summary import Summary
    from hybrid_search.ingest.types import SourceLine


class Client(PhraseGrouping):
    """Queries and ingests; the other methods are those of its base classes.

    Opened by `hybrid_search.connect`, closed by leaving its ``with`` block. The encoder is loaded
    at its first use. Every call may raise `HybridSearchError`.
    """

    @expand_options(QueryOptions)
    def query(self, phrase: str | Sequence[str], **options: Unpack[QueryOptions]) -> Result:
        """Find a phrase, or the best of several phrases, in an index.

        Args:
            phrase: The phrase, or several: a passage counts by the one that it fits best.
            **options: The parameters of a query, each explained in `hybrid_search.query`.

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
        query = Query.from_options(phrase, **options)
        encoders = self._encoders_of(query.index)
        return pipeline.search(
            self.backend, encoders.full, encoders.load_calibration, query, self._find_tuned_map
        )

    def _find_tuned_map(self, fingerprint: str, phrases: Sequence[str]) -> Calibration | None:
        if self._settings.tuning is None:
            return None
        from hybrid_search.phrases.mention_calibration import find_query_map

        return find_query_map(self._settings.tuning, fingerprint, phrases)

    def open_document(
        self,
        document_id: str,
        phrase: str | None = None,
        *,
        index: str = Query.index,
        alpha: float = Query.alpha,
        context: str | None = None,
        spans: int = DOCUMENT_SPANS,
        spans_by: str = Query.spans_by,
    ) -> DocumentView:
        """Return a whole document, and where a phrase fits it.

        Args:
            document_id: The id of the document, as a hit has it.
            phrase: The phrase. Without one there are no scores and no spans.
            index: The name of the index.
            alpha: The weight of the span cosine, as in `hybrid_search.query`.
            context: A text that holds the phrase, to say in which sense it is meant.
            spans: How many of its best spans to list, 0 to 100.
            spans_by: What they are chosen by, as in `hybrid_search.query`.

        Raises:
            UsageError: If a value is not allowed.
            IndexMissingError: If there is no such index.
            DocumentMissingError: If the index has no document of this id.
            ModelError: If the index was written with another model.

        >>> with hybrid_search.connect() as client:
        ...     view = client.open_document("shop-001", "money back", spans=1)
        >>> view.spans[0].text, len(view.turns), view.metadata["sector"]
        ("I'd like my money back", 15, 'shop')
        """
        check_text("document_id", document_id)
        # without a phrase the other values are checked all the same
        phrases = ("-" if phrase is None else phrase,)
        query = Query(
            phrases, index=index, alpha=alpha, context=context, spans=spans, spans_by=spans_by
        )
        if phrase is None:
            return open_document.read_document(self.backend, index, document_id)
        encoders = self._encoders_of(index)
        return open_document.score_document(
            self.backend, encoders.full, encoders.load_calibration, document_id, query
        )

    @expand_options(RequestOptions)
    def requests(
        self, phrase: str, **options: Unpack[RequestOptions]
    ) -> list[tuple[str, dict[str, Any]]]:
        """Return the path and body of each request that `query` sends to a server for its legs.

        Args:
            phrase: The phrase.
            **options: The parameters that change a request, explained in `hybrid_search.query`.

        Raises:
            UsageError: If a value is not allowed, or the index is not on a server.

        >>> with hybrid_search.connect("opensearch+https://HOST") as client:  # doctest: +SKIP
        ...     [path for path, body in client.requests("money back")]
        ['/calls/_search', '/calls/_search']
        """
        query = Query.from_options(phrase, **options)
        return pipeline.requests(self.backend, self._encoders_of(query.index).full, query)

    def best_spans(
        self,
        phrase_: str,
        text: str,
        *,
        k: int = 1,
        context: str | None = None,
        spans_by: str = Query.spans_by,
    ) -> list[Span]:
        """Return the best spans of one text that do not overlap, best first. No index is used.

        Args:
            phrase_: The phrase.
            text: The text to look in.
            k: How many spans, at least 1.
            context: A text that holds the phrase, to say in which sense it is meant.
            spans_by: What they are chosen by, as in `hybrid_search.query`.

        Raises:
            UsageError: If `k` is less than 1, the phrase has no word, or the context lacks it.

        >>> text = "I bought it last week. I want my money back."
        >>> with hybrid_search.connect() as client:
        ...     client.best_spans("refund request", text)[0].text
        'I want my money back'
        """
        check_choice("spans_by", spans_by, CHOICES["spans_by"])
        encoder = self.encoder
        prior = span_prior(encoder) if spans_by == SCORE else None
        return span_search.best_spans(encoder, phrase_, text, k, context, prior)

    def phrase_similarity(
        self, a: str, b: str, *, context1: str | None = None, context2: str | None = None
    ) -> float:
        """Return the cosine of two phrases, -1..1, each inside its context if it has one.

        Args:
            a: The first phrase.
            b: The second phrase.
            context1: A text that holds `a`, to say in which sense it is meant.
            context2: A text that holds `b`.

        Raises:
            UsageError: If a phrase has no word, or its context lacks it.

        >>> with hybrid_search.connect() as client:
        ...     client.phrase_similarity("refund", "money back") > 0.5
        True
        """
        return phrase_vector.similarity(self.encoder, a, b, context1, context2)

    def ingest(
        self,
        documents: Iterable[Mapping[str, Any]],
        *,
        index: str = DEFAULT_INDEX,
        rejects: str | Path | None = None,
        policy: str | None = None,
    ) -> Summary:
        """Index documents; one with the id of an indexed one replaces it, if it has changed.

        Args:
            documents: Dicts with ``id`` and ``text`` or ``turns``; all other keys are metadata.
            index: The index, made if it is not there.
            rejects: The file for rejected documents (default: ``INDEX.rejected.jsonl``).
            policy: Which spans become vectors (default: that of the index).

        Returns:
            How many documents were read, indexed, skipped and rejected.

        Raises:
            UsageError: If `documents` is a path or a single document.
            ModelError: If the index was written with another model or policy.
            IndexBusyError: If another process is writing the index.

        >>> with hybrid_search.connect("memory:") as client:
        ...     client.ingest([{"id": "a", "text": "I want my money back."}]).documents
        1
        """
        if isinstance(documents, str | bytes | Path | Mapping):  # whose parts are no documents
            raise UsageError(
                f"documents must be a list of dicts, and this is a {type(documents).__name__}. "
                "A file of JSON lines is read by `map(json.loads, open(path))`, and any file by "
                "`hybrid-search ingest`; a single document goes into a list"
            )
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
        """Index JSON lines, as `hybrid_search.ingest.sources.files.read` yields them.

        Args:
            lines: The lines, with their source.
            index: As in `ingest`.
            rejects: As in `ingest`.
            policy: As in `ingest`.
            report: Called with the summary so far.
            where: Index only documents with this metadata, as in `hybrid_search.query`.
            checkpoint: Lists lines that are done, which are skipped. The caller finishes it.
            shard: Index only the documents of this shard.
            engine: Where to encode: ``local``, or ``ray`` (workers stay until this closes).
            workers: How many workers of the cluster.

        Returns:
            How many documents were read, indexed, skipped and rejected.

        Raises:
            UsageError: If `engine` is unknown, or `workers` are given for the local one.
            ModelError: If the index was written with another model or policy.

        >>> line = SourceLine("calls.jsonl", 1, b'{"id": "a", "text": "My money back."}')
        >>> with hybrid_search.connect("memory:") as client:
        ...     client.ingest_lines([line], where={"id": "b"}).documents
        0
        """
        options = IngestOptions(
            index=index,
            rejects=Path(rejects) if rejects else None,
            policy=policy,
            report=report,
            where=where,
            checkpoint=checkpoint,
            shard=shard,
            executor=engine,
            workers=workers,
        )
        return self.run_ingest(lines, options)

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
        options = replace(options, policy=options.policy or policy_of(spec))
        encoders = self._encoders.for_spec(spec)
        executor = encoders.acquire_executor(options.executor, options.workers, spec)
        with executor as encoder:
            return ingest(lines, self.backend, encoder, options)


def _line(number: int, document: Mapping[str, Any]) -> SourceLine:
    """Return a document as a line; one that is not JSON carries the error, and its repr."""
    from hybrid_search.ingest.types import SourceLine

    try:
        return SourceLine("documents", number, json.dumps(document).encode())
    except (TypeError, ValueError) as error:
        raw = repr(document).encode("utf-8", "backslashreplace")
        return SourceLine("documents", number, raw, f"not JSON: {error}")
