"""What the backend needs of a server: its kind and version, single requests, and bulk writing.

One module for each client library fulfils it.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any, Literal, Protocol, TypedDict, Unpack

Engine = Literal["opensearch", "elasticsearch"]
Body = Mapping[str, Any]


@dataclass(frozen=True, slots=True)
class Outcome:
    """What became of one action of a bulk request: `status` is its HTTP status (0: the connection
    was lost), `reason` empty where it was taken.

    `retry_after` is how many seconds the server asked to be left alone for.
    """

    action: Body
    status: int
    reason: str = ""
    retry_after: float = 0.0

    @property
    def is_accepted(self) -> bool:
        """Whether the server did it. A deletion of what is not there has been done."""
        return 200 <= self.status < 300 or (
            self.status == 404 and self.action.get("_op_type") == "delete"
        )

    @property
    def is_transient(self) -> bool:
        """Whether the same action may be taken if it is sent again."""
        return self.status in TRANSIENT_STATUSES


TRANSIENT_STATUSES = (0, 408, 429, 502, 503, 504)
"""Statuses that go away by themselves: the connection was lost, the server is busy, starting, or
behind a gateway that lost it.
"""


class RequestOptions(TypedDict, total=False):
    """What a request has besides method and path."""

    params: Body
    """The query part."""
    body: Any
    """Sent as JSON."""
    lines: Iterable[Body]
    """Instead of a body: sent as newline-delimited JSON."""
    binary: bool
    """Whether the answer is to come in CBOR, which is shorter and sooner read than JSON where it is
    large.
    """
    check: Callable[[Any], None]
    """Raises ServerError for an answer that is none, though its status says 200."""
    once: bool
    """Whether it is sent once only, whatever comes of it: its sender tries again himself."""


class Server(Protocol):
    """A connection to one cluster. Safe to use from several threads."""

    @property
    def engine(self) -> Engine:
        """Which of the two it is. May ask the server, once."""
        ...

    @property
    def version(self) -> tuple[int, int, int]:
        """Of the server, asked once.

        Raises ServerError where it is older than this project works with.
        """
        ...

    def request(self, method: str, path: str, **options: Unpack[RequestOptions]) -> Any:
        """The decoded answer (True or False for HEAD).

        What is busy or unreachable is asked again, with growing pauses. Raises ServerError with its
        `status`, AccessError for 401 and 403.
        """
        ...

    def bulk(self, actions: Iterable[Body]) -> Iterator[Outcome]:
        """Send `actions` (of the client library's bulk helper: ``_op_type``, ``_index``, ``_id``,
        ``_source``, which is an object or its JSON), each once, in requests bounded by count and
        bytes.

        Never raises for what may pass: those outcomes have a status of `PASSING`.
        """
        ...

    def close(self) -> None:
        """Close the connection pool."""
        ...
