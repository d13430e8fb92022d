"""Bulk requests: actions in chunks, and the outcome of each action."""

from __future__ import annotations

from collections import deque
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from hybrid_search.backends.server.transport.client import encode_json
from hybrid_search.backends.server.transport.errors import error_kind, is_blocked, reason
from hybrid_search.backends.server.transport.retry import TRANSIENT_STATUSES
from hybrid_search.backends.server.transport.shape import ShapeError
from hybrid_search.errors import ServerError

CHUNK_ACTIONS = 500
CHUNK_BYTES = 8 * 1024 * 1024
"""The largest bulk request. Small instances of managed services accept 10 MB and no more."""

BUSY = 503
"""The status of an action if the index is blocked for everybody, as on a full disk."""

LEFT_OUT = "the server did not answer for it"


@dataclass(frozen=True, slots=True)
class Action:
    """Puts `source`, JSON in one line, under its `id` into an index; None deletes what is there."""

    index: str
    id: str
    source: bytes | None = None

    @property
    def kind(self) -> str:
        """Its name in requests."""
        return "delete" if self.source is None else "index"

    def encode(self) -> bytes:
        """Return its lines of a bulk request."""
        head = encode_json({self.kind: {"_index": self.index, "_id": self.id}})
        return head + b"\n" + (b"" if self.source is None else self.source + b"\n")


@dataclass(frozen=True, slots=True)
class Outcome:
    """The result of one action; its `status` is 0 if the connection was lost.

    `retry_after` is how many seconds the server asked to be left alone for. `kind` is the type of a
    refusal, as in ``document_parsing_exception``: unlike `reason`, it quotes nothing.
    """

    action: Action
    status: int
    reason: str = ""
    retry_after: float = 0.0
    kind: str = ""

    @property
    def is_accepted(self) -> bool:
        """Return whether the action is done; deleting what does not exist counts as done."""
        return 200 <= self.status < 300 or (self.status == 404 and self.action.source is None)

    @property
    def is_transient(self) -> bool:
        """Return whether the same action may succeed if it is sent again."""
        return self.status in TRANSIENT_STATUSES


def split_actions(actions: Iterable[Action]) -> Iterator[list[Action]]:
    """Yield the actions of one request after the other."""
    chunk: list[Action] = []
    size = 0
    for action in actions:
        action_size = len(action.encode())
        if chunk and (len(chunk) == CHUNK_ACTIONS or size + action_size > CHUNK_BYTES):
            yield chunk
            chunk, size = [], 0
        chunk.append(action)
        size += action_size
    if chunk:
        yield chunk


def read_outcomes(
    actions: Iterable[Action], items: Iterable[Mapping[str, Any]]
) -> Iterator[Outcome]:
    """Yield the outcome of each action; raise ShapeError if an item is about another one."""
    pending = deque(actions)
    for item in items:
        while pending and pending[0].id != item.get("_id"):
            yield Outcome(pending.popleft(), 0, LEFT_OUT)
        if not pending:
            raise ShapeError(f"items: {item.get('_id')!r} is not the id of an action that was sent")
        status = BUSY if is_blocked(item) else item.get("status", 500)
        why = reason(item) if "error" in item else ""
        yield Outcome(pending.popleft(), status, why, kind=error_kind(item))
    yield from (Outcome(action, 0, LEFT_OUT) for action in pending)


def check_accepted(outcomes: Iterable[Outcome]) -> None:
    """Raise ServerError if an action was refused."""
    for outcome in outcomes:
        if not outcome.is_accepted:
            action = outcome.action
            raise ServerError(
                f"the server refused to {action.kind} {action.id!r}: {outcome.reason}",
                outcome.status,
            )
