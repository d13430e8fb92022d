"""The Model Context Protocol by its own client, over both transports: ``make test-frameworks``."""

from __future__ import annotations

import asyncio
import contextlib
import json
import os
import shutil
import subprocess
import sys
from collections.abc import AsyncIterator, Awaitable, Callable
from pathlib import Path
from typing import Any

import pytest

from hybrid_search import connect

pytest.importorskip("mcp", reason="make test-frameworks installs mcp")

from mcp.client.client import Client
from mcp.client.stdio import StdioServerParameters, stdio_client

pytestmark = pytest.mark.frameworks

ROOT = Path(__file__).parents[2]
SECONDS = 120
TRANSPORTS = ("stdio", "http")


def command_line(url: str, *arguments: str) -> list[str]:
    return [sys.executable, "-m", "hybrid_search", "mcp", "--url", url, *arguments]


def environment() -> dict[str, str]:
    return {**os.environ, "PYTHONPATH": str(ROOT)}


@contextlib.asynccontextmanager
async def open_stdio(url: str, log: Path) -> AsyncIterator[Any]:
    executable, *arguments = command_line(url)
    parameters = StdioServerParameters(command=executable, args=arguments, env=environment())
    with log.open("w") as messages:
        async with Client(stdio_client(parameters, messages)) as client:
            yield client


@contextlib.asynccontextmanager
async def open_http(url: str, log: Path) -> AsyncIterator[Any]:
    with log.open("w") as messages:
        process = subprocess.Popen(
            command_line(url, "--http", "--port", "0"),
            stdout=subprocess.PIPE,
            stderr=messages,
            env=environment(),
        )
        assert process.stdout is not None
        try:
            address = json.loads(process.stdout.readline())["url"]
            assert address.startswith("http://127.0.0.1:")
            async with Client(address) as client:
                yield client
        finally:
            process.terminate()
            assert process.wait(SECONDS) == 0
            process.stdout.close()


def talk(transport: str, url: str, log: Path, talking: Callable[[Any], Awaitable[None]]) -> None:
    """Run `talking` with a client of the protocol that is connected to a server of its own."""
    open_client = {"stdio": open_stdio, "http": open_http}[transport]

    async def run() -> None:
        async with asyncio.timeout(SECONDS), open_client(url, log) as client:
            await talking(client)

    asyncio.run(run())


@pytest.mark.parametrize("transport", TRANSPORTS)
def test_an_agent_lists_the_tools_and_uses_each(
    transport: str, sample_url: str, tmp_path: Path
) -> None:
    topic = {"name": "refund", "phrases": ["put the money back on my card"]}
    text = "I bought it here. I want my money back."
    calls: dict[str, dict[str, Any]] = {
        "search": {"phrase": "money back", "size": 2, "where": {"sector": "shop"}},
        "check_quote": {"text": "it's got little bones on it"},
        "best_spans": {"phrase": "refund request", "text": text},
        "open_document": {"document_id": "shop-001", "phrase": "money back"},
        "mine_topic": topic,
    }
    answers: dict[str, Any] = {}

    async def talking(client: Any) -> None:
        tools = (await client.list_tools()).tools
        assert [tool.name for tool in tools] == list(calls)
        assert all(tool.annotations.read_only_hint for tool in tools)
        for name, arguments in calls.items():
            answer = await client.call_tool(name, arguments)
            assert not answer.is_error, answer.content
            assert json.loads(answer.content[0].text) == answer.structured_content
            answers[name] = answer.structured_content

    talk(transport, sample_url, tmp_path / "log", talking)
    with connect(sample_url, device="cpu") as client:
        hits = client.query("money back", size=2, where={"sector": "shop"}).to_dict()["hits"]
        matches = [match.to_dict() for match in client.mine([topic])]
    assert answers["search"]["hits"] == hits
    assert answers["mine_topic"]["matches"] == matches
    assert answers["check_quote"]["places"][0]["id"] == "shop-001"
    assert answers["best_spans"]["spans"][0]["text"] == "I want my money back"
    assert answers["open_document"]["id"] == "shop-001"


