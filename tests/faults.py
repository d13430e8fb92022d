"""A proxy on loopback, between a client and a real server, that injures requests as networks, gateways and busy servers do, and counts how."""

from __future__ import annotations

import http.client
import json
import random
import threading
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from typing import Any, Self
from urllib.parse import urlsplit

import cbor2

from hybrid_search.backends.server.address import Address
from tests.scripted import Asked, Reply, Scripted

TIMEOUT = 1.5
"""Seconds that a client of such a proxy is to wait for an answer, where answers may be `late`."""
LATE = TIMEOUT + 0.3

Forward = Callable[[Asked], Reply]
Fault = Callable[[Forward, Asked, random.Random], Reply]
Plan = Callable[[Asked], Fault | None]

HOP = {"connection", "content-length", "host", "keep-alive", "transfer-encoding"}
"""Headers that are about one connection, and not about what is sent."""

REJECTED = {"status": 429, "error": {"type": "rejected_execution_exception", "reason": "the queue is full"}}
UNAVAILABLE = {"status": 503, "error": {"type": "unavailable_shards_exception", "reason": "the primary shard is not active"}}


def lost_before(_: Forward, __: Asked, ___: random.Random) -> Reply:
    """The connection breaks, and the server never heard of the request."""
    return Reply(reset=True)


def lost_after(forward: Forward, asked: Asked, _: random.Random) -> Reply:
    """The server does it, and the connection breaks before it can say so."""
    forward(asked)
    return Reply(reset=True)


def slow(forward: Forward, asked: Asked, chance: random.Random) -> Reply:
    """The answer takes its time."""
    return replace(forward(asked), wait=chance.uniform(0.05, 0.3))


def late(forward: Forward, asked: Asked, _: random.Random) -> Reply:
    """The server does it, and the client has given up when the answer comes."""
    return replace(forward(asked), wait=LATE)


def busy(_: Forward, __: Asked, ___: random.Random) -> Reply:
    return Reply(429, REJECTED)


def busy_for_a_second(_: Forward, __: Asked, ___: random.Random) -> Reply:
    """Busy, and says how long."""
    return Reply(429, b"Too Many Requests", {"content-type": "text/plain", "retry-after": "1"})


def unavailable(_: Forward, __: Asked, ___: random.Random) -> Reply:
    return Reply(503, UNAVAILABLE)


def bad_gateway(_: Forward, __: Asked, ___: random.Random) -> Reply:
    """A gateway that could not reach the server."""
    return Reply(502, b"<html><body><h1>502 Bad Gateway</h1></body></html>", {"content-type": "text/html"})


def gateway_timeout(forward: Forward, asked: Asked, _: random.Random) -> Reply:
    """A gateway that lost patience with a server which does it all the same."""
    forward(asked)
    return Reply(504, b"<html><body><h1>504 Gateway Time-out</h1></body></html>", {"content-type": "text/html"})


