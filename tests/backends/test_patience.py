"""How long a writer waits for a server, and what the log says.

It waits while the server accepts something, and its patience longer; never if the error is not
transient.
"""

from __future__ import annotations

import threading
import time
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace

import pytest

from hybrid_search.backends.server.transport import retry
from hybrid_search.backends.server.transport.address import Address
from hybrid_search.backends.server.transport.bulk import Action
from hybrid_search.backends.server.transport.connection import Server, connect
from hybrid_search.credentials import Access
from hybrid_search.errors import AccessError, ServerError
from tests.helpers.fake_server import (
    HELLO,
    HttpRequest,
    Reply,
    Script,
    ScriptedServer,
    make_bulk_response,
    reply_in_turn,
)
from tools.servers.layout import free_port

BUSY = Reply(429, {"error": "the queue is full"})
OK = Reply(body={"ok": True})


@pytest.fixture(autouse=True)
def _quick(monkeypatch: pytest.MonkeyPatch) -> None:
    """Pauses of milliseconds."""
    monkeypatch.setattr(retry, "REQUEST", replace(retry.REQUEST, first=0.002, longest=0.02))


def connect_patiently(url: str, seconds: float = 60.0) -> Server:
    return connect(Address.parse(f"opensearch+{url}"), Access(timeout=5.0)).wait(seconds)


def actions(count: int) -> list[Action]:
    return [Action("calls", f"x#{number}", b"{}") for number in range(count)]


def send_all(server: ScriptedServer, count: int, seconds: float = 60.0) -> list[int]:
    """Return the status of each of so many actions."""
    outcomes = connect_patiently(server.url, seconds).send_all(actions(count))
    return [outcome.status for outcome in outcomes]


def take_one_action(request: HttpRequest) -> Reply:
    """Accept the first action of each request, and be too busy for the others."""
    answer = make_bulk_response(request)
    for item in answer["items"][1:]:
        item["index"] |= {
            "status": 429,
            "error": {"type": "rejected", "reason": "the queue is full"},
        }
    return Reply(body=answer)


def warnings(caplog: pytest.LogCaptureFixture) -> list[str]:
    return [
        record.getMessage()
        for record in caplog.records
        if record.levelname == "WARNING" and "not encrypted" not in record.getMessage()
    ]


def test_a_server_is_waited_for_as_long_as_it_takes_something() -> None:
    """30 rounds, the later ones 0.01 s apart, take longer than the patience.

    A server that accepts nothing would be given up.
    """
    with ScriptedServer(take_one_action) as server:
        started_at = time.monotonic()
        assert send_all(server, 30, 0.15) == [200] * 30
        assert time.monotonic() - started_at > 0.15
    counts = [len(make_bulk_response(request)["items"]) for request in server.requests]
    assert counts == list(range(30, 0, -1))


def test_a_server_that_takes_nothing_is_given_up_and_what_is_missing_is_named() -> None:
    with ScriptedServer(reply_in_turn(BUSY)) as server, pytest.raises(ServerError) as raised:
        send_all(server, 3, 0.1)
    assert (
        f"opensearch+{server.url} did not accept 3 passages within 0 s (the first is 'x#0'): "
        in str(raised.value)
    )
    assert str(raised.value).endswith(
        "the queue is full. What it took is safe: see to the server, and run the same command again"
    )
    assert raised.value.status == 429


def test_a_busy_server_is_left_alone_for_as_long_as_it_asks() -> None:
    """The pauses of these tests are of milliseconds: the second is the one the server asked for."""
    busy = Reply(429, {"error": "the queue is full"}, {"retry-after": "1"})
    replies = iter([busy])
    with ScriptedServer(
        lambda request: next(replies, Reply(body=make_bulk_response(request)))
    ) as server:
        started_at = time.monotonic()
        assert send_all(server, 2) == [200] * 2
        assert time.monotonic() - started_at >= 1.0


