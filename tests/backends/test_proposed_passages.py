"""Passages that their nearest words propose: they are those that a look at everything finds."""

from __future__ import annotations

import shutil
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from benchmarks.quality import hard_sample
from hybrid_search import connect, encoder
from hybrid_search.backends.embedded import (
    backend,
    codes_folder,
    near_passages,
)
from hybrid_search.backends.embedded.snapshot import Snapshot
from hybrid_search.backends.types import Request
from hybrid_search.client import Client
from hybrid_search.search.phrase_vector import query_vector
from hybrid_search.search.result import Result
from hybrid_search.text import word_codes

Ranking = dict[str, list[tuple[str, int]]]

TOPICS = hard_sample.read_phrases()

PROPOSED = 120
"""Passages that are proposed at most in these tests, of some 390."""

FOUND = 0.965
"""The least share of the ten best passages that are among those proposed."""


@pytest.fixture
def client(sample_url: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Client]:
    """A copy of the sample, of which few passages are scored exactly."""
    monkeypatch.setattr(near_passages, "MOST_CANDIDATES", PROPOSED)
    copy = shutil.copytree(sample_url.removeprefix("embedded:"), tmp_path / "copy")
    with connect(f"embedded:{copy}") as copy_client:
        yield copy_client


def best_passages(client: Client, phrase: str, **options: Any) -> list[tuple[str, int]]:
    return [
        (hit.id, hit.passage)
        for hit in client.query(phrase, alpha=1.0, group_by="passage", spans=0, **options)
    ]


def request_refund(window: int, *, lexical: bool = True) -> Request:
    vector = query_vector(encoder.truncate_encoder(encoder.load()), "refund")
    return Request("refund", vector, window, lexical=lexical)


@pytest.fixture(scope="module")
def exhaustive(sample_url: str) -> Ranking:
    """The ten best passages for each topic, found by scoring every span of the sample."""
    with connect(sample_url) as client:
        assert client.describe().passages < near_passages.MOST_CANDIDATES
        return {phrase: best_passages(client, phrase) for phrase in TOPICS}


def recall(client: Client, exhaustive: Ranking) -> float:
    """Return the share of the exhaustive answers that the client finds, averaged over phrases."""
    shares = []
    for phrase, expected in exhaustive.items():
        common = set(best_passages(client, phrase)) & set(expected)
        shares.append(len(common) / len(expected))
    return sum(shares) / len(shares)


def test_the_nearest_words_propose_what_looking_at_everything_finds(
    client: Client, exhaustive: Ranking
) -> None:
    # all of some 30,000 words are compared, and 120 of 390 passages are scored exactly
    assert client.query("refund").plan["candidates"].startswith("nearest words in ")
    assert recall(client, exhaustive) >= FOUND


