"""A proxy before a real server that causes the faults of networks, gateways and busy servers.

A plan chooses the fault of each request, if any; the proxy counts faults and requests.
"""

from __future__ import annotations

import http.client
import json
import random
import threading
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from itertools import compress
from typing import Any, Self
from urllib.parse import urlsplit

import cbor2

from hybrid_search.backends.server.transport.address import Address
from tests.helpers.fake_server import HttpRequest, Reply, ScriptedServer

TIMEOUT = 1.5
"""Seconds a client of this proxy should wait for a response, if responses may come late."""
LATE = TIMEOUT + 0.3
"""Seconds after which a late response comes."""

Forward = Callable[[HttpRequest], Reply]
Fault = Callable[[Forward, HttpRequest, random.Random], Reply]
Plan = Callable[[HttpRequest], Fault | None]

HOP_HEADERS = {"connection", "content-length", "host", "keep-alive", "transfer-encoding"}
"""Headers that concern one connection only, and are not passed on."""

REJECTED = {
    "status": 429,
    "error": {"type": "rejected_execution_exception", "reason": "the queue is full"},
}
UNAVAILABLE = {
    "status": 503,
    "error": {"type": "unavailable_shards_exception", "reason": "the primary shard is not active"},
}


def lose_request(_: Forward, __: HttpRequest, ___: random.Random) -> Reply:
    """Break the connection before the server gets the request."""
    return Reply(reset=True)


def lose_answer(forward: Forward, request: HttpRequest, _: random.Random) -> Reply:
    """Break the connection after the server has done the request, before its response."""
    forward(request)
    return Reply(reset=True)


def delay_answer(forward: Forward, request: HttpRequest, chance: random.Random) -> Reply:
    """Send the response a little later."""
    return replace(forward(request), wait=chance.uniform(0.05, 0.3))


def answer_late(forward: Forward, request: HttpRequest, _: random.Random) -> Reply:
    """Send the response after the client has given up waiting."""
    return replace(forward(request), wait=LATE)


def reject_as_busy(_: Forward, __: HttpRequest, ___: random.Random) -> Reply:
    return Reply(429, REJECTED)


def reject_for_a_second(_: Forward, __: HttpRequest, ___: random.Random) -> Reply:
    """Reject as busy, with the time to wait."""
    return Reply(429, b"Too Many Requests", {"content-type": "text/plain", "retry-after": "1"})


def report_unavailable(_: Forward, __: HttpRequest, ___: random.Random) -> Reply:
    return Reply(503, UNAVAILABLE)


def fail_as_gateway(_: Forward, __: HttpRequest, ___: random.Random) -> Reply:
    """Reply as a gateway that could not reach the server."""
    return Reply(
        502, b"<html><body><h1>502 Bad Gateway</h1></body></html>", {"content-type": "text/html"}
    )


def time_out_as_gateway(forward: Forward, request: HttpRequest, _: random.Random) -> Reply:
    """Reply as a gateway that stopped waiting for a server which does the request all the same."""
    forward(request)
    return Reply(
        504,
        b"<html><body><h1>504 Gateway Time-out</h1></body></html>",
        {"content-type": "text/html"},
    )


