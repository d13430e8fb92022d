"""The module-level functions: each calls the method of a client, which this process keeps."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import lru_cache
from pathlib import Path
from typing import TYPE_CHECKING, Any, Unpack

from hybrid_search.search.query import Query, QueryOptions, expand_options
from hybrid_search.search.result import Result, Span

if TYPE_CHECKING:
    from hybrid_search.client import Client
    from hybrid_search.config import Settings


def connect(
    url: str | None = None,
    *,
    model: str | Path | None = None,
    device: str | None = None,
    dimension: int | None = None,
    precision: str | None = None,
    patience: float | None = None,
    tuning: str | Path | None = None,
) -> Client:
    """Return a client for the indexes at a URL.

    Args:
        url: ``embedded:PATH``, ``memory:``, ``opensearch+https://HOST``,
            ``elasticsearch+https://HOST``, or ``https://HOST`` of either (default:
            ``HYBRID_SEARCH_URL``, else the user's data folder).
        model: A model folder, or the name of an installed model (default:
            ``HYBRID_SEARCH_MODEL``, else the shipped one).
        device: auto, cpu, cuda, tensorrt, or cuda:1 (default: ``HYBRID_SEARCH_DEVICE``, else auto).
        dimension: How many numbers the vectors of new indexes have (default:
            ``HYBRID_SEARCH_DIMENSION``, else the model's usual size). Fewer take less space and
            time, and find a little less. Existing indexes keep their dimension.
        precision: auto, int8, float16 or float32 (default: ``HYBRID_SEARCH_PRECISION``, else auto:
            int8 on CPUs, float16 elsewhere). An index of one can be searched in another.
        patience: How many seconds an ingest waits for a server that takes nothing (default:
            ``HYBRID_SEARCH_PATIENCE``, else 600).
        tuning: A file that ``tune`` has written, for the probabilities of queries (default:
            ``HYBRID_SEARCH_TUNING``, else those of the model).

    Returns:
        A client, to be closed by leaving its ``with`` block.

    Raises:
        UsageError: If the URL or a setting is not valid.

    >>> with hybrid_search.connect("memory:") as client:
    ...     client.ingest([{"id": "a", "text": "I want my money back."}]).documents
    ...     client.query("refund").hits[0].id
    1
    'a'
    """
    from hybrid_search.client import Client
    from hybrid_search.config import settings

    return Client(settings(url, model, device, dimension, precision, patience, tuning))


@expand_options(QueryOptions)
def query(
    phrase: str | Sequence[str], *, url: str | None = None, **options: Unpack[QueryOptions]
) -> Result:
    """Find a phrase in an index: documents, fused scores, and the offsets of the matching words.

    Args:
        phrase: The phrase, or several: a passage counts by the one that it fits best.
        index: The name of the index (default: ``"calls"``).
        alpha: The weight of the span cosine, 0 to 1: 0 is BM25 only, 1 is spans only (default:
            0.5).
        size: How many hits, at least 1 (default: 10). At most 10,000.
        where: Metadata that a document must have, all of it: ``{"sector": "bank"}``, one of
            several ``{"tier": ["gold", "silver"]}``, a range ``{"date": {"gte": "2026-01-01"}}``
            with gt, gte, lt, lte, none of some ``{"tier": {"ne": "gold"}}``, or any
            ``{"tier": {"exists": True}}``. Dates and numbers are compared by value. ``id`` is the
            document's id (default: None, no filter).
        fusion: How both scores become one: calibrated, min_max, l2, z_score or rrf (default:
            ``"calibrated"``).
        context: A text that holds the phrase, to say in which sense it is meant (default: None).
        spans: How many of its best spans a hit shows, 0 to 100 (default: 3).
        spans_by: What they are chosen by: score, the cosine and a prior of how well a span's ends
            and length fit those of a clause, or cosine alone. Hits and their scores stay (default:
            ``"score"``; cosine for a model without such a prior).
        min_score: Leave out hits with a lower fused score (default: None, none is left out).
        min_probability: Show only spans that express the phrase with at least this probability, 0
            to 1, by the map of `Client.mine`, and count only hits that have one. Spans then have a
            `probability` (default: None, all).
        offset: How many hits to leave out before the first, at least 0 (default: 0). Pages of up to
            100 hits are cuts of the best 100; larger ones of the best 1,000 or 10,000.
        group_by: What a hit is: document or passage (default: ``"document"``).
        refine: isolate: rank the spans of each hit again, each encoded by itself. Hits and scores
            stay (default: None).
        feedback: Search a second time, with a vector halfway to the best spans of so many of the
            best documents, 0 to 100. It finds more of what means the same, and takes longer;
            a question that has one answer is better without (default: 0, once; 10 if wanted).
        explain: Add the numbers that each score is made of (default: False).
        highlight: Add the offsets of the words that BM25 matched (default: False).
        sort: A metadata field, or ``id``, to order the fused documents by; ``-field`` puts the
            largest first. Only the hits of all pages are sorted (default: None, by score).
        facets: A metadata field or several; counts the documents with each of their values, the
            100 most frequent (default: ``()``, none).
        facets_over: What is counted: window, the documents of all pages, or matches, all in
            which a term of the phrase occurs (default: ``"window"``).
        speaker: Whose spans count, one name or several, compared exactly: those of others count
            neither in a score nor in what is shown. BM25 counts the words of all speakers of a
            passage in which one of them speaks (default: ``()``, all speakers).
        not_: A phrase that is not meant, or several: a span that is nearer to one of them than to
            the phrase does not count. Give the whole of what is not meant, "have not received
            refund", as for a topic (default: ``()``).
        url: As in `connect` (default: None, ``HYBRID_SEARCH_URL``).

    Returns:
        The hits, best first, with the offsets of the words that matched.

    Raises:
        UsageError: If a value is not allowed, or a field is not in the index.
        IndexMissingError: If there is no such index.
        ModelError: If the index was written with another model.

    >>> result = hybrid_search.query("money back", size=1, where={"sector": "shop"})
    >>> hit = result.hits[0]
    >>> hit.id, hit.spans[0].text, hit.spans[0].start, hit.spans[0].end
    ('shop-001', "I'd like my money back", 392, 414)
    """
    return shared_client(url).query(phrase, **options)


def best_spans(
    phrase: str,
    text: str | Sequence[str | Mapping[str, Any]],
    *,
    k: int = 1,
    context: str | None = None,
    spans_by: str = Query.spans_by,
    speaker: str | Sequence[str] | None = None,
    not_: str | Sequence[str] | None = None,
) -> list[Span]:
    """Return the best spans of one text that do not overlap, best first. No index is used.

    Args:
        phrase: The phrase.
        text: The text to look in, or the turns of a call, each ``{"speaker": ..., "text": ...}``:
            offsets then refer to their texts, joined by newlines.
        k: How many spans, at least 1.
        context: A text that holds the phrase, to say in which sense it is meant.
        spans_by: What they are chosen by, as in `query`.
        speaker: Whose spans count, as in `query`; for turns only.
        not_: What is not meant, as in `query`.

    Raises:
        UsageError: If `k` is less than 1, the phrase has no word, or the context lacks it.

    >>> text = "I bought it last week. I want my money back."
    >>> span = hybrid_search.best_spans("refund request", text)[0]
    >>> span.text, span.start, span.end
    ('I want my money back', 23, 43)
    """
    client = shared_client("memory:")
    return client.best_spans(
        phrase, text, k=k, context=context, spans_by=spans_by, speaker=speaker, not_=not_
    )


def phrase_similarity(
    a: str, b: str, *, context1: str | None = None, context2: str | None = None
) -> float:
    """Return the cosine of two phrases, -1..1, each inside its context if it has one.

    Args:
        a: The first phrase.
        b: The second phrase.
        context1: A text that holds `a`, to say in which sense it is meant.
        context2: A text that holds `b`.

    Raises:
        UsageError: If a phrase has no word, or its context lacks it.

    >>> hybrid_search.phrase_similarity("refund", "money back") > 0.5
    True
    """
    return shared_client("memory:").phrase_similarity(a, b, context1=context1, context2=context2)


def shared_client(url: str | None) -> Client:
    """Return this process's client for `url` and the environment as they are now.

    It is never closed, so that the functions here and the retrievers load one encoder.

    Args:
        url: As in `connect`.

    Raises:
        UsageError: If the URL or a setting is not valid.

    >>> hybrid_search.api.shared_client("memory:") is hybrid_search.api.shared_client("memory:")
    True
    """
    from hybrid_search.config import settings

    return _open_client(settings(url))


@lru_cache(maxsize=8)
def _open_client(settings: Settings) -> Client:
    from hybrid_search.client import Client

    return Client(settings)