def test_a_part_of_the_words_proposes_them_too(
    client: Client, exhaustive: Ranking, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(near_passages, "LISTED_WORDS", 4000)
    assert recall(client, exhaustive) >= FOUND


def test_with_more_candidates_than_passages_nothing_is_missed(
    client: Client, exhaustive: Ranking, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(near_passages, "MOST_CANDIDATES", 1000)
    assert client.query("refund").plan["candidates"] == "exact"
    assert recall(client, exhaustive) == 1.0


def test_what_was_deleted_is_not_found_though_a_file_of_codes_has_it(client: Client) -> None:
    deleted_ids = {hit.id for hit in client.query("locked out of my account", alpha=1.0)}
    client.delete(sorted(deleted_ids))
    result = client.query("locked out of my account", alpha=1.0, size=100, group_by="passage")
    assert len(result) == 100
    assert not deleted_ids & {hit.id for hit in result}


def test_a_new_version_replaces_the_old_one(client: Client) -> None:
    old = client.query("locked out of my account", alpha=1.0).hits[0]
    client.ingest([{"id": old.id, "text": "A zebra escaped from the zoo."}])
    assert client.query("zebra escaped", alpha=1.0).hits[0].id == old.id
    (hit,) = [
        hit
        for hit in client.query("locked out of my account", alpha=1.0, size=1000)
        if hit.id == old.id
    ]
    assert hit.text == "A zebra escaped from the zoo."


def test_where_most_was_deleted_the_rest_is_found(
    client: Client, calls: list[dict[str, Any]], exhaustive: Ranking, tmp_path: Path
) -> None:
    kept_ids = {call["id"] for call in calls[::4]}
    before = {path.name for path in tmp_path.rglob("*.codes")}
    client.delete([call["id"] for call in calls if call["id"] not in kept_ids])
    after = [path.stat().st_size for path in tmp_path.rglob("*.codes")]
    assert len(after) <= len(before)
    for phrase in TOPICS[:10]:
        expected = [key for key in exhaustive[phrase] if key[0] in kept_ids]
        assert len(set(best_passages(client, phrase)) & set(expected)) >= len(expected) - 1


def test_deleting_everything_leaves_an_index_that_can_be_filled_again(
    client: Client, calls: list[dict[str, Any]]
) -> None:
    assert client.delete([call["id"] for call in calls]) == len(calls)
    assert client.query("refund").hits == []
    client.ingest([{"id": str(number), "text": f"zebra {number}"} for number in range(20)])
    assert client.query("zebra", size=100).total == 20


def test_a_reader_sees_what_another_client_wrote(client: Client, tmp_path: Path) -> None:
    assert "zebra" not in client.query("zebra crossed the road").hits[0].text
    with connect(f"embedded:{tmp_path / 'copy'}") as writer_client:
        writer_client.ingest([{"id": "new", "text": "the zebra crossed the road"}])
    assert "zebra" in client.query("zebra crossed the road").hits[0].text


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
        assert result.plan["candidates"].startswith("nearest words")
        assert len(result) == 90
        assert all(
            hit.metadata[name] in allowed for hit in result for name, allowed in where.items()
        )


def test_a_filter_on_what_is_least_alike_is_still_answered_in_full(
    client: Client, monkeypatch: pytest.MonkeyPatch
) -> None:
    def ask_in_spanish() -> Result:
        where = {"language": "es"}
        phrase = "locked out of my account"
        return client.query(phrase, alpha=1.0, where=where, group_by="passage", size=1000)

    exact_result = ask_in_spanish()
    monkeypatch.setattr(backend, "EXACT_PASSAGES", 1)
    proposed_result = ask_in_spanish()
    assert proposed_result.plan["candidates"].startswith("nearest words")
    assert len(proposed_result) >= 0.95 * len(exact_result)


def test_passages_of_the_bm25_leg_are_scored_for_the_span_leg_too(
    client: Client, monkeypatch: pytest.MonkeyPatch
) -> None:
    window = 10
    by_spans = client.backend.find("calls", request_refund(1000, lexical=False)).passages
    farthest = np.array([passage.key for passage in by_spans][-2 * window :])
    monkeypatch.setattr(Snapshot, "find_near", lambda *_: farthest)
    request = request_refund(window)
    found = client.backend.find("calls", request).passages
    assert {passage.key for passage in found} - {*farthest.tolist()}
    for passage in found:
        cosines = word_codes.cosines(request.vector, passage.tokens)
        assert passage.cosines == pytest.approx(cosines, abs=1e-6)


def test_where_the_nearest_are_gone_those_of_the_bm25_leg_do_not_stand_in_for_others(
    client: Client, monkeypatch: pytest.MonkeyPatch
) -> None:
    window = 10
    by_spans = client.backend.find("calls", request_refund(50, lexical=False)).passages
    nearest = [passage.key for passage in by_spans]
    proposals = iter([np.arange(10_000, 10_020), np.array(nearest)])
    monkeypatch.setattr(Snapshot, "find_near", lambda *_: next(proposals))
    found = {
        passage.key for passage in client.backend.find("calls", request_refund(window)).passages
    }
    assert found.issuperset(nearest[:window])
    assert {passage.key for passage in by_spans if passage.bm25 == 0} & found


def test_files_of_codes_are_merged_and_swept_up(
    tiny_encoder: None, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(codes_folder, "FEW_FILES", 3)
    with connect(f"embedded:{tmp_path}") as client:
        for number in range(30):
            client.ingest([{"id": str(number % 10), "text": f"word{number} of a call"}])
            assert len(list(tmp_path.rglob("*.codes"))) <= 8
        assert {hit.id for hit in client.query("call", size=20).hits} == set(map(str, range(10)))
        assert not client.verify("calls", full=True).findings
