"""`AsyncClient`: every method of the client, many queries at once, and a free event loop."""

from __future__ import annotations

import asyncio
import contextlib
import inspect
import json
import subprocess
import sys
import time
from collections.abc import Coroutine
from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest

from hybrid_search import AsyncClient, connect
from hybrid_search.backends.server.transport.address import Address
from hybrid_search.client import Client
from hybrid_search.errors import IndexMissingError, UsageError
from hybrid_search.ingest.types import SourceLine
from hybrid_search.search.result import Result
from tests.helpers import live_servers
from tests.helpers.server_index import RawIndex

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

METHODS = {
    name
    for name, value in inspect.getmembers(Client, inspect.isfunction)
    if not name.startswith("_")
}


def run_program(program: Coroutine[Any, Any, None]) -> None:
    """Run a test's own coroutine; one that hangs fails."""
    asyncio.run(asyncio.wait_for(program, 240))


def hit_dicts(result: Result) -> list[dict[str, Any]]:
    """All that a result says but how long it took."""
    return [hit.to_dict() for hit in result]


def count_sockets(url: str) -> int:
    """Count this process's connections to a server, by the kernel's list; 0 for a folder."""
    if url.startswith("embedded:"):
        return 0
    own_sockets = set()
    for link in Path("/proc/self/fd").iterdir():
        with contextlib.suppress(FileNotFoundError):  # closed since it was listed
            own_sockets.add(link.readlink().name)
    rows = [
        line.split()
        for name in ("tcp", "tcp6")
        for line in Path("/proc/net", name).read_text().splitlines()[1:]
    ]
    port_suffix = f":{Address.parse(url).port:04X}"
    open_sockets = [
        f"socket:[{row[9]}]" for row in rows if row[2].endswith(port_suffix) and row[3] == "01"
    ]
    return len(own_sockets.intersection(open_sockets))


# What there is


def test_it_has_every_method_of_the_client() -> None:
    assert {"query", "ingest", "reindex", "close"} <= METHODS
    assert not {name for name in METHODS if not hasattr(AsyncClient, name)}


@pytest.mark.parametrize("name", sorted(METHODS))
def test_a_method_takes_and_says_what_that_of_the_client_does_and_is_awaited(name: str) -> None:
    mine, theirs = getattr(AsyncClient, name), getattr(Client, name)
    assert inspect.signature(mine) == inspect.signature(theirs)
    is_iterator = inspect.signature(theirs).return_annotation.startswith("Iterator")
    assert inspect.isasyncgenfunction(mine) if is_iterator else inspect.iscoroutinefunction(mine)
    assert inspect.getdoc(mine)
    assert name == "close" or inspect.getdoc(mine) == inspect.getdoc(theirs)


def test_it_is_made_of_the_same_url_model_and_device() -> None:
    assert list(inspect.signature(connect).parameters) == [
        parameter
        for parameter in inspect.signature(AsyncClient).parameters
        if parameter != "threads"
    ]
    assert repr(AsyncClient("embedded:here")) == "AsyncClient('embedded:here')"


def test_to_import_the_package_loads_none_of_it_and_the_name_is_there() -> None:
    program = (
        "import hybrid_search, sys; "
        "print(sorted({'asyncio', 'hybrid_search.async_client'} & set(sys.modules)), "
        "hybrid_search.AsyncClient)"
    )
    output = subprocess.run(
        [sys.executable, "-c", program], capture_output=True, text=True, check=True
    ).stdout
    assert output == "[] <class 'hybrid_search.async_client.AsyncClient'>\n"


# What it does


def test_what_is_ingested_is_found_listed_deleted_and_dropped() -> None:
    async def program() -> None:
        async with AsyncClient("embedded:here") as client:
            summary = await client.ingest(
                [{"id": "a", "text": "My money back."}, {"id": "b", "text": "Waiting on hold."}],
                index="talks",
            )
            assert (summary.documents, summary.failed) == (2, 0)
            assert await client.indexes() == ["talks"]
            assert (await client.describe("talks")).documents == 2
            assert [hit.id for hit in await client.query("money back", index="talks", size=1)] == [
                "a"
            ]
            assert (await client.best_spans("money", "all my money"))[0].text == "all my money"
            assert await client.phrase_similarity("money", "money") == pytest.approx(1.0, abs=1e-3)
            assert await client.delete(["a"], index="talks") == 1
            await client.drop("talks")
            assert await client.indexes() == []

    run_program(program())


@pytest.mark.parametrize("url", live_servers.URLS)
def test_an_index_on_a_server_is_set_up_filled_and_made_anew(url: str) -> None:
    async def program(name: str) -> None:
        async with AsyncClient(url) as client:
            await client.setup(name, policy="4/1")
            await client.ingest(
                [{"id": "a", "text": "My money back, please, and that at once."}], index=name
            )
            before = await client.describe(name)
            await client.reindex(name, policy="2/2")
            after = await client.describe(name)
            assert (after.documents, after.spec.policy) == (1, "2/2")
            assert after.spans > before.spans
            assert [path for path, _ in await client.requests("money", index=name)] == [
                f"/{name}/_search"
            ] * 2

    with live_servers.unique_index_name(url) as name:
        run_program(program(name))


