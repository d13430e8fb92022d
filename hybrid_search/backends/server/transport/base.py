"""The contract of a connection: engine, version, single requests and bulk writing."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any, Protocol, TypedDict, Unpack

from hybrid_search.backends.server.transport.retry import TRANSIENT_STATUSES, RetryPolicy

Engine = str
"""The name of an engine, as in `dialects.DIALECTS`."""
Body = Mapping[str, Any]


@dataclass(frozen=True, slots=True)
class Outcome:
    """The result of one action of a bulk request.

    `status` is its HTTP status, or 0 if the connection was lost; `reason` is empty if the action
    was accepted. `retry_after` is how many seconds the server asked to be left alone for. `kind` is
    the type of a refusal, as in ``document_parsing_exception``: unlike `reason`, it quotes nothing.
    """

    action: Body
    status: int
    reason: str = ""
    retry_after: float = 0.0
    kind: str = ""

    @property
    def is_accepted(self) -> bool:
        """Return whether the action is done; deleting what does not exist counts as done."""
        return 200 <= self.status < 300 or (
            self.status == 404 and self.action.get("_op_type") == "delete"
        )

    @property
    def is_transient(self) -> bool:
        """Return whether the same action may succeed if it is sent again."""
        return self.status in TRANSIENT_STATUSES


class RequestOptions(TypedDict, total=False):
    """The parts of a request besides method and path."""

    params: Body
    """The query part of the URL."""
    body: Any
    """The body, sent as JSON."""
    lines: Iterable[Body]
    """Sent as newline-delimited JSON, instead of a body."""
    binary: bool
    """Asks for the answer in CBOR, which is shorter and faster to read where it is large."""
    read: Callable[[Any], Any]
    """Returns what is used of an answer; raises ShapeError or ServerError if it is not usable.

    By default an answer must be a JSON object or list.
    """
    policy: RetryPolicy | None
    """How often the request is tried; by default `retry.REQUEST`."""


class Server(Protocol):
    """A connection to one cluster. Safe to use from several threads."""

    @property
    def engine(self) -> Engine:
        """Return which engine it is. May ask the server, once."""
        ...

    @property
    def version(self) -> tuple[int, int, int]:
        """Return the version of the server, which is requested once.

        Raises:
            ServerError: If this project does not support so old a version.
        """
        ...

    def request(self, method: str, path: str, **options: Unpack[RequestOptions]) -> Any:
        """Return what `read` makes of the answer to one request (True or False for HEAD).

        If the server is busy or unreachable the request is sent again, with growing pauses.

        Raises:
            ServerError: If it failed; carries the HTTP status.
            AccessError: If the server answers with 401 or 403.
        """
        ...

    def bulk(self, actions: Iterable[Body]) -> Iterator[Outcome]:
        """Send each action once, and yield its outcome.

        Actions are those of opensearch-py's bulk helper: ``_op_type``, ``_index``, ``_id`` and
        ``_source``, which is an object or its JSON. Each request is bounded in count and bytes.
        A transient failure is never raised: it is an outcome with one of `TRANSIENT_STATUSES`.
        """
        ...

    def close(self) -> None:
        """Close the connection pool."""
        ...
