"""Compare spans beside an index of another program with an index of our own of the same calls.

The other index has the turns of each call as a list of objects, with our analyzer, so that its BM25
differs only in that a score is of a whole call.
"""

from __future__ import annotations

import time
from collections.abc import Iterable, Iterator, Mapping, Sequence, Set
from functools import partial
from itertools import islice
from statistics import fmean
from typing import Any

from benchmarks.clients import ask_by_threads, time_ways
from benchmarks.quality.measures import NDCG, grouped_mean, ndcg
from benchmarks.quality.tasks import Query
from benchmarks.servers.entries import Corpus
from benchmarks.servers.latency import (
    BATCH,
    count_stored_bytes,
    exact_cosines,
    fill,
    merge_segments,
)
from hybrid_search.backends.server import mappings
from hybrid_search.backends.server.attachment import Attachment
from hybrid_search.backends.server.backend import ServerBackend
from hybrid_search.backends.server.passage_codec import parse_passage_id
from hybrid_search.client import Client
from hybrid_search.ingest.attach import list_current
from hybrid_search.text.types import Document

TOP = 10
COLUMNS = {"turns": "utterances", "text": "text", "speaker": "speaker"}
MOST_CHANGES = 1000
NEWS = "Yesterday the courier left the lamp with a neighbour."
"""A turn that is added to a call, whose text is thereby another."""


ALPHAS = {"bm25": 0.0, "hybrid": 0.5, "spans": 1.0}


def measure(
    client: Client, corpus: Corpus, index: str, phrases: Sequence[str], queries: Sequence[Query]
) -> dict[str, Any]:
    """Return what both find, their bytes and milliseconds, and how soon changes are known.

    `queries` have labelled calls.
    """
    backend = client.backend
    assert isinstance(backend, ServerBackend)
    other = f"{index}-other"
    documents = list({entry.document.id: entry.document for entry in corpus.entries}.values())
    fill(backend, corpus, index)
    _make_other(backend, corpus, other, documents)
    _attach(backend, corpus, other)
    for name in (index, f"{other}.spans"):
        merge_segments(backend, name)
    exact = {
        text: _rank_calls(cosines) for text, _, cosines in exact_cosines(corpus, tuple(phrases))
    }
    call_ids = {document.id for document in documents}
    ways = {
        name: partial(ask_by_threads, partial(client.query, index=asked))
        for name, asked in (("own", index), ("attached", other))
    }
    measured = {
        "calls": len(documents),
        "passages": len(corpus.entries),
        "phrases": len(phrases),
        f"of the {TOP} best calls in common": {
            name: _compare(client, index, other, phrases, alpha) for name, alpha in ALPHAS.items()
        },
        f"{NDCG} by call": {
            name: {
                "own": _rank(client, index, queries, call_ids, alpha),
                "attached": _rank(client, other, queries, call_ids, alpha),
            }
            for name, alpha in ALPHAS.items()
        },
        f"recall@{TOP} of spans": {
            name: _measure_recall(client, asked, exact)
            for name, asked in (("own", index), ("attached", other))
        },
        "milliseconds": time_ways(ways, phrases, 1),
        "bytes": {
            "own": count_stored_bytes(backend, index),
            "sidecar": count_stored_bytes(backend, f"{other}.spans"),
            "other": count_stored_bytes(backend, other),
        },
        "changes": _measure_changes(client, backend, other, documents),
    }
    backend.drop_index(index)
    backend.drop_index(f"{other}.spans")
    backend.server.request("DELETE", f"/{other}")
    return measured


def _make_other(
    backend: ServerBackend, corpus: Corpus, other: str, documents: Sequence[Document]
) -> None:
    server, options = backend.server, backend.options
    body = mappings.index_body(server.engine, corpus.spec, options, server.version)
    analysis = body["settings"]["index"].get("analysis", {})
    text = {"type": "text", "analyzer": options.analyzer}
    properties = {"utterances": {"properties": {"text": text, "speaker": {"type": "keyword"}}}}
    settings = {"number_of_replicas": 0, "analysis": analysis}
    made = {"settings": settings, "mappings": {"properties": properties}}
    server.request("PUT", f"/{other}", body=made)
    _change(backend, other, ((document.id, _build_source(document)) for document in documents))


