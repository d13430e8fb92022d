"""An index on a real server that is read without the product, made-up calls to fill it with, and what is then to be there."""

from __future__ import annotations

import json
import secrets
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import closing, contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from urllib.parse import quote

from hybrid_search.access import Access
from hybrid_search.backends import open_backend
from hybrid_search.backends.base import IndexSpec
from hybrid_search.backends.server import documents
from hybrid_search.encoder import Encoder
from hybrid_search.ingest.documents import parse, source_hash
from hybrid_search.ingest.sources import Line
from hybrid_search.ingest.summary import Summary
from hybrid_search.ingest.worker import ingest
from hybrid_search.passages import split
from tests.faults import sent
from tests.scripted import Asked
from tests.tiny import TinyEncoder, entries, spec

WORDS = 30
"""Of a turn: two or three turns make a passage."""
PAGE = 1000

Call = dict[str, Any]
Expect = Callable[[Call], dict[str, Call]]
"""What is to be there of a document: passages by ``_id``."""

TINY = spec()


def call(number: int, version: str, turns: int) -> Call:
    """A call that has the word `version` in every turn."""
    said = (" ".join(f"word{number * turn * step % 997}" for step in range(1, WORDS + 1)) for turn in range(1, turns + 1))
    spoken = [{"speaker": "agent" if turn % 2 else "customer", "text": f"{version} {text}"} for turn, text in enumerate(said)]
    return {"id": f"call-{number:03d}", "turns": spoken, "sector": f"sector {number % 7}", "version": version}


def calls(version: str, turns: Callable[[int], int], count: int) -> list[Call]:
    return [call(number, version, turns(number)) for number in range(count)]


@dataclass(frozen=True, slots=True)
class Place:
    """An index and the server that it is to be on."""

    url: str
    index: str

    def asked(self, method: str, target: str, body: Any = None) -> Any:
        """What the server answers."""
        headers = {"content-type": "application/json", "accept": "application/json"}
        answer = sent(self.url, Asked(method, target, headers, json.dumps(body).encode() if body else b""))
        assert answer.status == 200, answer
        return json.loads(answer.body)

    def written(self, method: str, target: str, body: Any = None) -> None:
        """Change one passage behind the product's back."""
        answer = sent(self.url, Asked(method, target, {"content-type": "application/json"}, json.dumps(body).encode() if body else b""))
        assert answer.status in (200, 201), answer

    def held(self, index: str = "", sort: tuple[str, ...] = ("document_id", "ordinal"), without: tuple[str, ...] = ()) -> dict[str, Call]:
        """Everything that is in the index, by its ``_id``, but the fields `without`. `sort` are fields that tell all of it apart."""
        path, held = f"/{quote(index or self.index)}", dict[str, Call]()
        self.asked("POST", f"{path}/_refresh")
        body = {"size": PAGE, "sort": list(sort), "track_total_hits": True, "_source": {"excludes": list(without)}}
        while True:
            found = self.asked("POST", f"{path}/_search", body)
            hits = found["hits"]["hits"]
            held |= {hit["_id"]: hit["_source"] for hit in hits}
            if len(hits) < PAGE:
                assert (len(held), found["_shards"]["failed"]) == (found["hits"]["total"]["value"], 0)
                return held
            body["search_after"] = hits[-1]["sort"]

    def count(self) -> int:
        """Passages that are there; none where the index is not."""
        if not self.names():
            return 0
        self.asked("POST", f"/{self.index}/_refresh")
        return int(self.asked("GET", f"/{self.index}/_count")["count"])

    def names(self) -> list[str]:
        """The indexes of this name, of any version, and that of its refused documents."""
        return sorted(each["index"] for each in self.asked("GET", f"/_cat/indices/{self.index}*?format=json&h=index"))

    def ingest(
        self, lines: Iterable[Call | bytes], url: str = "", encoder: Encoder | None = None, timeout: float = 60.0, patience: float = 600.0
    ) -> Summary:
        """Run the worker in this process, by way of `url`."""
        numbered = (Line("calls", number, each if isinstance(each, bytes) else json.dumps(each).encode()) for number, each in enumerate(lines, 1))
        with closing(open_backend(url or self.url, Access(timeout=timeout, patience=patience))) as backend:
            return ingest(numbered, backend, encoder or TinyEncoder(), self.index, Path("rejected.jsonl"))


@contextmanager
def placed(url: str) -> Iterator[Place]:
    """An index that is not there yet, and will be gone afterwards."""
    there = Place(url, f"faults-{secrets.token_hex(4)}")
    try:
        yield there
    finally:
        for name in there.names():
            there.asked("DELETE", f"/{name}")


def whole(document: Call) -> dict[str, Call]:
    """All that a server is to hold of a document, by the tiny encoder."""
    return {f"{document['id']}#{entry.passage.ordinal}": bare(documents.source(entry, TINY, "")) for entry in entries(document)}


def outline(document: Call, made_for: IndexSpec) -> dict[str, Call]:
    """The same by any encoder, without what it makes."""
    read, canonical = parse(json.dumps(document).encode())
    cut = list(split(read))
    same = {"document_id": read.id, "passages": len(cut), "source_hash": source_hash(canonical, made_for), "metadata": read.metadata}
    return {
        f"{read.id}#{each.ordinal}": {**same, "ordinal": each.ordinal, "start": each.start, "end": each.end, "text": read.text[each.start : each.end]}
        for each in cut
    }


def bare(source: Mapping[str, Any]) -> Call:
    """A passage without what differs from run to run, or may not be given back: the time of writing, and the vectors of its spans."""
    kept = {name: value for name, value in source.items() if name not in ("indexed_at", "spans")}
    return {**kept, "spans": [(span["start"], span["end"]) for span in source["spans"]]}


def sound(place: Place, good: Iterable[Call], expect: Expect = whole) -> None:
    """The index holds the documents `good`, every one once and whole, with the text that it should have, and nothing else."""
    expected = {id_: source for document in good for id_, source in expect(document).items()}
    found = place.held()
    assert sorted(found) == sorted(expected)
    assert [id_ for id_ in expected if any(bare(found[id_])[name] != value for name, value in expected[id_].items())] == []
    assert all(source["tokens"] and len(source["spans"]) == source["span_count"] > 0 for source in found.values())


def skipped(place: Place, documents_: Iterable[Call], made_for: IndexSpec = TINY) -> set[str]:
    """Which of `documents_` a new run would skip. Whatever passes for whole is, and of one version."""
    hashes = {source["document_id"]: source["source_hash"] for each in documents_ for source in outline(each, made_for).values()}
    with closing(open_backend(place.url)) as backend, backend.writer(place.index, made_for) as writer:
        known = writer.known(list(hashes))
    held: dict[str, list[Call]] = {}
    for source in place.held(without=("spans", "tokens")).values():
        held.setdefault(source["document_id"], []).append(source)
    for id_, version in known.items():
        assert {source["source_hash"] for source in held[id_]} == {version}
        assert [source["passages"] for source in held[id_]] == [len(held[id_])] * len(held[id_])
    return {id_ for id_ in hashes if known.get(id_) == hashes[id_]}