def test_a_server_is_waited_for_beyond_the_six_tries_of_one_request_and_the_log_has_two_lines(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setattr(retry, "QUIET_SECONDS", 0.0)
    with ScriptedServer(reply_in_turn(*[BUSY] * 30, OK)) as server:
        patient = connect_patiently(server.url)
        assert patient.request("GET", "/calls") == {"ok": True}
        assert patient.request("GET", "/calls") == {"ok": True}
    assert len(server.requests) == 32
    first, second = warnings(caplog)
    assert (
        first
        == f"opensearch+{server.url} answered GET /calls with 429: the queue is full; waiting "
        f"for it, up to 60 s"
    )
    assert second.startswith(f"opensearch+{server.url} answers again, after ")


def test_a_wait_that_two_threads_share_is_said_once(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    """In a writer one thread looks up documents while another sends them.

    One is answered after 20 tries, the other fails ten times more.
    """
    monkeypatch.setattr(retry, "QUIET_SECONDS", 0.0)
    monkeypatch.setattr(retry, "REQUEST", replace(retry.REQUEST, longest=0.004))
    down = threading.Event()

    def script(request: HttpRequest) -> Reply:
        return (
            (Reply(body=make_bulk_response(request)) if request.target.startswith("/_bulk") else OK)
            if down.is_set()
            else BUSY
        )

    with ScriptedServer(script) as server:
        patient = connect_patiently(server.url)
        with ThreadPoolExecutor(2) as pool:
            pool.submit(patient.request, "GET", "/calls")
            pool.submit(lambda: list(patient.send_all(actions(2))))
            time.sleep(0.3)
            assert len(warnings(caplog)) == 1
            down.set()
    assert warnings(caplog)[1].startswith(f"opensearch+{server.url} answers again,")


def test_a_short_wait_is_no_news(caplog: pytest.LogCaptureFixture) -> None:
    with ScriptedServer(reply_in_turn(BUSY, BUSY, OK)) as server:
        assert connect_patiently(server.url).request("GET", "/calls") == {"ok": True}
    assert warnings(caplog) == []


def test_a_server_that_does_not_come_back_is_one_error_with_the_remedy() -> None:
    server = connect_patiently(f"http://127.0.0.1:{free_port()}", 1.0)
    started_at = time.monotonic()
    with pytest.raises(
        ServerError,
        match=r"no answer from .* Connection refused.*; tried for 1 s\. What it took is safe: "
        r"see to the server",
    ):
        server.request("GET", "/calls")
    assert 1.0 <= time.monotonic() - started_at < 10


def test_a_server_is_waited_for_before_its_engine_is_known() -> None:
    with ScriptedServer(reply_in_turn(*[BUSY] * 8, Reply(body=HELLO["opensearch"]), OK)) as server:
        detected = connect(Address.parse(server.url), Access(timeout=5.0))
        assert detected.wait(60.0).request("GET", "/calls") == {"ok": True}
    assert len(server.requests) == 10


def test_without_patience_a_request_is_tried_six_times() -> None:
    with ScriptedServer(reply_in_turn(BUSY)) as server, pytest.raises(ServerError):
        connect_patiently(server.url, 0).request("GET", "/calls")
    assert len(server.requests) == 6
    with ScriptedServer(reply_in_turn(BUSY)) as server, pytest.raises(ServerError):
        send_all(server, 1, 0)
    assert len(server.requests) == 6


def test_an_index_that_is_blocked_for_everybody_is_waited_for_and_refuses_no_document() -> None:
    """As on a full disk, or if somebody set the index read-only.

    A 403 for a single document would reject that document.
    """
    error = {
        "type": "cluster_block_exception",
        "reason": "index [calls] blocked by: [FORBIDDEN/12/index read-only / allow delete (api)];",
    }
    blocked = {"items": [{"index": {"_id": "x#0", "status": 403, "error": error}}]}
    first = iter([Reply(body=blocked), Reply(403, {"error": error, "status": 403})])
    with ScriptedServer(
        lambda request: next(first, Reply(body=make_bulk_response(request)))
    ) as server:
        assert send_all(server, 1) == [200]
    assert len(server.requests) == 3


@pytest.mark.parametrize(
    ("script", "error"),
    [
        (reply_in_turn(Reply(400, {"error": "no such field"}), OK), ServerError),
        (reply_in_turn(Reply(401, {"error": "who are you"}), OK), AccessError),
        (reply_in_turn(Reply(429, headers={"retry-after": "3600"}), OK), ServerError),
    ],
    ids=["refused", "forbidden", "wants an hour"],
)
def test_what_does_not_pass_in_time_is_an_error_at_once(
    script: Script, error: type[ServerError]
) -> None:
    with ScriptedServer(script) as server, pytest.raises(error):
        connect_patiently(server.url).request("GET", "/calls")
    assert len(server.requests) == 1