@pytest.mark.parametrize("transport", TRANSPORTS)
def test_what_is_wrong_is_an_error_of_the_tool_and_the_server_goes_on(
    transport: str, sample_url: str, tmp_path: Path
) -> None:
    store = tmp_path / "store-of-somebody"
    shutil.copytree(sample_url.removeprefix("embedded:"), store)
    expected = {
        ("search", "alpha"): (
            {"phrase": "refund", "alpha": 3},
            "alpha is 3: it must be a number from 0 to 1",
        ),
        ("search", "index"): (
            {"phrase": "refund", "index": "cals"},
            "there is no index of this name: the indexes are 'calls'",
        ),
        ("open_document", "id"): ({"document_id": "x"}, "there is no document 'x' in index"),
        ("delete", ""): ({"index": "calls"}, "there is no tool 'delete': use search, check_quote"),
        ("mine_topic", "file"): ({"topics": "/etc/passwd"}, "there is no parameter 'topics'"),
    }

    async def talking(client: Any) -> None:
        for (name, _), (arguments, message) in expected.items():
            answer = await client.call_tool(name, arguments)
            assert answer.is_error
            assert message in answer.content[0].text
        good = await client.call_tool("search", {"phrase": "refund", "size": 1})
        assert len(good.structured_content["hits"]) == 1

    talk(transport, f"embedded:{store}", tmp_path / "log", talking)


@pytest.mark.parametrize("transport", TRANSPORTS)
def test_a_damaged_index_is_told_without_its_place(transport: str, tmp_path: Path) -> None:
    store = tmp_path / "store-of-somebody"
    with connect(f"embedded:{store}", device="cpu") as client:
        client.ingest([{"id": "a", "text": "Please send my money back."}])
    for path in store.rglob("*"):
        if path.is_file():
            path.write_bytes(b"no longer an index" * 1000)

    async def talking(client: Any) -> None:
        answer = await client.call_tool("search", {"phrase": "refund"})
        assert answer.is_error
        text = answer.content[0].text
        assert "store-of-somebody" not in text
        assert "Traceback" not in text

    talk(transport, f"embedded:{store}", tmp_path / "log", talking)


MESSAGES: list[dict[str, Any]] = [
    {
        "method": "initialize",
        "id": 1,
        "params": {
            "protocolVersion": "2025-06-18",
            "capabilities": {},
            "clientInfo": {"name": "test", "version": "1"},
        },
    },
    {"method": "notifications/initialized"},
    {
        "method": "tools/call",
        "id": 2,
        "params": {"name": "search", "arguments": {"phrase": "refund", "size": 1}},
    },
]
"""What an agent sends to search once."""

LISTENER = """
import sys
def refuse(event, arguments):
    if event in ("socket.connect", "socket.getaddrinfo", "socket.sendto"):
        print("CONNECTION", file=sys.stderr, flush=True)
        raise ConnectionError("this test sends nothing")
sys.addaudithook(refuse)
from hybrid_search.cli.app import app
app()
"""


def search_once(command: list[str], **variables: str) -> tuple[list[Any], str, str]:
    """Send `MESSAGES`, and return the answers, then the rest of standard output, and the log."""
    process = subprocess.Popen(
        command,
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        env={**environment(), **variables},
    )
    assert process.stdin is not None
    assert process.stdout is not None
    answers = []
    for message in MESSAGES:
        process.stdin.write(json.dumps({"jsonrpc": "2.0", **message}) + "\n")
        process.stdin.flush()
        if "id" in message:
            answers.append(json.loads(process.stdout.readline()))
    rest, log = process.communicate(timeout=SECONDS)
    assert process.returncode == 0
    return answers, rest, log


def test_standard_output_has_messages_of_the_protocol_and_nothing_else(sample_url: str) -> None:
    answers, rest, _ = search_once(command_line(sample_url, "--log-level", "debug"))
    assert [(answer["jsonrpc"], answer["id"]) for answer in answers] == [("2.0", 1), ("2.0", 2)]
    assert answers[1]["result"]["structuredContent"]["hits"]
    assert rest == ""


def test_the_tools_talk_to_nobody_and_leave_nothing_in_the_home_folder(
    sample_url: str, tmp_path: Path
) -> None:
    command = [sys.executable, "-c", LISTENER, "mcp", "--url", sample_url]
    home = tmp_path / "user"
    home.mkdir()
    answers, _, log = search_once(command, HOME=str(home), XDG_DATA_HOME=str(home))
    assert answers[1]["result"]["structuredContent"]["hits"]
    assert "CONNECTION" not in log
    assert [path for path in home.rglob("*") if path.is_file()] == []


def test_a_page_of_another_site_cannot_ask(sample_url: str) -> None:
    """A name that a stranger points at this machine is refused, as is a page of his as origin."""
    import httpx2

    body = {"jsonrpc": "2.0", "id": 1, "method": "tools/list"}

    with subprocess.Popen(
        command_line(sample_url, "--http", "--port", "0"),
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
        env=environment(),
    ) as process:
        assert process.stdout is not None
        address = json.loads(process.stdout.readline())["url"]
        accept = {"Accept": "application/json, text/event-stream"}
        for headers in ({"Host": "evil.example"}, {"Origin": "http://evil.example"}):
            answer = httpx2.post(address, json=body, headers={**accept, **headers})
            assert answer.status_code in (403, 421), answer.text
        process.terminate()