def truncate_answer(forward: Forward, request: HttpRequest, _: random.Random) -> Reply:
    """Break the connection in the middle of the response."""
    answer = forward(request)
    return replace(
        answer,
        body=answer.body[: len(answer.body) // 2],
        headers={**answer.headers, "content-length": str(len(answer.body)), **CLOSE},
    )


def garble_answer(forward: Forward, request: HttpRequest, _: random.Random) -> Reply:
    """Send half of the response as if it were complete."""
    answer = forward(request)
    return replace(answer, body=answer.body[: len(answer.body) // 2])


def refuse_half(forward: Forward, request: HttpRequest, chance: random.Random) -> Reply:
    """Do some parts of a bulk or multi-search, and refuse the others as if the server were busy."""
    refusal = chance.choice((REJECTED, UNAVAILABLE))
    if endpoint_name(request) == "_msearch":
        return refuse_last_search(forward, request, refusal)
    return forward_part(forward, request, lambda _: chance.random() < 0.5, refusal)


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
    """Return True if `fault` makes sense for the request."""
    if fault is refuse_half:
        return endpoint_name(request) in ("_bulk", "_msearch")
    return request.method != "HEAD" or fault not in (truncate_answer, garble_answer)


def endpoint_name(request: HttpRequest) -> str:
    """Return the last step of a request's path, such as ``_bulk``."""
    return request.target.partition("?")[0].rpartition("/")[2]


def forward_part(
    forward: Forward,
    request: HttpRequest,
    should_forward: Callable[[bytes], bool],
    refusal: dict[str, Any],
) -> Reply:
    """Forward the actions of a bulk request that `should_forward` accepts, refuse the others."""
    parts = list(iterate_actions(request.body))
    decisions = [should_forward(part) for part in parts]
    forwarded = b"".join(compress(parts, decisions))
    answer = forward(replace(request, body=forwarded)) if forwarded else Reply()
    if answer.status != 200:
        return answer
    items = iter(json.loads(answer.body)["items"] if forwarded else ())
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
    """Yield the actions of a bulk request, each with its document."""
    lines = iter(body.splitlines(keepends=True))
    for line in lines:
        yield line if "delete" in json.loads(line) else line + next(lines)


def _refused_item(action: bytes, refusal: dict[str, Any]) -> dict[str, Any]:
    ((kind, target),) = json.loads(action.splitlines()[0]).items()
    return {kind: {"_index": target["_index"], "_id": target["_id"], **refusal}}


def refuse_last_search(forward: Forward, request: HttpRequest, refusal: dict[str, Any]) -> Reply:
    """Forward a multi-search, and reply `refusal` for the last of its searches."""
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
    """A plan with a fault for one of three requests, in random order.

    No kind of fault comes again before every other applicable kind had its turn.
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
        while True:
            for fault in self._bag:
                if is_applicable(fault, request):
                    self._bag.remove(fault)
                    return fault
            self._bag += self._chance.sample(self._kinds, len(self._kinds))


class Proxy:
    """Listens on loopback during its ``with`` block, and forwards requests to the server at `url`.

    `plan` chooses the faults. `fault_counts` counts them by name, `request_count` all requests.
    """

    def __init__(self, url: str, plan: Plan, seed: int = 0) -> None:
        self._server_url, self._plan, self._chance = url, plan, random.Random(seed)  # noqa: S311
        self._listener = ScriptedServer(self._answer)
        self._lock = threading.Lock()
        self.fault_counts: Counter[str] = Counter()
        self.request_count = 0

    @property
    def url(self) -> str:
        """The server's URL with the proxy's host and port, as the product takes it."""
        parts = urlsplit(self._server_url.replace("https:", "http:", 1))
        return parts._replace(netloc=f"127.0.0.1:{self._listener.port}").geturl()

    def _answer(self, request: HttpRequest) -> Reply:
        fault = self._plan(request)
        with self._lock:
            self._listener.requests.clear()  # the bulk requests of a long run would fill the memory
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
    """Send a request to the server at `url` with the standard library only."""
    address = Address.parse(url)
    kind = http.client.HTTPSConnection if address.is_secure else http.client.HTTPConnection
    connection = kind(address.host, address.port, timeout=60)
    try:
        request_headers = _without_hop_headers(request.headers)
        connection.request(request.method, request.target, request.body or None, request_headers)
        response = connection.getresponse()
        headers = {name.lower(): value for name, value in response.getheaders()}
        return Reply(response.status, response.read(), _without_hop_headers(headers))
    finally:
        connection.close()


def _without_hop_headers(headers: dict[str, str]) -> dict[str, str]:
    return {name: value for name, value in headers.items() if name not in HOP_HEADERS}
