"""How long a writer waits for a server: while it takes something, and `PATIENCE` seconds longer; never for what does not pass."""

from __future__ import annotations

import time

import pytest

from hybrid_search.access import Access
from hybrid_search.backends.server import retry, sending
from hybrid_search.backends.server.address import Address
from hybrid_search.backends.server.base import Body, Server
from hybrid_search.backends.server.engines import connect
from hybrid_search.backends.server.sending import patiently, sent
from hybrid_search.errors import AccessError, ServerError
from tests.scripted import Asked, Reply, Script, Scripted, bulk, in_turn
from tests.servers.layout import free_port

BUSY = Reply(429, {"error": "the queue is full"})
OK = Reply(body={"ok": True})


@pytest.fixture(autouse=True)
def _quick(monkeypatch: pytest.MonkeyPatch) -> None:
    """Pauses of milliseconds."""
    monkeypatch.setattr(retry, "FIRST", 0.002)
    monkeypatch.setattr(retry, "MOST", 0.02)


def to(url: str) -> Server:
    return connect(Address.parse(f"opensearch+{url}"), Access(timeout=5.0))


def actions(count: int) -> list[Body]:
    return [{"_op_type": "index", "_index": "calls", "_id": f"x#{number}", "_source": {}} for number in range(count)]


def one_a_request(asked: Asked) -> Reply:
    """Takes the first action of each request, and is too busy for the others."""
    answer = bulk(asked)
    for item in answer["items"][1:]:
        item["index"] |= {"status": 429, "error": {"type": "rejected", "reason": "the queue is full"}}
    return Reply(body=answer)


def test_a_server_is_waited_for_as_long_as_it_takes_something(monkeypatch: pytest.MonkeyPatch) -> None:
    """30 rounds, the later ones 0.01 s apart, take longer than the patience with a server that takes nothing."""
    monkeypatch.setattr(sending, "PATIENCE", 0.15)
    with Scripted(one_a_request) as server:
        begun = time.monotonic()
        assert [outcome.status for outcome in sent(to(server.url), actions(30))] == [200] * 30
        assert time.monotonic() - begun > 0.15
    assert [len(bulk(asked)["items"]) for asked in server.asked] == list(range(30, 0, -1))


@pytest.mark.parametrize("given", [None, 0.1])
def test_a_server_that_takes_nothing_is_given_up_and_what_is_missing_is_named(given: float | None, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sending, "PATIENCE", 0.1 if given is None else 60)
    with Scripted(in_turn(BUSY)) as server, pytest.raises(ServerError) as told:
        list(sent(to(server.url), actions(3), given))
    assert f"opensearch+{server.url} did not take 3 passages within 0 s (the first is 'x#0'): " in str(told.value)
    assert str(told.value).endswith("the queue is full. What it took is safe: see to the server, and run the same command again")
    assert told.value.status == 429


def test_a_busy_server_is_left_alone_for_as_long_as_it_asks() -> None:
    """The pauses of these tests are of milliseconds: the second is what the server asked for."""
    busy = Reply(429, {"error": "the queue is full"}, {"retry-after": "1"})
    took = iter([busy])
    with Scripted(lambda asked: next(took, Reply(body=bulk(asked)))) as server:
        begun = time.monotonic()
        assert [outcome.status for outcome in sent(to(server.url), actions(2))] == [200] * 2
        assert time.monotonic() - begun >= 1.0


def test_a_server_is_waited_for_beyond_the_six_tries_of_one_request() -> None:
    with Scripted(in_turn(*[BUSY] * 8, OK)) as server:
        assert patiently(lambda: to(server.url).request("GET", "/calls")) == {"ok": True}
    assert len(server.asked) == 9


def test_a_server_that_does_not_come_back_is_the_error_of_the_last_try(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sending, "PATIENCE", 1.5)
    server = to(f"http://127.0.0.1:{free_port()}")
    begun = time.monotonic()
    with pytest.raises(ServerError, match=r"no answer from .* Connection refused .*after 6 tries"):
        patiently(lambda: server.request("GET", "/calls"))
    assert 1.0 < time.monotonic() - begun < 3


@pytest.mark.parametrize(
    ("script", "error"),
    [
        (in_turn(Reply(400, {"error": "no such field"}), OK), ServerError),
        (in_turn(Reply(401, {"error": "who are you"}), OK), AccessError),
        (in_turn(Reply(429, headers={"retry-after": "3600"}), OK), ServerError),
    ],
    ids=["refused", "forbidden", "wants an hour"],
)
def test_what_does_not_pass_in_time_is_an_error_at_once(script: Script, error: type[ServerError]) -> None:
    with Scripted(script) as server, pytest.raises(error):
        patiently(lambda: to(server.url).request("GET", "/calls"))
    assert len(server.asked) == 1
