"""Bulk requests: actions in chunks, and the outcome of each action."""

from __future__ import annotations

from collections import deque
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from hybrid_search.backends.server.transport.client import encode_action
from hybrid_search.backends.server.transport.errors import error_kind, is_blocked, reason
from hybrid_search.backends.server.transport.retry import TRANSIENT_STATUSES
from hybrid_search.backends.server.transport.shape import ShapeError

CHUNK_ACTIONS = 500
CHUNK_BYTES = 8 * 1024 * 1024
"""The largest bulk request. Small instances of managed services accept 10 MB and no more."""

BUSY = 503
"""The status of an action if the index is blocked for everybody, as on a full disk: that is not the
fault of the document.
"""

LEFT_OUT = "the server did not answer for it"

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


def split_actions(actions: Iterable[Body]) -> Iterator[list[tuple[Body, bytes]]]:
    """Yield the actions of one request after the other, each with what is sent for it."""
    chunk: list[tuple[Body, bytes]] = []
    size = 0
    for action in actions:
        lines = encode_action(action)
        if chunk and (len(chunk) == CHUNK_ACTIONS or size + len(lines) > CHUNK_BYTES):
            yield chunk
            chunk, size = [], 0
        chunk.append((action, lines))
        size += len(lines)
    if chunk:
        yield chunk


def pair_items(
    actions: Iterable[Body], items: Iterable[Mapping[str, Any]]
) -> Iterator[tuple[Body, Mapping[str, Any] | None]]:
    """Yield each action with the item that is about it, None if the answer leaves it out."""
    pending = deque(actions)
    for item in items:
        while pending and not _is_about(pending[0], item):
            yield pending.popleft(), None
        if not pending:
            raise ShapeError(f"items: {item.get('_id')!r} is not the id of an action that was sent")
        yield pending.popleft(), item
    yield from ((action, None) for action in pending)


def _is_about(action: Body, item: Mapping[str, Any]) -> bool:
    return action.get("_id") is None or str(action["_id"]) == item.get("_id")


def build_outcome(action: Body, item: Mapping[str, Any] | None) -> Outcome:
    """Return the outcome that an item of an answer tells; None was left out."""
    if item is None:
        return Outcome(action, 0, LEFT_OUT)
    status = BUSY if is_blocked(item) else item.get("status", 500)
    return Outcome(action, status, reason(item) if "error" in item else "", kind=error_kind(item))
