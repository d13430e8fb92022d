"""The module-level functions: each opens a client for its URL, or takes the one this process has,
and calls its method.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import lru_cache
from pathlib import Path
from typing import TYPE_CHECKING, Any

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
) -> Client:
    """A client for the indexes at `url` (``embedded:PATH``, ``memory:``,
    ``opensearch+https://HOST``, ``elasticsearch+https://HOST``, or ``https://HOST`` of either;
    default: ``HYBRID_SEARCH_URL``, else the user's data folder).

    `model` is a model folder (default: ``HYBRID_SEARCH_MODEL``, else the shipped one), `device` one
    of auto, cpu, cuda, tensorrt, cuda:1. `dimension` is how many numbers vectors have in indexes
    that are made (default: ``HYBRID_SEARCH_DIMENSION``, else the model's usual size): fewer take
    less space and time, and find a little less. Those that are there keep theirs. `precision` is
    one of auto, int8, float16, float32 (default: ``HYBRID_SEARCH_PRECISION``, else auto: int8 on
    CPUs, float16 elsewhere); an index of one can be asked in another. `patience` is for how many
    seconds an ingest waits for a server that takes nothing (default: ``HYBRID_SEARCH_PATIENCE``,
    else 600).
    """
    from hybrid_search.client import Client
    from hybrid_search.config import settings

    return Client(settings(url, model, device, dimension, precision, patience))


def query(
    phrase: str | Sequence[str],
    *,
    index: str = "calls",
    alpha: float = 0.5,
    size: int = 10,
    where: Mapping[str, Any] | None = None,
    fusion: str = "calibrated",
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
    url: str | None = None,
) -> Result:
    """Find `phrase` in `index`: documents, fused scores, and the character offsets of the words
    that matched.

    See `Client.query`.
    """
    return _client(url).query(
        phrase,
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
        facets=facets,
        facets_over=facets_over,
    )


def best_spans(phrase: str, text: str, *, k: int = 1, context: str | None = None) -> list[Span]:
    """The `k` best non-overlapping spans of one text and their cosines, with no index.

    See `Client.best_spans`.
    """
    return _client("memory:").best_spans(phrase, text, k=k, context=context)


def phrase_similarity(
    a: str, b: str, *, context1: str | None = None, context2: str | None = None
) -> float:
    """The cosine of two phrases, each taken inside its context where one is given.

    See `Client.phrase_similarity`.
    """
    return _client("memory:").phrase_similarity(a, b, context1=context1, context2=context2)


def _client(url: str | None) -> Client:
    """This process's client for what `url` and the environment say now."""
    from hybrid_search.config import settings

    return _open_client(settings(url))


@lru_cache(maxsize=8)
def _open_client(settings: Settings) -> Client:
    from hybrid_search.client import Client

    return Client(settings)
