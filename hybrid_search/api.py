"""Module-level functions, each of which calls a method of one shared client per process."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import lru_cache
from pathlib import Path
from typing import TYPE_CHECKING, Any, Unpack

from hybrid_search.search.hit import Span
from hybrid_search.search.query import Query, QueryOptions, expand_options
from hybrid_search.search.result import Result

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
            time, and recall drops a little. Existing indexes keep their dimension.
        precision: auto, int8, float16 or float32 (default: ``HYBRID_SEARCH_PRECISION``, else auto:
            int8 on CPUs, float16 elsewhere). An index written at one precision can be searched at
            another.
        patience: How many seconds an ingest keeps retrying a server that accepts nothing (default:
            ``HYBRID_SEARCH_PATIENCE``, else 600).
        tuning: A file written by ``tune``, used for the probabilities of queries (default:
            ``HYBRID_SEARCH_TUNING``, else the model's own probabilities).

    Returns:
        A client. Use it in a ``with`` block, which closes it.

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
        phrase: The phrase, or several phrases: each passage is scored by the one that fits it best.
        index: The name of the index (default: ``"calls"``).
        alpha: The weight of the span cosine, 0 to 1: 0 is BM25 only, 1 is spans only (default:
            0.5).
        size: How many hits to return, 1 to 10,000 (default: 10).
        where: Conditions on metadata, all of which a document must meet: ``{"sector": "bank"}``,
            one of several ``{"tier": ["gold", "silver"]}``, a range ``{"date": {"gte":
            "2026-01-01"}}`` with gt, gte, lt, lte, none of some ``{"tier": {"ne": "gold"}}``, or
            any ``{"tier": {"exists": True}}``. Dates and numbers are compared by value. ``id`` is
            the document's id (default: None, no filter).
        fusion: How to combine the two scores: calibrated, min_max, l2, z_score or rrf (default:
            ``"calibrated"``).
        context: A text that contains the phrase, to show in which sense it is meant (default:
            None).
        spans: How many of its best spans to return with each hit, 0 to 100 (default: 3).
        spans_by: How to choose these spans: score is the cosine plus a prior for how well a span's
            ends and length fit a clause; cosine is the cosine alone. Hits and their scores do not
            change (default: ``"score"``; cosine for a model without a prior).
        min_score: Leave out hits with a lower fused score (default: None, no limit).
        min_probability: Return only spans that express the phrase with at least this probability, 0
            to 1, and only hits with such a span. Probabilities are those of `Client.mine`; spans
            then have a `probability` (default: None, no limit).
        offset: How many hits to skip, at least 0 (default: 0). Pages of up to 100 hits are slices
            of the best 100, larger pages of the best 1,000 or 10,000.
        group_by: What a hit is: document or passage (default: ``"document"``).
        refine: isolate re-ranks the spans of each hit, each encoded on its own. Hits and their
            scores do not change (default: None).
        feedback: Search a second time, with the query vector moved halfway to the best spans of
            this many top documents, 0 to 100. This finds more paraphrases and takes longer; leave
            it off for a question with one answer (default: 0, off; 10 is a good value).
        explain: Add the components of each score (default: False).
        highlight: Add the offsets of the words that BM25 matched (default: False).
        sort: A metadata field, or ``id``, to sort the fused documents by; ``-field`` sorts in
            descending order. Only the hits within the window of all pages are sorted (default:
            None, by score).
        facets: One or more metadata fields. The result counts the documents for each of the 100
            most frequent values (default: ``()``, none).
        facets_over: Which documents facets count: window, the documents of all pages, or matches,
            every document that contains a term of the phrase (default: ``"window"``).
        speaker: One or more speakers, matched exactly. Only their spans are scored and returned.
            BM25 still counts the words of every speaker in a passage where one of them speaks
            (default: ``()``, all speakers).
        not_: One or more phrases to exclude: a span nearer to one of them than to the phrase does
            not count. Write each in full, such as "have not received refund", as for a topic
            (default: ``()``).
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
    """Return the best non-overlapping spans of one text, best first. No index is used.

    Args:
        phrase: The phrase.
        text: The text to look in, or the turns of a call, each ``{"speaker": ..., "text": ...}``.
            Offsets then refer to the texts of the turns joined by newlines.
        k: How many spans to return, at least 1.
        context: A text that contains the phrase, to show in which sense it is meant.
        spans_by: How to choose them, as in `query`.
        speaker: Only spans of these speakers count, as in `query`. Needs turns.
        not_: Phrases to exclude, as in `query`.

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
    """Return the cosine of two phrases, -1..1, each encoded in its context if it has one.

    Args:
        a: The first phrase.
        b: The second phrase.
        context1: A text that contains `a`, to show in which sense it is meant.
        context2: A text that contains `b`.

    Raises:
        UsageError: If a phrase has no word, or its context lacks it.

    >>> hybrid_search.phrase_similarity("refund", "money back") > 0.5
    True
    """
    return shared_client("memory:").phrase_similarity(a, b, context1=context1, context2=context2)


def shared_client(url: str | None) -> Client:
    """Return this process's shared client for `url` and the current environment.

    It is never closed, so that the functions here and the retrievers share one encoder.

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
