"""The nearest-neighbour graphs: sealed, extended, made again, and as good as looking at everything."""

from __future__ import annotations

import json
import shutil
from collections.abc import Iterator
from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest

from hybrid_search import connect
from hybrid_search.backends.embedded import backend, grower, schema, segments
from hybrid_search.backends.embedded.backend import EmbeddedBackend
from hybrid_search.backends.embedded.segments import Segment
from hybrid_search.client import Client
from hybrid_search.ingest.sources import SAMPLE
from tests.tiny import fill, request

Ranking = dict[str, list[tuple[str, int]]]
"""The best passages for each phrase."""

TOPICS = [json.loads(line)["phrase"] for line in (SAMPLE.parent / "topics.jsonl").read_text(encoding="utf-8").splitlines()]

SEGMENT = 1000
"""Spans in a sealed segment here: the sample has about 5,000."""


@pytest.fixture
def small(monkeypatch: pytest.MonkeyPatch) -> None:
    """Segments so small that the sample makes several, and no more candidates than the window: else all of it would be looked at."""
    monkeypatch.setattr(grower, "EXACT_SPANS", 200)
    monkeypatch.setattr(grower, "SEGMENT_SPANS", SEGMENT)
    monkeypatch.setattr(grower, "ADD_SPANS", 100)
    monkeypatch.setattr(backend, "CANDIDATES", 0)


@pytest.fixture
def folder(sample_url: str, tmp_path: Path, small: None) -> Path:
    """The sample, its codes as they were, its graphs grown anew in small segments."""
    copy = Path(shutil.copytree(sample_url.removeprefix("embedded:"), tmp_path / "copy"))
    grow(copy)
    return copy


@pytest.fixture
def client(folder: Path) -> Iterator[Client]:
    with connect(f"embedded:{folder}") as opened:
        yield opened


def grow(folder: Path) -> None:
    with connect(f"embedded:{folder}") as client:
        client.delete([])


def listed(folder: Path) -> list[Segment]:
    connection = schema.connect(folder / "calls.sqlite")
    found = segments.listed(connection)
    connection.close()
    return found


def files(folder: Path) -> list[str]:
    return sorted(path.name for path in (folder / "calls.spans").glob("*"))


def top(client: Client, phrase: str, **asked: Any) -> list[tuple[str, int]]:
    return [(hit.id, hit.passage) for hit in client.query(phrase, alpha=1.0, group_by="passage", spans=0, **asked)]


@pytest.fixture(scope="module")
def exhaustive(sample_url: str) -> Ranking:
    """The ten best passages for each topic, every span of the sample looked at."""
    with connect(sample_url) as client:
        assert client.describe().passages < backend.CANDIDATES
        return {phrase: top(client, phrase) for phrase in TOPICS}


def recall(client: Client, exhaustive: Ranking) -> float:
    shares = [len(set(top(client, phrase)) & set(expected)) / len(expected) for phrase, expected in exhaustive.items()]
    return sum(shares) / len(shares)


def test_the_sample_makes_several_segments_that_share_its_passages_out(folder: Path, client: Client) -> None:
    found, held = listed(folder), client.describe()
    assert len(found) >= 4
    assert found[0].first == 1
    assert found[-1].last == held.passages
    assert all(after.first == before.last + 1 for before, after in pairwise(found))
    assert sum(each.vectors for each in found) == held.spans
    assert all(each.vectors >= SEGMENT for each in found[:-1])
    assert files(folder) == [each.path(folder).name for each in found]
    assert all(each.fault(folder / "calls.spans") is None for each in found)
    assert client.query("refund").plan["candidates"] == f"HNSW in {len(found)} segments"


def test_segments_find_what_looking_at_everything_finds(client: Client, exhaustive: Ranking) -> None:
    assert recall(client, exhaustive) >= 0.95


def test_the_graphs_lose_next_to_nothing_of_what_their_spans_would_find(client: Client, sample: Client, exhaustive: Ranking) -> None:
    by_spans = {phrase: top(sample, phrase) for phrase in exhaustive}  # no segments there: its covering spans are compared one by one
    assert sample.query("refund").plan["candidates"] == "exact"
    assert recall(client, by_spans) >= 0.99


