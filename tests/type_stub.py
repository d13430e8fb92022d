"""The types of the public calls, checked by mypy alone: nothing here is run."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any, assert_type

import hybrid_search
from hybrid_search import AsyncClient, Hit, QuoteCheck, Result, Span
from hybrid_search.backends.types import IndexInfo
from hybrid_search.client import Client
from hybrid_search.ingest.summary import Summary
from hybrid_search.ingest.types import SourceLine


def check_functions() -> None:
    assert_type(hybrid_search.query("refund request", alpha=0.5), Result)
    assert_type(
        hybrid_search.query(
            ["refund", "money back"],
            where={"sector": "bank", "date": {"gte": "2026-01-01"}},
            url="memory:",
        ),
        Result,
    )
    assert_type(
        hybrid_search.best_spans("refund", "I want my money back", k=2, context="a refund"),
        list[Span],
    )
    assert_type(
        hybrid_search.phrase_similarity(
            "refund", "money back", context1=None, context2="my money back"
        ),
        float,
    )
    assert_type(hybrid_search.connect(), Client)
    assert_type(
        hybrid_search.connect("embedded:/srv/search", model=Path("model"), device="cpu"), Client
    )
    assert_type(hybrid_search.__version__, str)


def check_results(result: Result) -> None:
    assert_type(result.hits, list[Hit])
    assert_type(len(result), int)
    assert_type(result.total, int)
    assert_type(result.to_dict(), dict[str, Any])
    for hit in result:
        assert_type(hit, Hit)
        assert_type(
            (hit.id, hit.passage, hit.score, hit.bm25, hit.cosine),
            tuple[str, int, float, float, float],
        )
        assert_type((hit.bm25_rank, hit.cosine_rank), tuple[int | None, int | None])
        assert_type(hit.metadata, Mapping[str, Any])
        for span in hit.spans:
            assert_type(
                (span.start, span.end, span.text, span.cosine, span.turn),
                tuple[int, int, str, float, int],
            )
            assert_type((span.speaker, span.start_ms), tuple[str | None, int | None])


def check_clients(documents: list[dict[str, str]]) -> None:
    with hybrid_search.connect() as client:
        assert_type(client, Client)
        assert_type(client.ingest(documents, index="calls", rejects="rejected.jsonl"), Summary)
        assert_type(
            client.query(
                "refund", index="calls", size=3, group_by="passage", refine="isolate", explain=True
            ),
            Result,
        )
        assert_type(client.check_quote("my money back", index="calls", places=3), QuoteCheck)
        assert_type(client.best_spans("refund", "my money back"), list[Span])
        assert_type(client.phrase_similarity("refund", "money back"), float)
        assert_type(client.delete(["a", "b"]), int)
        assert_type(client.indexes(), list[str])
        assert_type(client.describe("calls").fields, Mapping[str, str])
        assert_type(
            client.query(
                "refund",
                highlight=True,
                sort="-date",
                facets=["sector"],
                facets_over="matches",
            ),
            Result,
        )
        assert_type(client.requests("refund", alpha=0.3), list[tuple[str, dict[str, Any]]])
        assert_type(
            client.reindex("calls", policy="4/1", options={"quantization": "int8"}, keep=True),
            Summary,
        )
        client.setup("calls", policy="6/1", options={"shards": "3"})
        client.drop("calls")


async def check_async_clients(documents: list[dict[str, str]], lines: list[SourceLine]) -> None:
    async with AsyncClient(
        "embedded:/srv/search", model=Path("model"), device="cpu", threads=4
    ) as client:
        assert_type(client, AsyncClient)
        assert_type(hybrid_search.AsyncClient(), AsyncClient)
        assert_type(
            await client.query(
                "refund", index="calls", size=3, where={"sector": "bank"}, explain=True
            ),
            Result,
        )
        assert_type(
            await client.query(["refund", "money back"], highlight=True, facets=["sector"]), Result
        )
        assert_type(await client.requests("refund", alpha=0.3), list[tuple[str, dict[str, Any]]])
        assert_type(await client.check_quote("my money back", places=3), QuoteCheck)
        assert_type(await client.best_spans("refund", "my money back", k=2), list[Span])
        assert_type(await client.phrase_similarity("refund", "money back"), float)
        assert_type(
            await client.ingest(documents, index="calls", rejects="rejected.jsonl"), Summary
        )
        assert_type(await client.ingest_lines(lines, policy="4/1"), Summary)
        assert_type(await client.reindex("calls", lines, options={"quantization": "int8"}), Summary)
        assert_type(await client.delete(["a", "b"]), int)
        assert_type(await client.describe("calls"), IndexInfo)
        assert_type(await client.indexes(), list[str])
        await client.setup("calls")
        await client.drop("calls")
        await client.close()


def check_refused_calls() -> None:
    """These calls must not type-check: mypy reports an ignore that is not needed."""
    hybrid_search.query("refund", 0.5)  # type: ignore[call-arg, arg-type]
    hybrid_search.query("refund", alpha="half")  # type: ignore[arg-type]
    hybrid_search.query(5)  # type: ignore[arg-type]
    hybrid_search.best_spans("refund")  # type: ignore[call-arg]
    hybrid_search.connect(5)  # type: ignore[arg-type]


async def check_refused_awaits(client: AsyncClient) -> None:
    """The same of the asynchronous client, and what is not awaited is no result."""
    await client.query("refund", alpha="half")  # type: ignore[arg-type]
    await client.query("refund", limit=5)  # type: ignore[call-arg]
    await client.best_spans("refund")  # type: ignore[call-arg]
    client.query("refund").hits  # type: ignore[attr-defined]  # noqa: B018