def cut(forward: Forward, asked: Asked, _: random.Random) -> Reply:
    """The connection breaks in the middle of the answer."""
    answer = forward(asked)
    return replace(answer, body=answer.body[: len(answer.body) // 2], headers={**answer.headers, "content-length": str(len(answer.body)), **CLOSE})


def garbled(forward: Forward, asked: Asked, _: random.Random) -> Reply:
    """Half of the answer comes as if it were all."""
    answer = forward(asked)
    return replace(answer, body=answer.body[: len(answer.body) // 2])


def half(forward: Forward, asked: Asked, chance: random.Random) -> Reply:
    """Of a bulk or a multi-search some parts are done, and the server is too busy for the others."""
    refusal = chance.choice((REJECTED, UNAVAILABLE))
    return (
        half_searched(forward, asked, refusal) if called(asked) == "_msearch" else divided(forward, asked, lambda _: chance.random() < 0.5, refusal)
    )


CLOSE = {"connection": "close"}
KINDS: tuple[Fault, ...] = (
    lost_before,
    lost_after,
    slow,
    late,
    busy,
    busy_for_a_second,
    unavailable,
    bad_gateway,
    gateway_timeout,
    cut,
    garbled,
    half,
)


def fits(fault: Fault, asked: Asked) -> bool:
    """Whether `fault` can be done to such a request."""
    if fault is half:
        return called(asked) in ("_bulk", "_msearch")
    return asked.method != "HEAD" or fault not in (cut, garbled)


def called(asked: Asked) -> str:
    """What a request is about: the last step of its path, as in ``_bulk``."""
    return asked.target.partition("?")[0].rpartition("/")[2]


def divided(forward: Forward, asked: Asked, taken: Callable[[bytes], bool], refusal: dict[str, Any]) -> Reply:
    """Forward only those actions of a bulk request that are `taken`, and answer `refusal` for each of the others."""
    parts = list(actions(asked.body))
    chosen = [taken(part) for part in parts]
    answer = (
        forward(replace(asked, body=b"".join(part for part, is_taken in zip(parts, chosen, strict=True) if is_taken))) if any(chosen) else Reply()
    )
    if answer.status != 200:
        return answer
    items = iter(json.loads(answer.body)["items"] if any(chosen) else ())
    body = {
        "took": 1,
        "errors": True,
        "items": [next(items) if is_taken else _item(part, refusal) for part, is_taken in zip(parts, chosen, strict=True)],
    }
    return replace(answer, body=json.dumps(body).encode())


def actions(body: bytes) -> Iterator[bytes]:
    """The actions of a bulk request, each with its document."""
    lines = iter(body.splitlines(keepends=True))
    for line in lines:
        yield line if "delete" in json.loads(line) else line + next(lines)


def _item(action: bytes, refusal: dict[str, Any]) -> dict[str, Any]:
    ((kind, named),) = json.loads(action.splitlines()[0]).items()
    return {kind: {"_index": named["_index"], "_id": named["_id"], **refusal}}


def half_searched(forward: Forward, asked: Asked, refusal: dict[str, Any]) -> Reply:
    """Answer `refusal` for the last of several searches."""
    answer = forward(asked)
    if answer.status != 200:
        return answer
    loads, dumps = (cbor2.loads, cbor2.dumps) if "cbor" in answer.headers["content-type"] else (json.loads, lambda body: json.dumps(body).encode())
    body = loads(answer.body)
    return replace(answer, body=dumps({**body, "responses": [*body["responses"][:-1], refusal]}))


class Third:
    """A plan that injures every third request on average, and no kind of fault a second time before each other has had its turn."""

    def __init__(self, seed: int, kinds: Sequence[Fault] = KINDS) -> None:
        self._chance, self._kinds = random.Random(seed), kinds  # noqa: S311
        self._turns: list[bool] = []
        self._bag: list[Fault] = []
        self._lock = threading.Lock()

    def __call__(self, asked: Asked) -> Fault | None:
        with self._lock:
            self._turns = self._turns or self._chance.sample((True, False, False), 3)
            return self._fault(asked) if self._turns.pop() else None

    def _fault(self, asked: Asked) -> Fault:
        while not (fitting := [fault for fault in self._bag if fits(fault, asked)]):
            self._bag += self._chance.sample(self._kinds, len(self._kinds))
        self._bag.remove(fitting[0])
        return fitting[0]


class Proxy:
    """Listens on loopback until its ``with`` block is left, and hands on to the server at `url` what `plan` has no fault for.

    `met` counts the faults by name, `asked` all requests.
    """

    def __init__(self, url: str, plan: Plan, seed: int = 0) -> None:
        self._there, self._plan, self._chance = url, plan, random.Random(seed)  # noqa: S311
        self._listener = Scripted(self._answer)
        self._lock = threading.Lock()
        self.met: Counter[str] = Counter()
        self.asked = 0

    @property
    def url(self) -> str:
        """As the product takes it: the server's own, by way of the proxy."""
        return urlsplit(self._there.replace("https:", "http:", 1))._replace(netloc=f"127.0.0.1:{self._listener.port}").geturl()

    def _answer(self, asked: Asked) -> Reply:
        fault = self._plan(asked)
        with self._lock:
            self._listener.asked.clear()  # bulks of a long run would fill the memory
            self.asked += 1
            self.met.update([fault.__name__] if fault else [])
        return fault(self._forward, asked, self._chance) if fault else self._forward(asked)

    def _forward(self, asked: Asked) -> Reply:
        try:
            return sent(self._there, asked)
        except (OSError, http.client.HTTPException):
            return bad_gateway(self._forward, asked, self._chance)

    def __enter__(self) -> Self:
        self._listener.__enter__()
        return self

    def __exit__(self, *_: object) -> None:
        self._listener.__exit__()


def sent(url: str, asked: Asked) -> Reply:
    """What the server at `url` answers, by the standard library alone."""
    address = Address.parse(url)
    connection = (http.client.HTTPSConnection if address.secure else http.client.HTTPConnection)(address.host, address.port, timeout=60)
    try:
        connection.request(asked.method, asked.target, asked.body or None, {name: value for name, value in asked.headers.items() if name not in HOP})
        answer = connection.getresponse()
        return Reply(answer.status, answer.read(), {name.lower(): value for name, value in answer.getheaders() if name.lower() not in HOP})
    finally:
        connection.close()
