"""The nearest-neighbour graphs of the embedded backend.

They are sealed, extended and rebuilt, and find nearly what an exhaustive search finds.
"""

from __future__ import annotations

import json
import shutil
from collections.abc import Iterator
from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest

from hybrid_search import connect
from hybrid_search.backends.embedded import backend, graph_builder, graph_segments, schema
from hybrid_search.backends.embedded.backend import EmbeddedBackend
from hybrid_search.backends.embedded.graph_segments import Segment
from hybrid_search.client import Client
from hybrid_search.ingest.sources.files import SAMPLE
from tests.helpers.tiny_encoder import fill_index, make_request

Ranking = dict[str, list[tuple[str, int]]]
"""The best passages for each phrase."""

TOPICS = [
    json.loads(line)["phrase"]
    for line in (SAMPLE.parent / "topics.jsonl").read_text(encoding="utf-8").splitlines()
]

SEGMENT = 1000
"""Covering windows in a sealed segment in these tests; the sample has about 5,000."""


@pytest.fixture
def small(monkeypatch: pytest.MonkeyPatch) -> None:
    """Make segments so small that the sample needs several, and score only the window exactly.

    Otherwise every passage of the sample would be scored.
    """
    monkeypatch.setattr(graph_builder, "EXACT_SPANS", 200)
    monkeypatch.setattr(graph_builder, "SEGMENT_SPANS", SEGMENT)
    monkeypatch.setattr(graph_builder, "ADD_SPANS", 100)
    monkeypatch.setattr(backend, "CANDIDATES", 0)


@pytest.fixture
def folder(sample_url: str, tmp_path: Path, small: None) -> Path:
    """A copy of the sample with the same codes, and its graphs built again in small segments."""
    copy = Path(shutil.copytree(sample_url.removeprefix("embedded:"), tmp_path / "copy"))
    grow_graphs(copy)
    return copy


@pytest.fixture
def client(folder: Path) -> Iterator[Client]:
    with connect(f"embedded:{folder}") as segmented_client:
        yield segmented_client


def grow_graphs(folder: Path) -> None:
    with connect(f"embedded:{folder}") as client:
        client.delete([])


def list_segments(folder: Path) -> list[Segment]:
    connection = schema.connect(folder / "calls.sqlite")
    stored_segments = graph_segments.list_segments(connection)
    connection.close()
    return stored_segments


def files(folder: Path) -> list[str]:
    return sorted(path.name for path in (folder / "calls.spans").glob("*"))


def best_passages(client: Client, phrase: str, **options: Any) -> list[tuple[str, int]]:
    return [
        (hit.id, hit.passage)
        for hit in client.query(phrase, alpha=1.0, group_by="passage", spans=0, **options)
    ]


@pytest.fixture(scope="module")
def exhaustive(sample_url: str) -> Ranking:
    """The ten best passages for each topic, found by scoring every span of the sample."""
    with connect(sample_url) as client:
        assert client.describe().passages < backend.CANDIDATES
        return {phrase: best_passages(client, phrase) for phrase in TOPICS}


def recall(client: Client, exhaustive: Ranking) -> float:
    """Return the share of the exhaustive answers that the client finds, averaged over phrases."""
    shares = []
    for phrase, expected in exhaustive.items():
        common = set(best_passages(client, phrase)) & set(expected)
        shares.append(len(common) / len(expected))
    return sum(shares) / len(shares)


def test_the_sample_makes_several_segments_that_share_its_passages_out(
    folder: Path, client: Client
) -> None:
    segments, description = list_segments(folder), client.describe()
    assert len(segments) >= 4
    assert segments[0].first == 1
    assert segments[-1].last == description.passages
    assert all(after.first == before.last + 1 for before, after in pairwise(segments))
    assert sum(segment.vectors for segment in segments) == description.spans
    assert all(segment.vectors >= SEGMENT for segment in segments[:-1])
    assert files(folder) == [segment.path(folder).name for segment in segments]
    assert all(segment.find_fault(folder / "calls.spans") is None for segment in segments)
    assert client.query("refund").plan["candidates"] == f"HNSW in {len(segments)} segments"


def test_segments_find_what_looking_at_everything_finds(
    client: Client, exhaustive: Ranking
) -> None:
    assert recall(client, exhaustive) >= 0.95


