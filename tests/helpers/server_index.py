"""An index on a real server, read without the product, and checked against the calls sent to it."""

from __future__ import annotations

import json
import secrets
import time
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import closing, contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from urllib.parse import quote

from hybrid_search.backends import open_backend
from hybrid_search.backends.server import passage_codec
from hybrid_search.backends.server.graph_vectors import GraphVectors
from hybrid_search.backends.types import IndexSpec
from hybrid_search.credentials import Access
from hybrid_search.encoder import Encoder
from hybrid_search.ingest.document_parser import parse, source_hash
from hybrid_search.ingest.options import IngestOptions
from hybrid_search.ingest.pipeline import ingest
from hybrid_search.ingest.summary import Summary
from hybrid_search.ingest.types import SourceLine
from hybrid_search.text.passages import split
from tests.helpers.cli import CommandResult, invoke_cli
from tests.helpers.fake_server import HttpRequest
from tests.helpers.fault_proxy import send_request
from tests.helpers.tiny_encoder import TinyEncoder, make_entries, make_spec

WORDS = 30
"""Words of a turn: two or three turns make a passage."""
PAGE = 1000

Call = dict[str, Any]
Expect = Callable[[Call], dict[str, Call]]
"""Returns the passages expected of a document, by ``_id``."""

TINY = make_spec()
GRAPH = GraphVectors(TINY.dimension, are_bytes=True)
"""How the vectors of the tiny encoder are written to a new index."""


def make_call(number: int, version: str, turns: int) -> Call:
    """Return a made-up call with the word `version` in every turn."""

    def turn_text(turn: int) -> str:
        factor = number * turn
        return " ".join(f"word{factor * step % 997}" for step in range(1, WORDS + 1))

    turn_texts = (turn_text(turn) for turn in range(1, turns + 1))
    turn_objects = [
        {"speaker": "agent" if turn % 2 else "customer", "text": f"{version} {text}"}
        for turn, text in enumerate(turn_texts)
    ]
    return {
        "id": f"call-{number:03d}",
        "turns": turn_objects,
        "sector": f"sector {number % 7}",
        "version": version,
    }


def make_calls(version: str, turns: Callable[[int], int], count: int) -> list[Call]:
    return [make_call(number, version, turns(number)) for number in range(count)]


@dataclass(frozen=True, slots=True)
class RawIndex:
    """The name of an index, and the URL of the store for it."""

    url: str
    index: str

    def call(self, command: str, *arguments: str) -> CommandResult:
        """Run a command on this index."""
        return invoke_cli(command, "--index", self.index, "--url", self.url, *arguments)

    def request_json(self, method: str, target: str, body: Any = None) -> Any:
        """Send a request and return the JSON of the response."""
        headers = {"content-type": "application/json", "accept": "application/json"}
        answer = send_request(
            self.url,
            HttpRequest(method, target, headers, json.dumps(body).encode() if body else b""),
        )
        assert answer.status == 200, answer
        return json.loads(answer.body)

    def wait_for_writes(self) -> None:
        """Wait until the server has ended what a worker requested before it was killed."""
        while self.request_json("GET", "/_tasks?actions=indices:data/write*")["nodes"]:
            time.sleep(0.02)

    def write_passage(self, method: str, target: str, body: Any = None) -> None:
        """Change one passage behind the product's back."""
        answer = send_request(
            self.url,
            HttpRequest(
                method,
                target,
                {"content-type": "application/json"},
                json.dumps(body).encode() if body else b"",
            ),
        )
        assert answer.status in (200, 201), answer

    def fetch_passages(
        self,
        index: str = "",
        sort: tuple[str, ...] = ("document_id", "ordinal"),
        without: tuple[str, ...] = (),
    ) -> dict[str, Call]:
        """Return everything in the index by its ``_id``, except the fields `without`.

        The fields `sort` together identify a passage. Word codes are read from their column.
        """
        path, passages = f"/{quote(index or self.index)}", dict[str, Call]()
        self.request_json("POST", f"{path}/_refresh")
        body = {
            "size": PAGE,
            "sort": list(sort),
            "track_total_hits": True,
            "_source": {"excludes": list(without)},
            "docvalue_fields": [name for name in ("tokens",) if name not in without],
        }
        while True:
            response = self.request_json("POST", f"{path}/_search", body)
            hits = response["hits"]["hits"]
            passages |= {hit["_id"]: hit["_source"] | read_tokens(hit) for hit in hits}
            if len(hits) < PAGE:
                assert response["_shards"]["failed"] == 0
                assert len(passages) == response["hits"]["total"]["value"]
                return passages
            body["search_after"] = hits[-1]["sort"]

    def count_passages(self) -> int:
        """Return the number of passages, 0 without the index."""
        if not self.list_names():
            return 0
        self.request_json("POST", f"/{self.index}/_refresh")
        return int(self.request_json("GET", f"/{self.index}/_count")["count"])

    def list_names(self) -> list[str]:
        """Return the indexes of this name: all generations, and that of refused documents."""
        return sorted(
            row["index"]
            for row in self.request_json("GET", f"/_cat/indices/{self.index}*?format=json&h=index")
        )

    def ingest(
        self,
        lines: Iterable[Call | bytes],
        url: str = "",
        encoder: Encoder | None = None,
        timeout: float = 60.0,
        patience: float = 600.0,
    ) -> Summary:
        """Run an ingest in this process, through `url`."""
        numbered = (
            SourceLine(
                "calls",
                number,
                document if isinstance(document, bytes) else json.dumps(document).encode(),
            )
            for number, document in enumerate(lines, 1)
        )
        with closing(
            open_backend(url or self.url, Access(timeout=timeout, patience=patience))
        ) as backend:
            return ingest(
                numbered,
                backend,
                encoder or TinyEncoder(),
                IngestOptions(self.index, Path("rejected.jsonl")),
            )