def test_many_queries_at_once_find_what_each_finds_alone_over_few_connections(
    sample_place: RawIndex,
) -> None:
    with connect(sample_place.url) as client:
        alone = {
            phrase: hit_dicts(client.query(phrase, index=sample_place.index)) for phrase in PHRASES
        }

    async def program() -> None:
        ticks, most = [time.monotonic()], [0]

        async def record_ticks() -> None:
            while True:
                await asyncio.sleep(0.01)
                ticks.append(time.monotonic())
                most[0] = max(most[0], count_sockets(sample_place.url))

        async with AsyncClient(sample_place.url, threads=THREADS) as client:
            await client.query("warm", index=sample_place.index)
            ticker = asyncio.create_task(record_ticks())
            phrases = [PHRASES[number % len(PHRASES)] for number in range(QUERIES)]
            results = await asyncio.gather(
                *(client.query(phrase, index=sample_place.index) for phrase in phrases)
            )
            ticker.cancel()
        assert [hit_dicts(result) for result in results] == [alone[phrase] for phrase in phrases]
        gaps = [after - before for before, after in pairwise(ticks)]
        assert len(gaps) > 20
        # a loop that computed itself would not tick before the end
        assert max(gaps) < (ticks[-1] - ticks[0]) / 2
        assert most[0] <= THREADS
        assert (most[0] > 0) == (not sample_place.url.startswith("embedded:"))

    run_program(program())


def test_errors_come_out_as_themselves_beside_results(sample_place: RawIndex) -> None:
    async def program() -> None:
        async with AsyncClient(sample_place.url) as client:
            queries = [
                client.query("refund", index="nope"),
                client.query(" ", index=sample_place.index),
                client.query("refund", index=sample_place.index),
            ]
            missing, blank, result = await asyncio.gather(*queries, return_exceptions=True)
            assert isinstance(missing, IndexMissingError)
            assert str(missing).startswith("there is no index 'nope'")
            assert isinstance(blank, UsageError)
            assert isinstance(result, Result)
            with pytest.raises(UsageError, match="alpha is 2"):
                await client.query("refund", index=sample_place.index, alpha=2)

    run_program(program())


def test_one_that_is_cancelled_does_not_hurt_the_others(sample_place: RawIndex) -> None:
    """Some of them wait for a thread when they are cancelled, some for the server."""
    with connect(sample_place.url) as client:
        expected = hit_dicts(client.query("refund", index=sample_place.index))

    async def program() -> None:
        async with AsyncClient(sample_place.url, threads=2) as client:
            tasks = [
                asyncio.create_task(client.query("refund", index=sample_place.index))
                for _ in range(12)
            ]
            await asyncio.sleep(0.02)
            cancelled = [task.cancel() for task in tasks[::2]]
            assert any(
                cancelled
            )  # one that is done is not: the first may be, where the server is quick
            results = await asyncio.gather(*tasks, return_exceptions=True)
            assert [
                isinstance(result, asyncio.CancelledError) for result in results[::2]
            ] == cancelled
            assert [hit_dicts(result) for result in results if isinstance(result, Result)] == [
                expected
            ] * (len(tasks) - sum(cancelled))
            assert hit_dicts(await client.query("refund", index=sample_place.index)) == expected

    run_program(program())


def test_a_call_that_waits_for_too_long_can_be_given_up(sample_place: RawIndex) -> None:
    async def program() -> None:
        async with AsyncClient(sample_place.url, threads=1) as client:
            with pytest.raises(TimeoutError):
                await asyncio.wait_for(client.query("refund", index=sample_place.index), 0.0001)
            assert len(await client.query("refund", index=sample_place.index)) > 0

    run_program(program())


def test_to_close_waits_for_what_runs_and_then_calls_fail(sample_place: RawIndex) -> None:
    async def program() -> None:
        client = AsyncClient(sample_place.url, threads=2)
        tasks = [
            asyncio.create_task(client.query("refund", index=sample_place.index)) for _ in range(4)
        ]
        await asyncio.sleep(0)
        await client.close()
        assert all(len(result) > 0 for result in await asyncio.gather(*tasks))
        for call in (
            client.query("refund", index=sample_place.index),
            client.indexes(),
            client.ingest([]),
        ):
            with pytest.raises(UsageError, match=r"AsyncClient\(.*\) is closed: open another one"):
                await call
        await client.close()
        assert count_sockets(sample_place.url) == 0

    run_program(program())


def test_an_error_in_its_block_is_raised_and_it_is_closed() -> None:
    async def program() -> None:
        client = AsyncClient("memory:")
        with pytest.raises(ZeroDivisionError):
            async with client:
                raise ZeroDivisionError
        with pytest.raises(UsageError, match="is closed"):
            await client.indexes()

    run_program(program())


def test_documents_may_come_from_a_generator_and_progress_is_told(tmp_path: Path) -> None:
    seen: list[int] = []

    async def program() -> None:
        async with AsyncClient(f"embedded:{tmp_path / 'here'}") as client:
            assert (
                await client.ingest(
                    ({"id": str(number), "text": "money"} for number in range(5)), index="talks"
                )
            ).documents == 5
            line = SourceLine("here", 1, json.dumps({"id": "x", "text": "more"}).encode())
            await client.ingest_lines(
                [line], index="talks", report=lambda summary: seen.append(summary.documents)
            )

    run_program(program())
    assert seen == [0, 1]  # when it begins, and after its one block