def test_the_graphs_lose_next_to_nothing_of_what_their_spans_would_find(
    client: Client, sample: Client, exhaustive: Ranking
) -> None:
    # The sample itself has no segments: its covering windows are compared one by one.
    by_spans = {phrase: best_passages(sample, phrase) for phrase in exhaustive}
    assert sample.query("refund").plan["candidates"] == "exact"
    assert recall(client, by_spans) >= 0.99


def test_with_more_candidates_than_passages_nothing_is_missed(
    client: Client, exhaustive: Ranking, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(backend, "CANDIDATES", 1000)
    assert recall(client, exhaustive) == 1.0


def test_a_small_index_has_no_graph(sample_url: str, tmp_path: Path) -> None:
    copy = Path(shutil.copytree(sample_url.removeprefix("embedded:"), tmp_path / "copy"))
    grow_graphs(copy)
    assert list_segments(copy) == []
    assert files(copy) == []


def make_documents(number: int) -> list[dict[str, Any]]:
    """Return new documents of about 20 covering windows each."""
    return [
        {
            "id": f"new-{ordinal}",
            "text": f"zebra number {ordinal} " + "crossed the quiet road again " * 24,
        }
        for ordinal in range(number)
    ]


def test_a_few_new_documents_are_found_without_a_graph(folder: Path, client: Client) -> None:
    before = list_segments(folder)
    client.ingest([{"id": "zebra", "text": "A zebra escaped from the zoo."}])
    assert list_segments(folder) == before
    assert client.query("zebra").hits[0].id == "zebra"


def test_a_segment_that_was_sealed_half_empty_is_extended(
    folder: Path, client: Client, monkeypatch: pytest.MonkeyPatch
) -> None:
    last = list_segments(folder)[-1]
    monkeypatch.setattr(graph_builder, "SEGMENT_SPANS", 4 * (last.vectors + 300))
    client.ingest(make_documents(15))
    *untouched, extended = list_segments(folder)
    assert untouched == list_segments(folder)[:-1]
    assert extended.first == last.first
    assert extended.last > last.last
    assert extended.vectors >= last.vectors + 200
    assert extended.number > last.number
    assert files(folder) == sorted(segment.path(folder).name for segment in list_segments(folder))
    assert {hit.id for hit in client.query("zebra crossed the road", alpha=1.0)} <= {
        f"new-{number}" for number in range(15)
    }


def test_a_full_segment_is_left_as_it_is(
    folder: Path, client: Client, monkeypatch: pytest.MonkeyPatch
) -> None:
    before = list_segments(folder)
    monkeypatch.setattr(graph_builder, "SEGMENT_SPANS", before[-1].vectors)
    client.ingest(make_documents(15))
    after = list_segments(folder)
    assert after[: len(before)] == before
    assert len(after) > len(before)
    assert after[len(before)].first == before[-1].last + 1


def test_what_was_deleted_is_not_found_though_a_graph_holds_it(
    folder: Path, client: Client
) -> None:
    before = list_segments(folder)
    deleted_ids = {hit.id for hit in client.query("locked out of my account", alpha=1.0)}
    client.delete(sorted(deleted_ids))
    assert list_segments(folder) == before
    result = client.query("locked out of my account", alpha=1.0, size=100, group_by="passage")
    assert len(result) == 100
    assert not deleted_ids & {hit.id for hit in result}


def test_a_new_version_replaces_what_a_graph_holds_of_the_old_one(client: Client) -> None:
    old = client.query("locked out of my account", alpha=1.0).hits[0]
    client.ingest([{"id": old.id, "text": "A zebra escaped from the zoo."}])
    assert client.query("zebra escaped", alpha=1.0).hits[0].id == old.id
    (hit,) = [
        hit
        for hit in client.query("locked out of my account", alpha=1.0, size=1000)
        if hit.id == old.id
    ]
    assert hit.text == "A zebra escaped from the zoo."


def test_graphs_that_are_mostly_of_deleted_passages_are_made_anew(
    folder: Path, client: Client, calls: list[dict[str, Any]], exhaustive: Ranking
) -> None:
    kept_ids = {call["id"] for call in calls[::4]}
    before = list_segments(folder)
    client.delete([call["id"] for call in calls if call["id"] not in kept_ids])
    after = list_segments(folder)
    assert not {segment.number for segment in before} & {segment.number for segment in after}
    assert sum(segment.vectors for segment in after) == client.describe().spans
    assert files(folder) == [segment.path(folder).name for segment in after]
    assert all(segment.find_fault(folder / "calls.spans") is None for segment in after)
    for phrase in TOPICS[:10]:
        expected = [key for key in exhaustive[phrase] if key[0] in kept_ids]
        assert len(set(best_passages(client, phrase)) & set(expected)) >= len(expected) - 1


def test_deleting_everything_leaves_no_graph_and_the_index_can_be_filled_again(
    folder: Path, client: Client, calls: list[dict[str, Any]]
) -> None:
    assert client.delete([call["id"] for call in calls]) == len(calls)
    assert list_segments(folder) == []
    assert files(folder) == []
    assert client.query("refund").hits == []
    client.ingest(make_documents(15))
    assert len(list_segments(folder)) == 1
    assert client.query("zebra", size=100).total == 15


def test_a_reader_sees_the_segments_that_another_process_made(folder: Path, client: Client) -> None:
    assert "zebra" not in client.query("zebra crossed the road").hits[0].text
    with connect(f"embedded:{folder}") as writer_client:
        writer_client.ingest(make_documents(30))
    assert "zebra" in client.query("zebra crossed the road").hits[0].text
    assert (
        client.query("zebra").plan["candidates"] == f"HNSW in {len(list_segments(folder))} segments"
    )


def test_a_filter_that_leaves_few_passages_is_exact(
    client: Client, exhaustive: Ranking, calls: list[dict[str, Any]]
) -> None:
    german = {call["id"] for call in calls if call["language"] == "de"}
    result = client.query(
        TOPICS[0], alpha=1.0, where={"language": "de"}, group_by="passage", size=1000
    )
    assert result.plan["candidates"] == "exact, on what the filter leaves"
    assert {hit.id for hit in result} == german
    for phrase, expected in exhaustive.items():
        best = [key for key in expected if key[0] in german]
        assert best_passages(client, phrase, where={"language": "de"})[: len(best)] == best


def test_a_filter_that_leaves_many_passages_fills_the_window(
    client: Client, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(backend, "EXACT_PASSAGES", 20)
    for where in ({"language": "en"}, {"sector": "bank"}, {"sector": ["airline", "insurance"]}):
        result = client.query(
            "locked out of my account", alpha=1.0, where=where, group_by="passage", size=90
        )
        assert result.plan["candidates"].startswith("HNSW")
        assert len(result) == 90
        assert all(
            hit.metadata[name] in allowed for hit in result for name, allowed in where.items()
        )


def test_a_filter_on_what_is_least_alike_is_still_answered_in_full(
    client: Client, monkeypatch: pytest.MonkeyPatch
) -> None:
    exact_result = client.query(
        "locked out of my account",
        alpha=1.0,
        where={"language": "es"},
        group_by="passage",
        size=1000,
    )
    monkeypatch.setattr(backend, "EXACT_PASSAGES", 1)
    graph_result = client.query(
        "locked out of my account",
        alpha=1.0,
        where={"language": "es"},
        group_by="passage",
        size=1000,
    )
    assert graph_result.plan["candidates"].startswith("HNSW")
    assert len(graph_result) >= 0.95 * len(exact_result)


@pytest.mark.parametrize("runs", [1, 5])
def test_an_index_that_grew_while_it_was_written_answers_as_one_without_graphs(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, runs: int
) -> None:
    documents = [_walk(number) for number in range(500)]
    plain, grown = EmbeddedBackend(tmp_path / "plain"), EmbeddedBackend(tmp_path)
    fill_index(plain, documents)
    for name, value in {"EXACT_SPANS": 200, "SEGMENT_SPANS": SEGMENT, "ADD_SPANS": 100}.items():
        monkeypatch.setattr(graph_builder, name, value)
    for start in range(0, 500, 500 // runs):
        fill_index(grown, documents[start : start + 500 // runs])
    assert len(list_segments(tmp_path)) >= 3
    assert (
        sum(segment.vectors for segment in list_segments(tmp_path))
        >= grown.describe_index("calls").spans - 200
    )
    monkeypatch.setattr(backend, "CANDIDATES", 0)
    shares = []
    for phrase in ("word7 word14 word21", "word350", "word699 word697"):
        search_request = make_request(phrase, 50)
        expected, graph_keys = (
            set(store.find_candidates("calls", search_request).semantic) for store in (plain, grown)
        )
        assert len(graph_keys) == 50
        shares.append(len(expected & graph_keys) / 50)
    assert sum(shares) / len(shares) >= 0.95
    plain.close()
    grown.close()


def _walk(number: int) -> dict[str, Any]:
    return {
        "id": str(number),
        "text": " ".join(f"word{number * step % 701}" for step in range(1, 60)),
    }
