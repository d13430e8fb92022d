"""The hard sample on each store that retrievers are tested with."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from hybrid_search import connect
from tests.helpers import live_servers


@dataclass(frozen=True, slots=True)
class IndexPlace:
    """Where an index of the sample is."""

    url: str
    index: str

    @property
    def options(self) -> dict[str, Any]:
        """The parameters of a retriever that asks it."""
        return {"url": self.url, "index": self.index}


@pytest.fixture(scope="module", params=["embedded", *live_servers.SERVERS])
def place(
    request: pytest.FixtureRequest,
    sample_url: str,
    calls: list[dict[str, Any]],
    tmp_path_factory: pytest.TempPathFactory,
) -> Iterator[IndexPlace]:
    if request.param == "embedded":
        yield IndexPlace(sample_url, "calls")
        return
    rejects: Path = tmp_path_factory.mktemp("rejects") / "rejected.jsonl"
    with live_servers.unique_index_name(request.param) as index:
        with connect(request.param) as client:
            client.ingest(calls, index=index, rejects=rejects)
        yield IndexPlace(request.param, index)
