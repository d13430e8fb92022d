"""A small embedded index of the tiny encoder, for tests that change its bytes."""

from __future__ import annotations

import sqlite3
from contextlib import closing
from pathlib import Path
from typing import Any

from hybrid_search.client import Client

DOCUMENTS: list[dict[str, Any]] = [
    {"id": f"call-{number:03}", "text": f"refund word{number} please", "number": number}
    for number in range(40)
]
STORE = Path("store")
FILE, LOG, LOCK = STORE / "calls.sqlite", STORE / "calls.sqlite-wal", STORE / "calls.lock"
URL = f"embedded:{STORE}"
REPAIR = "hybrid-search verify --index calls --repair"


def ask(client: Client) -> dict[str, float]:
    """Return the score of each document that a phrase of all of them finds."""
    return {hit.id: hit.score for hit in client.query("refund word7", size=50).hits}


def change_rows(statement: str, *values: object) -> None:
    """Change rows by SQL, behind the back of the index."""
    with closing(sqlite3.connect(FILE, isolation_level=None)) as connection:
        assert connection.execute(statement, values).rowcount > 0
