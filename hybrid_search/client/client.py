"""`Client`: one backend and one encoder, with a method for every operation.

A method checks its parameters, chooses the encoder of the index, and calls the function of another
package that does the work. Modules that only one method needs are imported inside it, to keep the
first query fast.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from datetime import datetime
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any, Self, Unpack

from hybrid_search import backends
from hybrid_search.backends.types import IndexInfo, IndexSpec
from hybrid_search.client.encoders import ClientEncoders
from hybrid_search.config import DEFAULT_INDEX, DEFAULT_POLICY, DEFAULT_SAMPLE, Settings
from hybrid_search.discover.options import DiscoverOptions, SimilarOptions
from hybrid_search.encoder import Encoder
from hybrid_search.errors import IndexMissingError, InputError, UsageError
from hybrid_search.ingest.executors import LOCAL, check_executor
from hybrid_search.ingest.options import (
    IngestOptions,
    ObjectOptions,
    Report,
    WriteOptions,
    ignore_report,
)
from hybrid_search.ingest.shards import ALL_DOCUMENTS, Shard
from hybrid_search.parameters import check_phrase, check_text, complete, expand_options
from hybrid_search.search import open_document, phrase_vector, pipeline, quote_search, span_search
from hybrid_search.search.calibration import Calibration
from hybrid_search.search.hit import DocumentView, Span
from hybrid_search.search.query import PARAMETERS, DocumentOptions, Query, QueryOptions, SpanOptions
from hybrid_search.search.quote import QuoteCheck, QuoteOptions
from hybrid_search.search.result import Result
from hybrid_search.text import window_policy
from hybrid_search.text.residual_codes import DEFAULT_BITS, check_bits
from hybrid_search.text.types import Document
from hybrid_search.topics.match import Match
from hybrid_search.topics.share_options import ShareOptions
from hybrid_search.topics.topics import Topics, TopicSource

if TYPE_CHECKING:
    from hybrid_search.discover.cluster import PhraseSource
    from hybrid_search.discover.types import Discovery, PhraseGroup, SimilarPhrase
    from hybrid_search.ingest.checkpoint import Checkpoint
    from hybrid_search.ingest.sources.python_objects import ArrowStream
    from hybrid_search.ingest.summary import Summary
    from hybrid_search.ingest.types import SourceLine
    from hybrid_search.maintenance.plan import Plan
    from hybrid_search.maintenance.redact import Receipt, SpanSource
    from hybrid_search.maintenance.verify.redacted import WordsCheck
    from hybrid_search.maintenance.verify.report import Verification
    from hybrid_search.topics.call_counts import CallGroups
    from hybrid_search.topics.judging_queue import JudgingQueue
    from hybrid_search.topics.rule_check import RuleExplanation
    from hybrid_search.topics.run import ReportMining
    from hybrid_search.topics.topic_distances import TopicDistances
    from hybrid_search.topics.topic_shares import TopicShare
    from hybrid_search.topics.tuning import Tuning
    from hybrid_search.topics.types import MinedBlock


class Client:
    """An index store and an encoder, with every operation on them.

    Open it with `hybrid_search.connect`, in a ``with`` block, which closes it. The encoder is
    loaded on first use.

    Every call may raise `HybridSearchError`: UsageError for a value that is not allowed,
    IndexMissingError if there is no such index, ModelError if another model wrote it.

    Attributes:
        backend: The underlying store, for programs that build on `hybrid_search.backends.base`.
    """

    def __init__(self, settings: Settings) -> None:
        self._settings = settings
        self.backend = backends.open_backend(settings.url, settings.access)
        self._encoders = ClientEncoders(settings)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def close(self) -> None:
        """Close what is open; the next call opens it again."""
        self._encoders.close()
        self.backend.close()

    @property
    def encoder(self) -> Encoder:
        """Return the encoder, with vectors of the dimension that this client's new indexes have."""
        return self._encoders.default

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
            DocumentMissingError: If the index has no document with this id.

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

    @expand_options(QuoteOptions)
    def check_quote(self, text: str, **options: Unpack[QuoteOptions]) -> QuoteCheck:
        """Return each place where a quotation stands in an index, or what comes nearest.

        The words must stand there in sequence, within one turn. Case, accents in English,
        punctuation and spaces make no difference. "..." in a quotation stands for any words.

        Args:
            text: The quotation.
            **options: The index, and how many places to list.

        Raises:
            UsageError: If the quotation has no word.

        >>> with hybrid_search.connect() as client:
        ...     place = client.check_quote("i'd like ... money back!").places[0]
        >>> place.id, place.start, place.end, place.text
        ('shop-001', 392, 414, "I'd like my money back")
        """
        values = complete(QuoteOptions, options, "hybrid_search.check_quote")
        return quote_search.check_quote(self.backend, self.query, text, **values)

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
        check_phrase("phrase", phrase)  # one: a query may have several
        values = complete(SpanOptions, options, "hybrid_search.best_spans")
        k = values.pop("k")
        document, query = _read_text(text), Query(phrase, **values)
        has_speakers = isinstance(document, Document) and any(
            turn.speaker for turn in document.turns
        )
        if query.speaker and not has_speakers:
            raise UsageError(
                f"speaker is {query.speaker[0]!r}, but the text has no speakers: give turns with a "
                "speaker"
            )
        return span_search.search_text(self.encoder, query, document, k)

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

    @expand_options(ObjectOptions)
    def ingest(
        self, documents: Iterable[Mapping[str, Any]] | ArrowStream, **options: Unpack[ObjectOptions]
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
        from hybrid_search.ingest.sources.read_options import ReadOptions

        values = complete(ObjectOptions, options, "Client.ingest")
        columns = values.pop("columns") or {}
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
            policy=options.policy or (spec.policy if spec else DEFAULT_POLICY),
            codes=options.codes or (spec.codes if spec else DEFAULT_BITS),
            rejects=options.find_rejects(self._settings.url),
        )
        encoders = self._encoders.for_spec(spec)
        executor = encoders.acquire_executor(options.executor, options.workers, spec)
        with executor as encoder:
            return ingest(lines, self.backend, encoder, options)

    def attach(
        self,
        index: str,
        text: str | None = None,
        *,
        columns: Mapping[str, str] | None = None,
        template: Mapping[str, Any] | None = None,
        policy: str | None = None,
        codes: int | None = None,
        rejects: str | Path | None = None,
        report: Report = ignore_report,
    ) -> Summary:
        """Make spans for an index of another program on a server, or bring them up to date.

        That index stays as it is. Its spans are in an index beside it, ``INDEX.spans``, without a
        word of its texts. Queries name the index itself.

        Args:
            index: The index; also an alias, or a data stream.
            text: The field of the text, or ``turns=LIST.FIELD`` for a list of turns. None for an
                index that is attached already.
            columns: The keys of speaker, start and end in a turn.
            template: The query for the words of a phrase, in the server's language, with
                ``{{phrase}}`` in the place of it. By default a ``match`` on the text.
            policy: Which spans become vectors.
            codes: The bits in which a number of a stored vector is kept: 2, 3, 4 or 8.
            rejects: The file for refused documents.
            report: Called with the summary so far.

        Returns:
            How many documents the index has, and how many were encoded, skipped and deleted.

        Raises:
            UsageError: If the index is not on a server, has no such text, or was attached with
                another text.
            IndexMissingError: If there is no such index.

        >>> with hybrid_search.connect("opensearch+https://HOST") as client:  # doctest: +SKIP
        ...     client.attach("raw-calls", "transcript").documents
        88
        """
        from hybrid_search.ingest import attach

        backend = attach.check_server(self.backend, index)
        attachment = attach.choose_attachment(backend, index, text, columns or {}, template)
        rejects_path = Path(rejects) if rejects else None
        options = IngestOptions(attachment.index, rejects_path, policy, codes, report)
        options = replace(options, rejects=options.find_rejects(self._settings.url))
        spec = self._spec(attachment.sidecar)
        encoder = self._encoders.for_spec(spec).truncated_to(spec)
        return attach.follow_index(backend, attachment, encoder, spec, options)

    def mine(
        self,
        topics: TopicSource,
        *,
        index: str = DEFAULT_INDEX,
        engine: str = LOCAL,
        workers: int | None = None,
        feedback: int = 0,
    ) -> Iterator[Match]:
        """Yield every mention of the given topics in an index, document by document.

        Every span of every passage is compared with every phrase. Each clause counts as at most one
        mention of a topic, represented by its best span.

        Args:
            topics: The topics, in any form that `hybrid_search.Topics.load` accepts: a file, or
                dicts.
            index: The index.
            engine: Where to score spans: ``local``, or ``ray`` for the actors of a Ray cluster.
            workers: How many actors to start in the cluster (default: one per core).
            feedback: Before mining, move each phrase towards the best spans of this many documents
                that it finds in the index, 0 to 100: 10 is usual, 0 turns it off.

        Raises:
            UsageError: If a topic is not valid, or names a metadata field that is not in the index.

        >>> topics = [{"name": "refund", "phrases": ["I want my money back"]}]
        >>> with hybrid_search.connect() as client:
        ...     next(client.mine(topics)).text
        "I'd like my money back"
        """
        blocks = self.mine_blocks(
            topics, index=index, engine=engine, workers=workers, feedback=feedback
        )
        for block in blocks:
            yield from block.matches

    def mine_blocks(
        self,
        topics: TopicSource,
        *,
        index: str = DEFAULT_INDEX,
        after: Any = None,
        shard: Shard = ALL_DOCUMENTS,
        engine: str = LOCAL,
        workers: int | None = None,
        feedback: int = 0,
        written_since: datetime | None = None,
        groups: CallGroups | None = None,
    ) -> Iterator[MinedBlock]:
        """Yield the matches of `mine` in blocks, each with the progress of the run.

        Args:
            topics: As in `mine`.
            index: As in `mine`.
            after: The `position` of a block of an earlier run; mining resumes after it.
            shard: Mine only the documents of this shard.
            engine: As in `mine`.
            workers: As in `mine`.
            feedback: As in `mine`.
            written_since: Mine only documents written at this time or later. Servers only.
            groups: Also count spans below the thresholds, to estimate how many mentions are missed,
                and calls in these groups, to estimate shares.

        Returns:
            The blocks; the last one has the number of documents and passages mined.

        >>> topics = [{"name": "refund", "phrases": ["I want my money back"]}]
        >>> with hybrid_search.connect() as client:
        ...     list(client.mine_blocks(topics))[-1].documents
        5
        """
        from hybrid_search.topics import mining

        PARAMETERS["feedback"].convert(feedback)
        check_executor(engine, workers)
        valid_topics, encoders = Topics.load(topics), self._encoders_of(index)
        return mining.mine(
            self.backend,
            encoders.full,
            encoders.load_calibration,
            valid_topics,
            index,
            after,
            shard,
            feedback,
            written_since,
            engine,
            workers,
            groups=groups,
        )

    def check_topics(self, topics: TopicSource) -> list[TopicDistances]:
        """Return the distances between the phrases of topics, topic by topic.

        Args:
            topics: As in `mine`. No index is used.

        Raises:
            UsageError: If a topic is not valid, or a phrase has no word.

        >>> topics = [{"name": name, "phrases": [name]} for name in ("refund", "money back")]
        >>> with hybrid_search.connect() as client:
        ...     client.check_topics(topics)[0].nearest_other.other
        'money back'
        """
        from hybrid_search.topics.topic_distances import measure_distances

        return measure_distances(self.encoder, Topics.load(topics))

    def explain_rules(
        self, topics: TopicSource, *, index: str | None = None
    ) -> list[RuleExplanation]:
        """Return what each rule of some topics says in words, and which part decides.

        A part decides if leaving it out changes the number of documents in which the rule holds
        more than leaving out any other part does.

        Args:
            topics: As in `mine`.
            index: The index in which rules are counted; None for words only.

        Raises:
            UsageError: If a topic or rule is not valid.

        >>> topics = [{"name": name, "phrases": [name]} for name in ("refund", "sorry")]
        >>> topics += [{"name": "excused", "rule": {"then": ["refund", "sorry"]}}]
        >>> with hybrid_search.connect() as client:
        ...     client.explain_rules(topics)[0].sentence
        'excused: a call that has refund, then sorry'
        """
        from hybrid_search.topics.rule_check import explain_rules

        open_blocks = None if index is None else partial(self.mine_blocks, index=index)
        return explain_rules(Topics.load(topics), open_blocks)

    def queue_judging(
        self,
        topics: TopicSource,
        judgments: str | Path | None = None,
        *,
        index: str = DEFAULT_INDEX,
        report: ReportMining | None = None,
        shares: bool = False,
    ) -> JudgingQueue:
        """Return a queue of spans to judge, most informative first.

        Mines the index with a low threshold, and draws a sample of each topic's spans.

        Args:
            topics: As in `mine`.
            judgments: A file of judgments, which need not exist. Spans judged there are not queued
                again.
            index: The index.
            report: Called with the progress of the mining run.
            shares: Ask about whole calls, each by its best span, so that the intervals of
                `estimate_shares` shrink most.

        Raises:
            UsageError: If a topic or a line of the file is not valid.

        >>> topics = [{"name": "refund", "phrases": ["I want my money back"]}]
        >>> with hybrid_search.connect() as client:
        ...     queue = client.queue_judging(topics)
        >>> queue.choose().topic
        'refund'
        """
        from hybrid_search.topics.share_queue import open_queue

        open_blocks = partial(self.mine_blocks, index=index)
        return open_queue(open_blocks, Topics.load(topics), judgments, report, shares=shares)

    @expand_options(ShareOptions)
    def estimate_shares(
        self, topics: TopicSource, *, index: str = DEFAULT_INDEX, **options: Unpack[ShareOptions]
    ) -> dict[str, TopicShare | None]:
        """Return the share of calls that have each topic, with its 90 % interval.

        Calls without a mention count as likely as their best span is. Without answers about calls
        an interval rests on the errors of the probabilities alone.

        Args:
            topics: As in `mine`.
            index: The index.
            **options: Which calls, and the answers about them.

        Returns:
            The shares by topic; None for a topic whose probabilities are only a rough guide.

        Raises:
            UsageError: If a topic, a field or a line of the file is not valid.

        >>> topics = [{"name": "refund", "phrases": ["I want my money back"]}]
        >>> with hybrid_search.connect() as client:
        ...     client.estimate_shares(topics)["refund"].share.calls
        5
        """
        from hybrid_search.topics.run import estimate_shares

        open_blocks, fields = partial(self.mine_blocks, index=index), self.describe(index).fields
        return estimate_shares(open_blocks, Topics.load(topics), options, fields)

    def tune(
        self, topics: str | Path, judgments: str | Path, *, index: str = DEFAULT_INDEX
    ) -> Tuning:
        """Fit the probabilities of topics to judgments; `mine` uses them from then on.

        Args:
            topics: A file of topics. The probabilities are written next to it, e.g.
                ``topics.tuned.json`` for ``topics.yaml``.
            judgments: A file of judgments, in the format of `hybrid_search.topics.judgments`.
            index: The index with the judged spans.

        Returns:
            The map of each topic with enough judgments, and one map for all other topics.

        Raises:
            UsageError: If a file is not valid, or all judgments have the same answer.

        >>> with hybrid_search.connect() as client:  # doctest: +SKIP
        ...     client.tune("topics.yaml", "judgments.jsonl").others.judgments
        120
        """
        from hybrid_search.topics.judgments import read_judgments
        from hybrid_search.topics.tune_run import tune_topics

        encoders, rows = self._encoders_of(index), read_judgments(Path(judgments))
        encoder, load_calibration = encoders.full, encoders.load_calibration
        return tune_topics(
            self.backend, encoder, load_calibration, Topics.load(topics), rows, index
        )

    def similar(
        self, phrase: str, *, index: str = DEFAULT_INDEX, **options: Unpack[SimilarOptions]
    ) -> list[SimilarPhrase]:
        """Return the different wordings of a phrase in an index, nearest first.

        Every span of every passage is compared with the phrase. Each clause counts once, by its
        best span.

        Args:
            phrase: The phrase.
            **options: Which wordings.
            index: The index.

        Returns:
            The wordings, each with its number of clauses and documents, and the nearest example.

        Raises:
            UsageError: If a value is not allowed, or a field is not in the index.

        >>> with hybrid_search.connect() as client:
        ...     wording = client.similar("put the money back on my card")[0]
        >>> wording.text, wording.documents, wording.example.id
        ("I'd like my money back", 1, 'shop-001')
        """
        from hybrid_search.discover import similar

        encoders = self._encoders_of(index)
        return similar.find_similar_phrases(self.backend, encoders.full, index, phrase, options)

    def cluster(
        self,
        source: PhraseSource,
        *,
        index: str | None = None,
        topic: str | None = None,
        distance: float = 0.4,
        seed: int = 0,
    ) -> list[PhraseGroup]:
        """Group phrases or mentions, and name each group. Needs the extra ``cluster``.

        The vector of a phrase is its mean over the contexts in which it is said. For matches these
        are the places where they were found; for phrases, every place in the index with the same
        words.

        Args:
            source: A file of matches if its name ends in ``.jsonl``, otherwise a file with one
                phrase per line. Or an iterable of phrases, or of the matches that `mine` yields.
            index: The index to read contexts from. Without one, phrases are encoded alone, and
                matches are looked up in the default index.
            topic: Group only the matches of this topic.
            distance: The largest mean distance (1 - cosine) between members of a group, 0 to 2.
            seed: Seed of the sample that is drawn if there are more than 5,000 different wordings.

        Returns:
            All groups, largest first.

        Raises:
            UsageError: If a value or a line of the file is not allowed.
            MissingExtraError: If scikit-learn is not installed.

        >>> phrases = ["I want a refund", "give me my money back", "please hold the line"]
        >>> with hybrid_search.connect() as client:
        ...     [group.count for group in client.cluster(phrases, distance=0.6)]
        [2, 1]
        """
        from hybrid_search.discover import cluster

        phrases, mentions = cluster.read_source(source, topic)
        if mentions and index is None:
            index = DEFAULT_INDEX
        encoders = self._encoders if index is None else self._encoders_of(index)
        return cluster.cluster(
            self.backend, encoders.full, index, phrases, mentions, distance, seed
        )

    @expand_options(DiscoverOptions)
    def discover(
        self,
        topics: TopicSource | None = None,
        *,
        index: str = DEFAULT_INDEX,
        **options: Unpack[DiscoverOptions],
    ) -> Discovery:
        """Return groups of frequent clauses that no topic covers. Needs the extra ``cluster``.

        Clauses that are not mentions of a topic are grouped. A group is ranked by its number of
        documents, capped at its number of different wordings, and lower if it is close to a topic.

        Args:
            topics: The known topics, as in `mine`; None for no topics.
            **options: What is looked at, and how it is grouped.
            index: The index.

        Returns:
            The groups, the share of documents they were computed from, and how many wordings were
            compared with each other.

        Raises:
            UsageError: If a value is not allowed, a topic is not valid, or a field is not in the
                index.
            ModelError: If the index was written with another model, or the model does not predict
                clause boundaries.
            MissingExtraError: If scikit-learn is not installed.

        >>> with hybrid_search.connect() as client:
        ...     discovery = client.discover(speakers=["customer"], groups=5)
        >>> len(discovery.groups), discovery.sampled
        (5, 1.0)
        """
        from hybrid_search.discover import discover

        known = None if topics is None else Topics.load(topics)
        encoders = self._encoders_of(index)
        return discover.discover(
            self.backend, encoders.full, encoders.load_calibration, index, known, options
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

    def delete(self, ids: Sequence[str], *, index: str = DEFAULT_INDEX) -> int:
        """Return how many documents of these ids there were, after deleting them.

        >>> with hybrid_search.connect() as client:
        ...     client.delete(["no such call"])
        0
        """
        spec, _ = self.backend.read_head(index)
        with self.backend.writer(index, spec) as writer:
            return writer.delete(list(ids))

    def drop(self, index: str) -> None:
        """Remove an index and all in it.

        >>> with hybrid_search.connect("memory:") as client:
        ...     client.setup("notes")
        ...     client.drop("notes")
        """
        self.backend.drop_index(index)

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
            lines: JSON lines of all documents, to be encoded. Without them the passages of an index
                on a server are copied.
            rejects: As in `ingest`.
            policy: The policy of the new version (default: that of the old one).
            options: Options of the new version; others stay as they were.
            keep: Keep the old version.
            report: Called with the summary so far.

        Returns:
            How many documents the new version has.

        Raises:
            UsageError: If the index is in memory, or is embedded and to be copied, kept or given
                options.
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
            policy or (spec.policy if spec else DEFAULT_POLICY),
            (spec.codes if spec else DEFAULT_BITS),
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
            sample: How many documents, drawn at random, to encode again and compare.
            full: Also read all word codes, and look for what they show of their own damage.
            repair: First encode documents with damaged codes, or without vectors on a server,
                again from their stored text. Implies `full`.

        >>> with hybrid_search.connect() as client:
        ...     client.verify(sample=1).is_sound
        True
        """
        from hybrid_search.maintenance import verify

        encoder = self._find_encoder(index)
        return verify.verify(self.backend, encoder, index, sample, full=full, repair=repair)

    def redact(self, spans: SpanSource, *, index: str = DEFAULT_INDEX) -> list[Receipt]:
        """Mask spans of documents, and remove everything that was stored of them before.

        Each character of a span becomes ``█``, so that all offsets stay true. The documents are
        encoded again without the words, and what is left of before is purged from every file; a
        server is waited for until its segments are merged. Nothing is written unless all spans are
        right.

        Args:
            spans: The spans, each with the ``id`` of its document, ``start`` and ``end`` in its
                text, and ``type``; or a file with one as JSON a line.
            index: The index.

        Returns:
            A receipt of each document, without the words.

        Raises:
            UsageError: If a span is outside its document or turn, or overlaps another one.
            DocumentMissingError: If the index has no document of an id.

        >>> with hybrid_search.connect("memory:") as client:
        ...     _ = client.ingest([{"id": "a", "text": "It is Ms Orrin, I want my money back."}])
        ...     receipts = client.redact([{"id": "a", "start": 9, "end": 14, "type": "name"}])
        ...     receipts[0].spans, client.open_document("a").text
        ({'name': 1}, 'It is Ms █████, I want my money back.')
        """
        from hybrid_search.maintenance.redact import redact

        return redact(self.backend, self._find_encoder(index), index, spans)

    def search_words(self, words: Iterable[str], *, index: str = DEFAULT_INDEX) -> WordsCheck:
        """Search everything that is stored for words that must be gone.

        What is stored of every passage is read, BM25 is asked for each term, and of an index on
        this machine the bytes of every file are searched.

        Args:
            words: The words as they were said, one text each. They are not stored.
            index: The index.

        Returns:
            What was searched, and where words still are.

        Raises:
            UsageError: If there are no words.

        >>> with hybrid_search.connect() as client:
        ...     client.search_words(["Rosalind Achterberg"]).is_clean
        True
        """
        from hybrid_search.maintenance.verify.redacted import search_words

        return search_words(self.backend, index, words)

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
        from hybrid_search.maintenance import plan

        info = self.describe(index) if index else None
        spec = info.spec if info else None
        policy = policy or (spec.policy if spec else DEFAULT_POLICY)
        window_policy.parse(policy)
        encoder = self._encoders.for_spec(spec).truncated_to(spec)
        count = documents or (info.documents if info else None)
        return plan.plan(plan.take_sample(encoder, lines), policy, encoder.info.dimension, count)

    def _find_tuned_map(self, fingerprint: str, phrases: Sequence[str]) -> Calibration | None:
        if self._settings.tuning is None:
            return None
        from hybrid_search.topics.mention_calibration import find_query_map

        return find_query_map(self._settings.tuning, fingerprint, phrases)

    def _encoders_of(self, index: str) -> ClientEncoders:
        """Return the encoders with which an index is searched.

        Reads the index head only if there is a choice of models.
        """
        if not self._encoders.may_choose:
            return self._encoders
        return self._encoders.for_spec(self.backend.read_head(index)[0])

    def _find_encoder(self, index: str) -> Encoder:
        """Return the encoder that an index is written with."""
        spec, _ = self.backend.read_head(index)
        return self._encoders.for_spec(spec).truncated_to(spec)

    def _spec(self, index: str) -> IndexSpec | None:
        """Return the spec of an index, None if there is no such index."""
        try:
            return self.backend.read_head(index)[0]
        except IndexMissingError:
            return None

    def __repr__(self) -> str:
        return f"{type(self).__name__}({self._settings.url!r})"


def _read_text(text: str | Sequence[str | Mapping[str, Any]]) -> str | Document:
    """Return a text, or a document made of turns; raise UsageError if it is neither."""
    if isinstance(text, str) or not isinstance(text, Sequence):
        check_text("text", text)
        return text
    from hybrid_search.ingest import document_parser  # imports pydantic, so only when needed

    try:
        return document_parser.parse(json.dumps({"id": "-", "turns": list(text)}).encode())[0]
    except (TypeError, ValueError, InputError) as error:
        raise UsageError(f"text is no text and no list of turns: {error}") from error
