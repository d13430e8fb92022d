"""Module-level functions, each of which calls a method of one shared client per process."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import lru_cache
from typing import TYPE_CHECKING, Any, Unpack

from hybrid_search.config import ConnectOptions, Settings, settings
from hybrid_search.parameters import expand_options
from hybrid_search.search.hit import Span
from hybrid_search.search.query import QueryOptions, SpanOptions
from hybrid_search.search.quote import QuoteCheck, QuoteOptions
from hybrid_search.search.result import Result

if TYPE_CHECKING:
    from hybrid_search.client import Client


@expand_options(ConnectOptions)
def connect(url: str | None = None, **options: Unpack[ConnectOptions]) -> Client:
    """Return a client for the indexes at a URL.

    Args:
        url: ``embedded:PATH``, ``memory:``, ``opensearch+https://HOST``,
            ``elasticsearch+https://HOST``, or ``https://HOST`` of either (default:
            ``HYBRID_SEARCH_URL``, else the user's data folder).
        **options: The model, and how to reach a server.

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

    return Client(settings(url, **options))


@expand_options(QueryOptions)
def query(
    phrase: str | Sequence[str], *, url: str | None = None, **options: Unpack[QueryOptions]
) -> Result:
    """Find a phrase in an index: documents, fused scores, and the offsets of the matching words.

    Args:
        phrase: The phrase, or several phrases: each passage is scored by the one that fits it best.
        **options: The other parameters; docs/query.md says more about some.
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


@expand_options(QuoteOptions)
def check_quote(
    text: str, *, url: str | None = None, **options: Unpack[QuoteOptions]
) -> QuoteCheck:
    """Return each place where a quotation stands in an index, or what comes nearest.

    The words must stand there in sequence, within one turn. Case, accents in English, punctuation
    and spaces make no difference. "..." in a quotation stands for any words.

    Args:
        text: The quotation.
        **options: The index, and how many places to list.
        url: As in `connect` (default: None, ``HYBRID_SEARCH_URL``).

    Raises:
        UsageError: If the quotation has no word.

    >>> check = hybrid_search.check_quote("I would like my money back")
    >>> check.found, check.nearest[0].text
    (False, "I'd like my money back")
    """
    return shared_client(url).check_quote(text, **options)


@expand_options(SpanOptions)
def best_spans(
    phrase: str, text: str | Sequence[str | Mapping[str, Any]], **options: Unpack[SpanOptions]
) -> list[Span]:
    """Return the best non-overlapping spans of one text, best first. No index is used.

    Args:
        phrase: The phrase.
        text: The text to look in, or the turns of a call, each ``{"speaker": ..., "text": ...}``.
            Offsets then refer to the texts of the turns joined by newlines.
        **options: Which spans. With a speaker, the text must have turns.

    Raises:
        UsageError: If `k` is less than 1, the phrase has no word, or the context lacks it.

    >>> text = "I bought it last week. I want my money back."
    >>> span = hybrid_search.best_spans("refund request", text)[0]
    >>> span.text, span.start, span.end
    ('I want my money back', 23, 43)
    """
    return shared_client("memory:").best_spans(phrase, text, **options)


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
    return _open_client(settings(url))


@lru_cache(maxsize=8)
def _open_client(settings: Settings) -> Client:
    from hybrid_search.client import Client

    return Client(settings)
