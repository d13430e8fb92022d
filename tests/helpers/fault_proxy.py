"""A proxy on loopback, between a client and a real server, that injures requests as networks,
gateways and busy servers do, and counts how.
"""

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

from hybrid_search.backends.server.transport.address import Address
from tests.helpers.fake_server import HttpRequest, Reply, ScriptedServer

TIMEOUT = 1.5
"""Seconds that a client of such a proxy is to wait for an answer, where answers may be `late`."""
LATE = TIMEOUT + 0.3

Forward = Callable[[HttpRequest], Reply]
Fault = Callable[[Forward, HttpRequest, random.Random], Reply]
Plan = Callable[[HttpRequest], Fault | None]

HOP = {"connection", "content-length", "host", "keep-alive", "transfer-encoding"}
"""Headers that are about one connection, and not about what is sent."""

REJECTED = {
    "status": 429,
    "error": {"type": "rejected_execution_exception", "reason": "the queue is full"},
}
UNAVAILABLE = {
    "status": 503,
    "error": {"type": "unavailable_shards_exception", "reason": "the primary shard is not active"},
}


def lose_request(_: Forward, __: HttpRequest, ___: random.Random) -> Reply:
    """The connection breaks, and the server never heard of the request."""
    return Reply(reset=True)


def lose_answer(forward: Forward, request: HttpRequest, _: random.Random) -> Reply:
    """The server does it, and the connection breaks before it can say so."""
    forward(request)
    return Reply(reset=True)


def delay_answer(forward: Forward, request: HttpRequest, chance: random.Random) -> Reply:
    """The answer takes its time."""
    return replace(forward(request), wait=chance.uniform(0.05, 0.3))


def answer_late(forward: Forward, request: HttpRequest, _: random.Random) -> Reply:
    """The server does it, and the client has given up when the answer comes."""
    return replace(forward(request), wait=LATE)


def reject_as_busy(_: Forward, __: HttpRequest, ___: random.Random) -> Reply:
    return Reply(429, REJECTED)


def reject_for_a_second(_: Forward, __: HttpRequest, ___: random.Random) -> Reply:
    """Busy, and says how long."""
    return Reply(429, b"Too Many Requests", {"content-type": "text/plain", "retry-after": "1"})


def report_unavailable(_: Forward, __: HttpRequest, ___: random.Random) -> Reply:
    return Reply(503, UNAVAILABLE)


def fail_as_gateway(_: Forward, __: HttpRequest, ___: random.Random) -> Reply:
    """A gateway that could not reach the server."""
    return Reply(
        502, b"<html><body><h1>502 Bad Gateway</h1></body></html>", {"content-type": "text/html"}
    )


def time_out_as_gateway(forward: Forward, request: HttpRequest, _: random.Random) -> Reply:
    """A gateway that lost patience with a server which does it all the same."""
    forward(request)
    return Reply(
        504,
        b"<html><body><h1>504 Gateway Time-out</h1></body></html>",
        {"content-type": "text/html"},
    )


