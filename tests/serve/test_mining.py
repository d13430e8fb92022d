"""The stream of matches, where the index fails after its first lines, or takes too long."""

from __future__ import annotations

import asyncio
import json
import time
from collections.abc import AsyncIterator
from typing import Any, cast

import pytest

from hybrid_search import api
from hybrid_search.async_client import AsyncClient
from hybrid_search.errors import DamagedIndexError
from hybrid_search.serve.app import stream_matches
from hybrid_search.serve.limits import Gate
from hybrid_search.topics.match import Match
from hybrid_search.topics.types import MinedBlock

MATCH = Match(
    "refund", "money back", "a", 0, None, 3, 8, "money", 0.5, 0.5, None, None, {"x": 1}, "m"
)
FAILURE = DamagedIndexError("the file /srv/secret/calls.db is damaged")


class FailingClient:
    """Yields a block with a match, and then an error, or nothing for too long."""

    def __init__(self, delay: float = 0.0) -> None:
        self._delay = delay

    async def mine_blocks(self, *_: Any, **__: Any) -> AsyncIterator[MinedBlock]:
        yield MinedBlock([MATCH], 1, 1, 0, None)
        await asyncio.sleep(self._delay)
        raise FAILURE


def read_lines(client: FailingClient, timeout: float) -> list[dict[str, Any]]:
    async def read() -> bytes:
        response = await stream_matches(
            cast("AsyncClient", client),
            Gate(1, timeout),
            {"topics": [{"name": "refund", "phrases": ["money back"]}]},
            "/srv/secret",
        )
        return b"".join([cast("bytes", chunk) async for chunk in response.body_iterator])

    return [json.loads(line) for line in asyncio.run(read()).splitlines()]


def test_an_error_after_the_first_lines_is_the_last_line_without_a_place() -> None:
    match, problem = read_lines(FailingClient(), timeout=10)
    assert match == MATCH.to_dict()
    assert problem["status"] == 500
    assert problem["error"] == "DamagedIndexError"
    assert "secret" not in json.dumps(problem)


@pytest.mark.parametrize("timeout", [0.05])
def test_a_block_that_takes_too_long_ends_the_stream_with_a_problem(timeout: float) -> None:
    started_at = time.monotonic()
    match, problem = read_lines(FailingClient(delay=1.0), timeout=timeout)
    assert match["id"] == "a"
    assert problem["status"] == 503
    assert time.monotonic() - started_at < 1.0


def test_the_parameters_of_a_request_are_not_described_anew_each_time() -> None:
    """That took 5 ms of each query, on the event loop."""
    from hybrid_search.serve import openapi
    from hybrid_search.serve.operations import list_operations
    from hybrid_search.serve.signatures import describe_parameters

    assert describe_parameters(api.best_spans) is describe_parameters(api.best_spans)
    for function in (
        list_operations,
        openapi.list_document_parameters,
        openapi.list_mining_parameters,
    ):
        assert function() is function()
    before = json.dumps(openapi.list_document_parameters())
    openapi.build_description.__wrapped__()
    assert json.dumps(openapi.list_document_parameters()) == before