def _build_source(document: Document, *further: str) -> dict[str, Any]:
    turns = [{"speaker": turn.speaker, "text": turn.text} for turn in document.turns]
    return {"utterances": [*turns, *({"speaker": "agent", "text": text} for text in further)]}


def _change(
    backend: ServerBackend, other: str, sources: Iterable[tuple[str, dict[str, Any] | None]]
) -> None:
    """Write documents into the other index; None deletes one."""
    remaining = iter(sources)
    while batch := list(islice(remaining, 500)):
        lines: list[Any] = []
        for id_, source in batch:
            place = {"_index": other, "_id": id_}
            lines += [{"delete": place}] if source is None else [{"index": place}, source]
        answer = backend.server.request("POST", "/_bulk", lines=lines, params={"refresh": "true"})
        assert not answer["errors"]


def _attach(backend: ServerBackend, corpus: Corpus, other: str) -> None:
    """Write the spans of passages that are encoded already."""
    attachment = Attachment(other, COLUMNS)
    entries = iter(corpus.entries)
    with backend.attach(attachment, corpus.spec) as writer:
        versions = list_current(backend.server, attachment)
        writer.versions |= {id_: str(version) for id_, version in versions.items()}
        while batch := list(islice(entries, BATCH)):
            assert not writer.write(batch)


def _rank_calls(cosines: dict[str, float]) -> list[str]:
    """Return the calls with the best spans, from the best cosine of each passage."""
    best: dict[str, float] = {}
    for key, cosine in cosines.items():
        id_, _ = parse_passage_id(key)
        best[id_] = max(cosine, best.get(id_, -1.0))
    return sorted(best, key=best.__getitem__, reverse=True)[:TOP]


def _ask(client: Client, index: str, text: str, alpha: float, spans_by: str = "score") -> list[str]:
    result = client.query(text, index=index, alpha=alpha, size=TOP, spans_by=spans_by)
    return [hit.id for hit in result]


def _compare(client: Client, index: str, other: str, phrases: Sequence[str], alpha: float) -> float:
    pairs = (
        (_ask(client, index, text, alpha), _ask(client, other, text, alpha)) for text in phrases
    )
    return round(fmean(_overlap(*pair) for pair in pairs), 4)


def _rank(
    client: Client, index: str, queries: Sequence[Query], call_ids: Set[str], alpha: float
) -> float:
    """Return nDCG by call, the mean over an intent's wordings, then over the intents."""
    labelled = [(query, query.right.keys() & call_ids) for query in queries]
    judged = [(query, right) for query, right in labelled if right]
    values = [ndcg(_ask(client, index, query.text, alpha), right) for query, right in judged]
    return round(grouped_mean(values, [query.group for query, _ in judged]), 4)


def _measure_recall(client: Client, index: str, exact: Mapping[str, Sequence[str]]) -> float:
    """Return the share of the calls with the best spans that a query by spans alone finds."""
    shares = [
        _overlap(_ask(client, index, text, 1.0, "cosine"), best) for text, best in exact.items()
    ]
    return round(fmean(shares), 4)


def _overlap(found: Sequence[str], expected: Sequence[str]) -> float:
    return len({*found} & {*expected}) / max(len(found), len(expected), 1)


def _measure_changes(
    client: Client, backend: ServerBackend, other: str, documents: Sequence[Document]
) -> dict[str, Any]:
    """Return the seconds after which the sidecar has followed changes, and what it did.

    Six in ten calls get another text, two are written again as they were, and two are deleted.
    """
    count = min(MOST_CHANGES, len(documents) // 5)
    _change(backend, other, _list_changes(documents[:count]))
    started_at = time.perf_counter()
    summary = client.attach(other)
    seconds = time.perf_counter() - started_at
    started_at = time.perf_counter()
    client.attach(other)
    return {
        "changes": count,
        "encoded": summary.documents,
        "deleted": summary.deleted,
        "seconds": round(seconds, 1),
        "seconds without a change": round(time.perf_counter() - started_at, 1),
    }


def _list_changes(documents: Sequence[Document]) -> Iterator[tuple[str, dict[str, Any] | None]]:
    for number, document in enumerate(documents):
        if number % 10 < 6:
            yield document.id, _build_source(document, NEWS)
        else:
            yield document.id, _build_source(document) if number % 10 < 8 else None