def truncate_answer(forward: Forward, request: HttpRequest, _: random.Random) -> Reply:
    """The connection breaks in the middle of the answer."""
    answer = forward(request)
    return replace(
        answer,
        body=answer.body[: len(answer.body) // 2],
        headers={**answer.headers, "content-length": str(len(answer.body)), **CLOSE},
    )


def garble_answer(forward: Forward, request: HttpRequest, _: random.Random) -> Reply:
    """Half of the answer comes as if it were all."""
    answer = forward(request)
    return replace(answer, body=answer.body[: len(answer.body) // 2])


def refuse_half(forward: Forward, request: HttpRequest, chance: random.Random) -> Reply:
    """Of a bulk or a multi-search some parts are done, and the server is too busy for the others."""
    refusal = chance.choice((REJECTED, UNAVAILABLE))
    return (
        refuse_last_search(forward, request, refusal)
        if endpoint_name(request) == "_msearch"
        else forward_part(forward, request, lambda _: chance.random() < 0.5, refusal)
    )


CLOSE = {"connection": "close"}
KINDS: tuple[Fault, ...] = (
    lose_request,
    lose_answer,
    delay_answer,
    answer_late,
    reject_as_busy,
    reject_for_a_second,
    report_unavailable,
    fail_as_gateway,
    time_out_as_gateway,
    truncate_answer,
    garble_answer,
    refuse_half,
)


def is_applicable(fault: Fault, request: HttpRequest) -> bool:
    """Whether `fault` can be done to such a request."""
    if fault is refuse_half:
        return endpoint_name(request) in ("_bulk", "_msearch")
    return request.method != "HEAD" or fault not in (truncate_answer, garble_answer)


def endpoint_name(request: HttpRequest) -> str:
    """What a request is about: the last step of its path, as in ``_bulk``."""
    return request.target.partition("?")[0].rpartition("/")[2]


def forward_part(
    forward: Forward,
    request: HttpRequest,
    should_forward: Callable[[bytes], bool],
    refusal: dict[str, Any],
) -> Reply:
    """Forward only those actions of a bulk request that are `taken`, and answer `refusal` for each
    of the others.
    """
    parts = list(iterate_actions(request.body))
    decisions = [should_forward(part) for part in parts]
    answer = (
        forward(
            replace(
                request,
                body=b"".join(
                    part for part, is_taken in zip(parts, decisions, strict=True) if is_taken
                ),
            )
        )
        if any(decisions)
        else Reply()
    )
    if answer.status != 200:
        return answer
    items = iter(json.loads(answer.body)["items"] if any(decisions) else ())
    body = {
        "took": 1,
        "errors": True,
        "items": [
            next(items) if is_taken else _refused_item(part, refusal)
            for part, is_taken in zip(parts, decisions, strict=True)
        ],
    }
    return replace(answer, body=json.dumps(body).encode())


def iterate_actions(body: bytes) -> Iterator[bytes]:
    """The actions of a bulk request, each with its document."""
    lines = iter(body.splitlines(keepends=True))
    for line in lines:
        yield line if "delete" in json.loads(line) else line + next(lines)


def _refused_item(action: bytes, refusal: dict[str, Any]) -> dict[str, Any]:
    ((kind, target),) = json.loads(action.splitlines()[0]).items()
    return {kind: {"_index": target["_index"], "_id": target["_id"], **refusal}}


def refuse_last_search(forward: Forward, request: HttpRequest, refusal: dict[str, Any]) -> Reply:
    """Answer `refusal` for the last of several searches."""
    answer = forward(request)
    if answer.status != 200:
        return answer
    loads, dumps = (
        (cbor2.loads, cbor2.dumps)
        if "cbor" in answer.headers["content-type"]
        else (json.loads, lambda body: json.dumps(body).encode())
    )
    body = loads(answer.body)
    return replace(answer, body=dumps({**body, "responses": [*body["responses"][:-1], refusal]}))


class EveryThirdRequest:
    """A plan that injures every third request on average, and no kind of fault a second time before
    each other has had its turn.
    """

    def __init__(self, seed: int, kinds: Sequence[Fault] = KINDS) -> None:
        self._chance, self._kinds = random.Random(seed), kinds  # noqa: S311
        self._turns: list[bool] = []
        self._bag: list[Fault] = []
        self._lock = threading.Lock()

    def __call__(self, request: HttpRequest) -> Fault | None:
        with self._lock:
            self._turns = self._turns or self._chance.sample((True, False, False), 3)
            return self._next_fault(request) if self._turns.pop() else None

    def _next_fault(self, request: HttpRequest) -> Fault:
        while not (
            applicable_faults := [fault for fault in self._bag if is_applicable(fault, request)]
        ):
            self._bag += self._chance.sample(self._kinds, len(self._kinds))
        self._bag.remove(applicable_faults[0])
        return applicable_faults[0]


class Proxy:
    """Listens on loopback until its ``with`` block is left, and hands on to the server at `url`
    what `plan` has no fault for.

    `met` counts the faults by name, `asked` all requests.
    """

    def __init__(self, url: str, plan: Plan, seed: int = 0) -> None:
        self._server_url, self._plan, self._chance = url, plan, random.Random(seed)  # noqa: S311
        self._listener = ScriptedServer(self._answer)
        self._lock = threading.Lock()
        self.fault_counts: Counter[str] = Counter()
        self.request_count = 0

    @property
    def url(self) -> str:
        """As the product takes it: the server's own, by way of the proxy."""
        return (
            urlsplit(self._server_url.replace("https:", "http:", 1))
            ._replace(netloc=f"127.0.0.1:{self._listener.port}")
            .geturl()
        )

    def _answer(self, request: HttpRequest) -> Reply:
        fault = self._plan(request)
        with self._lock:
            self._listener.requests.clear()  # bulks of a long run would fill the memory
            self.request_count += 1
            self.fault_counts.update([fault.__name__] if fault else [])
        return fault(self._forward, request, self._chance) if fault else self._forward(request)

    def _forward(self, request: HttpRequest) -> Reply:
        try:
            return send_request(self._server_url, request)
        except (OSError, http.client.HTTPException):
            return fail_as_gateway(self._forward, request, self._chance)

    def __enter__(self) -> Self:
        self._listener.__enter__()
        return self

    def __exit__(self, *_: object) -> None:
        self._listener.__exit__()


def send_request(url: str, request: HttpRequest) -> Reply:
    """What the server at `url` answers, by the standard library alone."""
    address = Address.parse(url)
    connection = (http.client.HTTPSConnection if address.is_secure else http.client.HTTPConnection)(
        address.host, address.port, timeout=60
    )
    try:
        connection.request(
            request.method,
            request.target,
            request.body or None,
            {name: value for name, value in request.headers.items() if name not in HOP},
        )
        answer = connection.getresponse()
        return Reply(
            answer.status,
            answer.read(),
            {name.lower(): value for name, value in answer.getheaders() if name.lower() not in HOP},
        )
    finally:
        connection.close()