def read_tokens(hit: Mapping[str, Any]) -> dict[str, str]:
    """Return the word codes of a hit as they were sent; a server gives no padding of base64."""
    column = hit.get("fields", {}).get("tokens")
    if not column:
        return {}
    encoded = column[0].rstrip("=")
    return {"tokens": encoded + "=" * (-len(encoded) % 4)}


@contextmanager
def temporary_index(url: str) -> Iterator[RawIndex]:
    """Yield the place of an index that does not exist yet; it is deleted at the end."""
    place = RawIndex(url, f"faults-{secrets.token_hex(4)}")
    try:
        yield place
    finally:
        for name in place.list_names():
            place.request_json("DELETE", f"/{name}")


def expected_passages(document: Call) -> dict[str, Call]:
    """Return all that a server should hold of a document encoded by the tiny encoder."""
    return {
        f"{document['id']}#{entry.passage.ordinal}": strip_volatile_fields(
            passage_codec.build_source(entry, TINY, "", GRAPH)
        )
        for entry in make_entries(document)
    }


def outline_passages(document: Call, index_spec: IndexSpec) -> dict[str, Call]:
    """Return what a server should hold of a document for any encoder, without its vectors."""
    parsed, canonical = parse(json.dumps(document).encode())
    passages = list(split(parsed))
    shared_fields = {
        "document_id": parsed.id,
        "passages": len(passages),
        "source_hash": source_hash(canonical, index_spec),
        "metadata": parsed.metadata,
    }
    return {
        f"{parsed.id}#{passage.ordinal}": {
            **shared_fields,
            "ordinal": passage.ordinal,
            "start": passage.start,
            "end": passage.end,
            "text": parsed.text[passage.start : passage.end],
        }
        for passage in passages
    }


def strip_volatile_fields(source: Mapping[str, Any]) -> Call:
    """Return a passage without the time of writing and the vectors, which differ between runs."""
    volatile_fields = ("indexed_at", "spans")
    stable_fields = {name: value for name, value in source.items() if name not in volatile_fields}
    return {**stable_fields, "spans": [(span["start"], span["end"]) for span in source["spans"]]}


def assert_index_holds(
    place: RawIndex, expected_documents: Iterable[Call], expect: Expect = expected_passages
) -> None:
    """Check that the index holds the expected documents, each once and complete, and no others."""
    expected = {
        id_: source for document in expected_documents for id_, source in expect(document).items()
    }
    passages = place.fetch_passages()
    assert sorted(passages) == sorted(expected)
    for id_, source in expected.items():
        stable_fields = strip_volatile_fields(passages[id_])
        assert {name: stable_fields[name] for name in source} == source, id_
    for id_, source in passages.items():
        assert source["tokens"], id_
        assert len(source["spans"]) == source["span_count"] > 0, id_


def find_skipped_ids(
    place: RawIndex, candidate_documents: Iterable[Call], index_spec: IndexSpec = TINY
) -> set[str]:
    """Return the documents that a new run would skip, after checks that they are complete."""
    hashes = {
        source["document_id"]: source["source_hash"]
        for document in candidate_documents
        for source in outline_passages(document, index_spec).values()
    }
    with (
        closing(open_backend(place.url)) as backend,
        backend.writer(place.index, index_spec) as writer,
    ):
        known_hashes = writer.read_source_hashes(list(hashes))
    passages_by_document: dict[str, list[Call]] = {}
    for source in place.fetch_passages(without=("spans", "tokens")).values():
        passages_by_document.setdefault(source["document_id"], []).append(source)
    for id_, version in known_hashes.items():
        passages = passages_by_document[id_]
        assert {source["source_hash"] for source in passages} == {version}
        assert all(source["passages"] == len(passages) for source in passages)
    return {id_ for id_ in hashes if known_hashes.get(id_) == hashes[id_]}