def test_with_more_candidates_than_passages_nothing_is_missed(client: Client, exhaustive: Ranking, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(backend, "CANDIDATES", 1000)
    assert recall(client, exhaustive) == 1.0


def test_a_small_index_has_no_graph(sample_url: str, tmp_path: Path) -> None:
    copy = Path(shutil.copytree(sample_url.removeprefix("embedded:"), tmp_path / "copy"))
    grow(copy)
    assert listed(copy) == []
    assert files(copy) == []


def some(number: int) -> list[dict[str, Any]]:
    """New documents of about 20 covering spans each."""
    return [{"id": f"new-{each}", "text": f"zebra number {each} " + "crossed the quiet road again " * 24} for each in range(number)]


def test_a_few_new_documents_are_found_without_a_graph(folder: Path, client: Client) -> None:
    before = listed(folder)
    client.ingest([{"id": "zebra", "text": "A zebra escaped from the zoo."}])
    assert listed(folder) == before
    assert client.query("zebra").hits[0].id == "zebra"


def test_a_segment_that_was_sealed_half_empty_is_extended(folder: Path, client: Client, monkeypatch: pytest.MonkeyPatch) -> None:
    last = listed(folder)[-1]
    monkeypatch.setattr(grower, "SEGMENT_SPANS", 4 * (last.vectors + 300))
    client.ingest(some(15))
    *others, extended = listed(folder)
    assert others == listed(folder)[:-1]
    assert extended.first == last.first
    assert extended.last > last.last
    assert extended.vectors >= last.vectors + 200
    assert extended.number > last.number
    assert files(folder) == sorted(each.path(folder).name for each in listed(folder))
    assert {hit.id for hit in client.query("zebra crossed the road", alpha=1.0)} <= {f"new-{number}" for number in range(15)}


def test_a_full_segment_is_left_as_it_is(folder: Path, client: Client, monkeypatch: pytest.MonkeyPatch) -> None:
    before = listed(folder)
    monkeypatch.setattr(grower, "SEGMENT_SPANS", before[-1].vectors)
    client.ingest(some(15))
    after = listed(folder)
    assert after[: len(before)] == before
    assert len(after) > len(before)
    assert after[len(before)].first == before[-1].last + 1


def test_what_was_deleted_is_not_found_though_a_graph_holds_it(folder: Path, client: Client) -> None:
    before = listed(folder)
    gone = {hit.id for hit in client.query("locked out of my account", alpha=1.0)}
    client.delete(sorted(gone))
    assert listed(folder) == before
    result = client.query("locked out of my account", alpha=1.0, size=100, group_by="passage")
    assert len(result) == 100
    assert not gone & {hit.id for hit in result}


def test_a_new_version_replaces_what_a_graph_holds_of_the_old_one(client: Client) -> None:
    old = client.query("locked out of my account", alpha=1.0).hits[0]
    client.ingest([{"id": old.id, "text": "A zebra escaped from the zoo."}])
    assert client.query("zebra escaped", alpha=1.0).hits[0].id == old.id
    (hit,) = [hit for hit in client.query("locked out of my account", alpha=1.0, size=1000) if hit.id == old.id]
    assert hit.text == "A zebra escaped from the zoo."


def test_graphs_that_are_mostly_of_deleted_passages_are_made_anew(
    folder: Path, client: Client, calls: list[dict[str, Any]], exhaustive: Ranking
) -> None:
    kept = {call["id"] for call in calls[::4]}
    before = listed(folder)
    client.delete([call["id"] for call in calls if call["id"] not in kept])
    after = listed(folder)
    assert not {each.number for each in before} & {each.number for each in after}
    assert sum(each.vectors for each in after) == client.describe().spans
    assert files(folder) == [each.path(folder).name for each in after]
    assert all(each.fault(folder / "calls.spans") is None for each in after)
    for phrase in TOPICS[:10]:
        expected = [key for key in exhaustive[phrase] if key[0] in kept]
        assert len(set(top(client, phrase)) & set(expected)) >= len(expected) - 1


def test_deleting_everything_leaves_no_graph_and_the_index_can_be_filled_again(folder: Path, client: Client, calls: list[dict[str, Any]]) -> None:
    assert client.delete([call["id"] for call in calls]) == len(calls)
    assert listed(folder) == []
    assert files(folder) == []
    assert client.query("refund").hits == []
    client.ingest(some(15))
    assert len(listed(folder)) == 1
    assert client.query("zebra", size=100).total == 15


def test_a_reader_sees_the_segments_that_another_process_made(folder: Path, client: Client) -> None:
    assert "zebra" not in client.query("zebra crossed the road").hits[0].text
    with connect(f"embedded:{folder}") as other:
        other.ingest(some(30))
    assert "zebra" in client.query("zebra crossed the road").hits[0].text
    assert client.query("zebra").plan["candidates"] == f"HNSW in {len(listed(folder))} segments"


def test_a_filter_that_leaves_few_passages_is_exact(client: Client, exhaustive: Ranking, calls: list[dict[str, Any]]) -> None:
    german = {call["id"] for call in calls if call["language"] == "de"}
    result = client.query(TOPICS[0], alpha=1.0, where={"language": "de"}, group_by="passage", size=1000)
    assert result.plan["candidates"] == "exact, on what the filter leaves"
    assert {hit.id for hit in result} == german
    for phrase, expected in exhaustive.items():
        best = [key for key in expected if key[0] in german]
        assert top(client, phrase, where={"language": "de"})[: len(best)] == best


def test_a_filter_that_leaves_many_passages_fills_the_window(client: Client, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(backend, "EXACT_PASSAGES", 20)
    for where in ({"language": "en"}, {"sector": "bank"}, {"sector": ["airline", "insurance"]}):
        result = client.query("locked out of my account", alpha=1.0, where=where, group_by="passage", size=90)
        assert result.plan["candidates"].startswith("HNSW")
        assert len(result) == 90
        assert all(hit.metadata[name] in wanted for hit in result for name, wanted in where.items())


def test_a_filter_on_what_is_least_alike_is_still_answered_in_full(client: Client, monkeypatch: pytest.MonkeyPatch) -> None:
    wanted = client.query("locked out of my account", alpha=1.0, where={"language": "es"}, group_by="passage", size=1000)
    monkeypatch.setattr(backend, "EXACT_PASSAGES", 1)
    found = client.query("locked out of my account", alpha=1.0, where={"language": "es"}, group_by="passage", size=1000)
    assert found.plan["candidates"].startswith("HNSW")
    assert len(found) >= 0.95 * len(wanted)


@pytest.mark.parametrize("runs", [1, 5])
def test_an_index_that_grew_while_it_was_written_answers_as_one_without_graphs(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, runs: int) -> None:
    documents = [_walk(number) for number in range(500)]
    plain, grown = EmbeddedBackend(tmp_path / "plain"), EmbeddedBackend(tmp_path)
    fill(plain, documents)
    for name, value in {"EXACT_SPANS": 200, "SEGMENT_SPANS": SEGMENT, "ADD_SPANS": 100}.items():
        monkeypatch.setattr(grower, name, value)
    for start in range(0, 500, 500 // runs):
        fill(grown, documents[start : start + 500 // runs])
    assert len(listed(tmp_path)) >= 3
    assert sum(each.vectors for each in listed(tmp_path)) >= grown.describe("calls").spans - 200
    monkeypatch.setattr(backend, "CANDIDATES", 0)
    shares = []
    for phrase in ("word7 word14 word21", "word350", "word699 word697"):
        asked = request(phrase, 50)
        expected, found = (set(store.candidates("calls", asked).semantic) for store in (plain, grown))
        assert len(found) == 50
        shares.append(len(expected & found) / 50)
    assert sum(shares) / len(shares) >= 0.95
    plain.close()
    grown.close()


def _walk(number: int) -> dict[str, Any]:
    return {"id": str(number), "text": " ".join(f"word{number * step % 701}" for step in range(1, 60))}
