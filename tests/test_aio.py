"""`AsyncClient`: every method of the client, many queries at once over few connections, and an event loop that stays free."""

from __future__ import annotations

import asyncio
import contextlib
import inspect
import json
import subprocess
import sys
import time
from collections.abc import Coroutine, Iterator
from dataclasses import dataclass
from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest

from hybrid_search import AsyncClient, connect
from hybrid_search.backends.server.address import Address
from hybrid_search.client import Client
from hybrid_search.errors import IndexMissingError, UsageError
from hybrid_search.ingest.sources import Line
from hybrid_search.results import Result
from tests import live

PHRASES = (
    "refund request",
    "waiting on hold",
    "cancel my order",
    "broken kettle",
    "the card was charged twice",
    "thank you for your help",
    "change of address",
    "talk to a manager",
    "late delivery",
    "password",
)
QUERIES = 200
THREADS = 8

METHODS = {name for name, value in vars(Client).items() if inspect.isfunction(value) and not name.startswith("_")}


@dataclass(frozen=True, slots=True)
class Place:
    """Where an index is."""

    url: str
    index: str


@pytest.fixture(scope="module", params=["embedded", *live.SERVERS])
def place(request: pytest.FixtureRequest, sample_url: str, calls: list[dict[str, Any]]) -> Iterator[Place]:
    """An index that is only read: the sample, or on a server a part of it."""
    if request.param == "embedded":
        yield Place(sample_url, "calls")
        return
    with live.own_name(request.param) as name:
        with connect(request.param) as client:
            client.ingest(calls[:16], index=name)
        yield Place(request.param, name)


def running(program: Coroutine[Any, Any, None]) -> None:
    """Run a test's own coroutine; one that hangs fails."""
    asyncio.run(asyncio.wait_for(program, 240))


def found(result: Result) -> list[dict[str, Any]]:
    """All that a result says but how long it took."""
    return [hit.to_dict() for hit in result]


def sockets(url: str) -> int:
    """This process's open connections to the server at `url`, by the kernel's own list; 0 for a folder."""
    if url.startswith("embedded:"):
        return 0
    ours = set()
    for link in Path("/proc/self/fd").iterdir():
        with contextlib.suppress(FileNotFoundError):  # closed since it was listed
            ours.add(link.readlink().name)
    rows = [line.split() for name in ("tcp", "tcp6") for line in Path("/proc/net", name).read_text().splitlines()[1:]]
    there = f":{Address.parse(url).port:04X}"
    return sum(row[2].endswith(there) and row[3] == "01" and f"socket:[{row[9]}]" in ours for row in rows)


# What there is


def test_it_has_every_method_of_the_client() -> None:
    assert {"query", "ingest", "reindex", "close"} <= METHODS
    assert not {name for name in METHODS if not hasattr(AsyncClient, name)}


@pytest.mark.parametrize("name", sorted(METHODS))
def test_a_method_takes_and_says_what_that_of_the_client_does_and_is_awaited(name: str) -> None:
    mine, theirs = getattr(AsyncClient, name), getattr(Client, name)
    assert inspect.signature(mine) == inspect.signature(theirs)
    assert inspect.iscoroutinefunction(mine)
    assert inspect.getdoc(mine)
    assert name == "close" or inspect.getdoc(mine) == inspect.getdoc(theirs)


def test_it_is_made_of_the_same_url_model_and_device() -> None:
    assert list(inspect.signature(connect).parameters) == [each for each in inspect.signature(AsyncClient).parameters if each != "threads"]
    assert repr(AsyncClient("embedded:here")) == "AsyncClient('embedded:here')"


def test_to_import_the_package_loads_none_of_it_and_the_name_is_there() -> None:
    program = "import hybrid_search, sys; print(sorted({'asyncio', 'hybrid_search.aio'} & set(sys.modules)), hybrid_search.AsyncClient)"
    said = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True).stdout
    assert said == "[] <class 'hybrid_search.aio.AsyncClient'>\n"


# What it does


def test_what_is_ingested_is_found_listed_deleted_and_dropped() -> None:
    async def program() -> None:
        async with AsyncClient("embedded:here") as client:
            summary = await client.ingest([{"id": "a", "text": "My money back."}, {"id": "b", "text": "Waiting on hold."}], index="talks")
            assert (summary.documents, summary.failed) == (2, 0)
            assert await client.indexes() == ["talks"]
            assert (await client.describe("talks")).documents == 2
            assert [hit.id for hit in await client.query("money back", index="talks", size=1)] == ["a"]
            assert (await client.best_spans("money", "all my money"))[0].text == "money"
            assert await client.phrase_similarity("money", "money") == pytest.approx(1.0, abs=1e-3)
            assert await client.delete(["a"], index="talks") == 1
            await client.drop("talks")
            assert await client.indexes() == []

    running(program())


@pytest.mark.parametrize("url", live.URLS)
def test_an_index_on_a_server_is_set_up_filled_and_made_anew(url: str) -> None:
    async def program(name: str) -> None:
        async with AsyncClient(url) as client:
            await client.setup(name, policy="4/1")
            await client.ingest([{"id": "a", "text": "My money back, please, and that at once."}], index=name)
            before = await client.describe(name)
            await client.reindex(name, policy="2/2")
            after = await client.describe(name)
            assert (after.documents, after.spec.policy) == (1, "2/2")
            assert after.spans > before.spans
            assert [path for path, _ in await client.requests("money", index=name)] == [f"/{name}/_search"] * 2

    with live.own_name(url) as name:
        running(program(name))


