"""What a bad answer is made of, and the ways to make one that several modules use."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from tests.helpers.fake_cluster import Exchange
from tests.helpers.fake_server import RawReply, Reply

BadAnswer = Callable[[Exchange], Reply | RawReply]
"""Makes the bad reply to a request."""

ESCAPES = "\x1b[2J\x1b]0;owned\x07\x9b31m\u202e"
"""What a terminal obeys: clear the screen, change the title, write in red, from right to left."""


def change_answer(change: Callable[[Any], Any]) -> BadAnswer:
    """Return the kind that changes the answer before it is encoded."""
    return lambda exchange: exchange.encode(change(exchange.answer))


def send_body(body: Any, status: int = 200, **headers: str) -> BadAnswer:
    """Return the kind that sends this body, as it is or as JSON, whatever was asked for."""
    names = {name.replace("_", "-"): value for name, value in headers.items()}
    return lambda _: Reply(status, body, names)