def test_many_queries_at_once_find_what_each_finds_alone_over_few_connections(place: Place) -> None:
    with connect(place.url) as client:
        alone = {phrase: found(client.query(phrase, index=place.index)) for phrase in PHRASES}

    async def program() -> None:
        ticks, most = [time.monotonic()], [0]

        async def ticking() -> None:
            while True:
                await asyncio.sleep(0.01)
                ticks.append(time.monotonic())
                most[0] = max(most[0], sockets(place.url))

        async with AsyncClient(place.url, threads=THREADS) as client:
            await client.query("warm", index=place.index)
            ticker = asyncio.create_task(ticking())
            asked = [PHRASES[number % len(PHRASES)] for number in range(QUERIES)]
            results = await asyncio.gather(*(client.query(phrase, index=place.index) for phrase in asked))
            ticker.cancel()
        assert [found(result) for result in results] == [alone[phrase] for phrase in asked]
        gaps = [after - before for before, after in pairwise(ticks)]
        assert len(gaps) > 20
        assert max(gaps) < 1.0  # a loop that computed itself would not tick before the end
        assert most[0] <= THREADS
        assert (most[0] > 0) == (not place.url.startswith("embedded:"))

    running(program())


def test_errors_come_out_as_themselves_beside_results(place: Place) -> None:
    async def program() -> None:
        async with AsyncClient(place.url) as client:
            asked = [client.query("refund", index="nope"), client.query(" ", index=place.index), client.query("refund", index=place.index)]
            missing, blank, result = await asyncio.gather(*asked, return_exceptions=True)
            assert isinstance(missing, IndexMissingError)
            assert str(missing).startswith("there is no index 'nope'")
            assert isinstance(blank, UsageError)
            assert isinstance(result, Result)
            with pytest.raises(UsageError, match="alpha is 2"):
                await client.query("refund", index=place.index, alpha=2)

    running(program())


def test_one_that_is_cancelled_does_not_hurt_the_others(place: Place) -> None:
    """Some of them wait for a thread when they are cancelled, some for the server."""
    with connect(place.url) as client:
        expected = found(client.query("refund", index=place.index))

    async def program() -> None:
        async with AsyncClient(place.url, threads=2) as client:
            tasks = [asyncio.create_task(client.query("refund", index=place.index)) for _ in range(12)]
            await asyncio.sleep(0.02)
            cancelled = [each.cancel() for each in tasks[::2]]
            assert any(cancelled)  # one that is done is not: the first may be, where the server is quick
            results = await asyncio.gather(*tasks, return_exceptions=True)
            assert [isinstance(each, asyncio.CancelledError) for each in results[::2]] == cancelled
            assert [found(each) for each in results if isinstance(each, Result)] == [expected] * (len(tasks) - sum(cancelled))
            assert found(await client.query("refund", index=place.index)) == expected

    running(program())


def test_a_call_that_waits_for_too_long_can_be_given_up(place: Place) -> None:
    async def program() -> None:
        async with AsyncClient(place.url, threads=1) as client:
            with pytest.raises(TimeoutError):
                await asyncio.wait_for(client.query("refund", index=place.index), 0.0001)
            assert len(await client.query("refund", index=place.index)) > 0

    running(program())


def test_to_close_waits_for_what_runs_and_then_calls_fail(place: Place) -> None:
    async def program() -> None:
        client = AsyncClient(place.url, threads=2)
        tasks = [asyncio.create_task(client.query("refund", index=place.index)) for _ in range(4)]
        await asyncio.sleep(0)
        await client.close()
        assert all(len(each) > 0 for each in await asyncio.gather(*tasks))
        for call in (client.query("refund", index=place.index), client.indexes(), client.ingest([])):
            with pytest.raises(UsageError, match=r"AsyncClient\(.*\) is closed: open another one"):
                await call
        await client.close()
        assert sockets(place.url) == 0

    running(program())


def test_an_error_in_its_block_is_raised_and_it_is_closed() -> None:
    async def program() -> None:
        client = AsyncClient("memory:")
        with pytest.raises(ZeroDivisionError):
            async with client:
                raise ZeroDivisionError
        with pytest.raises(UsageError, match="is closed"):
            await client.indexes()

    running(program())


def test_documents_may_come_from_a_generator_and_progress_is_told(tmp_path: Path) -> None:
    seen: list[int] = []

    async def program() -> None:
        async with AsyncClient(f"embedded:{tmp_path / 'here'}") as client:
            assert (await client.ingest(({"id": str(number), "text": "money"} for number in range(5)), index="talks")).documents == 5
            line = Line("here", 1, json.dumps({"id": "x", "text": "more"}).encode())
            await client.ingest_lines([line], index="talks", report=lambda summary: seen.append(summary.documents))

    running(program())
    assert seen == [0, 1]  # when it begins, and after its one block
