"""Inverted lists: words by their nearest centroids, which tell a query what to read."""

from __future__ import annotations

import shutil
import sqlite3
import threading
import tracemalloc
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path

import numpy as np
import pytest

from benchmarks.quality import hard_sample
from hybrid_search import connect
from hybrid_search.backends import short_vectors
from hybrid_search.backends.embedded import (
    backend,
    centroid_store,
    centroids,
    near_passages,
    schema,
    segment_builder,
    segment_file,
    segments,
)
from hybrid_search.backends.embedded.centroids import Centroids
from hybrid_search.backends.embedded.segment_file import DamagedSegmentError
from hybrid_search.backends.embedded.short_code_search import ShortCodeSearch
from hybrid_search.backends.embedded.short_codes import (
    LAYERS,
    WORDS,
    LayerCodes,
    ShortCodes,
    shorten_query,
)
from hybrid_search.backends.short_vectors import ShortQuery
from hybrid_search.client import Client
from hybrid_search.text.types import Floats
from tests.helpers.segments import grow_segments

TOPICS = hard_sample.read_phrases()

PROPOSED = 120
"""Passages that are proposed in these tests, of about 390 that the sample has."""


def make_codes(passages: int, seed: int = 0, words: int = 20) -> ShortCodes:
    """Return short codes of passages whose words lie in clusters."""
    generator = np.random.default_rng(seed)
    centers = generator.normal(size=(40, 288))
    places = centers[generator.integers(40, size=passages * words)]
    vectors = places + 0.4 * generator.normal(size=places.shape)
    vectors = (vectors / np.linalg.norm(vectors, axis=1, keepdims=True)).astype(np.float32)
    counts = np.full(passages, words, np.int32)
    layers = (LayerCodes(counts, short_vectors.encode(vectors, layer)) for layer in LAYERS)
    return ShortCodes(np.arange(1, passages + 1), tuple(layers))


def make_query(seed: int = 7) -> Floats:
    vector = np.random.default_rng(seed).normal(size=288)
    unit: Floats = (vector / np.linalg.norm(vector)).astype(np.float32)
    return unit


@pytest.fixture(scope="module")
def codes() -> ShortCodes:
    return make_codes(300)


@pytest.fixture(scope="module")
def trained(codes: ShortCodes) -> Centroids:
    return centroids.train([codes])


def with_lists(codes: ShortCodes, trained: Centroids) -> ShortCodes:
    return ShortCodes(codes.passages, codes.layers, centroids.list_words(codes, trained))


# Centroids


def test_training_takes_little_more_memory_than_the_packed_words_of_its_sample() -> None:
    passages, words = 2048, 64
    packed = np.random.default_rng(1).integers(0, 256, (passages * words, 80), dtype=np.uint8)
    windows = LayerCodes(np.ones(passages, np.int32), np.zeros((passages, 128), np.int8))
    layers = (windows, LayerCodes(np.full(passages, words, np.int32), packed))
    codes = ShortCodes(np.arange(1, passages + 1), layers)
    tracemalloc.start()
    try:
        centroids.train([codes])
        peak = tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()
    # 64 bytes a word, and blocks whose size does not depend on the number of words
    assert peak < 64 * passages * words + 16e6


def test_there_are_as_many_centroids_as_the_words_allow(trained: Centroids) -> None:
    # 6,000 words / 12 are 500 centroids: 22 coarse ones with 22 fine ones each
    assert trained.coarse.shape == (22, 128)
    assert trained.fine.shape == (22 * 22, 128)
    assert trained.passages == 300


def test_all_centroids_have_nearly_the_same_length(trained: Centroids) -> None:
    lengths = np.linalg.norm(trained.fine.astype(np.float64), axis=1)
    assert lengths.std() / lengths.mean() < 0.02  # else the longest would be the nearest to all


def test_the_same_words_have_the_same_centroids(codes: ShortCodes, trained: Centroids) -> None:
    again = centroids.train([codes])
    assert again.identity == trained.identity
    assert again.to_bytes() == trained.to_bytes()


def test_nearly_every_word_belongs_to_its_nearest_centroid(
    codes: ShortCodes, trained: Centroids
) -> None:
    words = centroids.take_words(codes, slice(None))
    products = words.astype(np.int32) @ trained.fine.T.astype(np.int32)
    assigned = products[np.arange(len(words)), trained.assign(words)]
    assert np.mean(assigned == products.max(axis=1)) > 0.97


@pytest.mark.parametrize("passages", [1, 2])
def test_few_words_have_few_centroids(passages: int) -> None:
    codes = make_codes(passages, words=4)
    trained = centroids.train([codes])
    assert len(trained.fine) == 1
    assert trained.assign(centroids.take_words(codes, slice(None))).tolist() == [0] * 4 * passages


@pytest.mark.parametrize("size", [0, 1, 127, 128, 3 * 128])
def test_bytes_of_another_size_are_no_centroids(size: int) -> None:
    with pytest.raises(ValueError, match=r"."):
        Centroids.from_bytes(bytes(size), 1)


def test_the_nearest_centroids_are_as_many_as_have_the_words(trained: Centroids) -> None:
    query, sizes = make_query(), np.full(len(trained.fine), 3)
    nearest = trained.find_nearest(query, sizes, 30)
    cosines = ShortQuery.from_vector(query, centroids.LAYER).multiply(trained.fine)
    assert len(nearest) == 10
    assert cosines[nearest].min() >= np.sort(cosines)[-10]
    assert len(trained.find_nearest(query, sizes, 10_000)) == len(trained.fine)


@pytest.mark.parametrize("count", [1, 50, 1_000, 5_000])
def test_the_nearest_centroids_have_the_words_though_some_lists_are_short(
    trained: Centroids, count: int
) -> None:
    query = make_query()
    cosines = ShortQuery.from_vector(query, centroids.LAYER).multiply(trained.fine)
    order = np.argsort(-cosines)
    sizes = np.zeros(len(order), np.int64)
    sizes[order[300:]] = 100  # the nearest 300 have no word
    nearest = trained.find_nearest(query, sizes, count)
    # 300 without a word, and then as many as have `count` words, 100 in each
    assert len(nearest) == min(300 + -(-count // 100), len(order))
    assert sorted(cosines[nearest]) == sorted(cosines[order[: len(nearest)]])


# Lists


def test_every_word_is_in_the_list_of_its_centroid_and_in_no_other(
    codes: ShortCodes, trained: Centroids
) -> None:
    lists = centroids.list_words(codes, trained)
    assert np.array_equal(np.sort(lists.words), np.arange(len(codes.layers[WORDS].codes)))
    owners = np.repeat(np.arange(len(trained.fine)), np.diff(lists.starts))
    assert np.array_equal(
        owners, trained.assign(centroids.take_words(codes, np.asarray(lists.words, np.intp)))
    )


def test_the_lists_of_all_centroids_score_every_passage_as_all_its_words_do(
    codes: ShortCodes, trained: Centroids
) -> None:
    search, query = ShortCodeSearch(with_lists(codes, trained)), make_query()
    rows, cosines = search.score_listed(shorten_query(query), np.arange(len(trained.fine)))
    assert np.array_equal(rows, np.arange(len(codes.passages)))
    assert np.array_equal(cosines, search.score(shorten_query(query), WORDS, rows))


def test_some_lists_score_only_passages_that_have_a_word_in_them(
    codes: ShortCodes, trained: Centroids
) -> None:
    listed, query = with_lists(codes, trained), make_query()
    search, numbers = ShortCodeSearch(listed), np.array([5, 3])
    rows, cosines = search.score_listed(shorten_query(query), numbers)
    assert listed.lists is not None
    words = np.concatenate(
        [listed.lists.words[listed.lists.starts[c] : listed.lists.starts[c + 1]] for c in numbers]
    )
    assert rows.tolist() == sorted({int(word) // 20 for word in words})
    assert (cosines <= search.score(shorten_query(query), WORDS, rows)).all()


def test_lists_without_a_word_score_nothing(codes: ShortCodes, trained: Centroids) -> None:
    search = ShortCodeSearch(with_lists(codes, trained))
    rows, cosines = search.score_listed(shorten_query(make_query()), np.array([], np.intp))
    assert len(rows) == len(cosines) == 0


# Files


def test_a_file_holds_the_lists_that_were_written(
    tmp_path: Path, codes: ShortCodes, trained: Centroids
) -> None:
    listed, path = with_lists(codes, trained), tmp_path / "file"
    path.touch()
    segment_file.write(listed, path)
    stored = segment_file.read(path)
    assert stored.lists is not None
    assert listed.lists is not None
    assert stored.lists.identity == trained.identity
    assert np.array_equal(stored.lists.starts, listed.lists.starts)
    assert np.array_equal(stored.lists.words, listed.lists.words)
    assert np.array_equal(stored.layers[WORDS].codes, codes.layers[WORDS].codes)


@pytest.mark.parametrize("cut", [1, 1000, 24_000])
def test_a_file_with_lists_that_was_cut_is_named(
    tmp_path: Path, codes: ShortCodes, trained: Centroids, cut: int
) -> None:
    path = tmp_path / "file"
    path.touch()
    segment_file.write(with_lists(codes, trained), path)
    path.write_bytes(path.read_bytes()[:-cut])
    with pytest.raises(DamagedSegmentError, match="file"):
        segment_file.read(path)


# Indexes


@pytest.fixture
def small(monkeypatch: pytest.MonkeyPatch) -> None:
    """Let the sample have several segments and lists, and a part of it be proposed."""
    monkeypatch.setattr(segment_builder, "TAIL_PASSAGES", 20)
    monkeypatch.setattr(segment_builder, "SEGMENT_PASSAGES", 80)
    monkeypatch.setattr(segment_builder, "LISTED_PASSAGES", 150)
    monkeypatch.setattr(near_passages, "MOST_CANDIDATES", PROPOSED)
    monkeypatch.setattr(near_passages, "LISTED_WORDS", 4000)


@pytest.fixture
def folder(sample_url: str, tmp_path: Path, small: None) -> Path:
    """The sample in segments with lists."""
    copy = Path(shutil.copytree(sample_url.removeprefix("embedded:"), tmp_path / "copy"))
    grow_segments(copy)
    return copy


@pytest.fixture
def client(folder: Path) -> Iterator[Client]:
    with connect(f"embedded:{folder}") as listed_client:
        yield listed_client


def list_identities(folder: Path) -> list[int | None]:
    """Return whose lists each segment has."""
    with closing(schema.connect(folder / "calls.sqlite")) as connection:
        codes = [
            segments.open_segment(segment, folder / "calls.spans")
            for segment in segments.list_segments(connection)
        ]
    return [part.lists.identity if part.lists else None for part in codes]


def read_centroids(folder: Path) -> Centroids | None:
    with closing(schema.connect(folder / "calls.sqlite")) as connection:
        return centroid_store.read(connection)


def execute(folder: Path, statement: str, *values: object) -> None:
    with closing(sqlite3.connect(folder / "calls.sqlite")) as connection, connection:
        connection.execute(statement, values)


def best_passages(client: Client, phrase: str) -> list[tuple[str, int]]:
    result = client.query(phrase, alpha=1.0, group_by="passage", spans=0)
    return [(hit.id, hit.passage) for hit in result]


def forbid_windows(patch: pytest.MonkeyPatch) -> None:
    """Let a search of the windows of all passages fail."""

    def fail(*_: object) -> None:
        raise AssertionError("the windows of all passages were compared")

    patch.setattr(ShortCodeSearch, "score_all", fail)


def test_all_segments_have_the_lists_of_the_index(folder: Path) -> None:
    trained = read_centroids(folder)
    assert trained is not None
    identities = list_identities(folder)
    assert len(identities) >= 4
    assert set(identities) == {trained.identity}


def test_a_smaller_index_has_no_lists(
    sample_url: str, tmp_path: Path, small: None, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(segment_builder, "LISTED_PASSAGES", 1000)
    copy = Path(shutil.copytree(sample_url.removeprefix("embedded:"), tmp_path / "copy"))
    grow_segments(copy)
    assert read_centroids(copy) is None
    assert set(list_identities(copy)) == {None}


def test_lists_propose_what_looking_at_everything_finds(
    client: Client, sample_url: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    forbid_windows(monkeypatch)
    shares = []
    with connect(sample_url) as exact_client:
        for phrase in TOPICS:
            with monkeypatch.context() as patch:
                patch.setattr(near_passages, "MOST_CANDIDATES", 1000)
                expected = set(best_passages(exact_client, phrase))
            shares.append(len(expected & set(best_passages(client, phrase))) / len(expected))
    # of ten passages for each of 46 phrases; .972 and .978 were measured without VNNI, .98 with it
    assert np.mean(shares) >= 0.965


def test_few_listed_words_are_compared_without_starting_threads(
    client: Client, monkeypatch: pytest.MonkeyPatch
) -> None:
    best_passages(client, TOPICS[0])  # opens the segments, which does start threads
    # a share of the index's words, which is more than the least number
    monkeypatch.setattr(near_passages, "LISTED_WORDS", 1)
    monkeypatch.setattr(near_passages, "LISTED_SHARE", 3)

    def fail(*_: object) -> None:
        raise AssertionError("a thread was started")

    monkeypatch.setattr(threading.Thread, "start", fail)
    assert best_passages(client, TOPICS[0])


def test_a_page_that_is_longer_than_what_lists_propose_is_filled(client: Client) -> None:
    result = client.query("locked out of my account", alpha=1.0, size=300, group_by="passage")
    assert len(result) == 300


def test_a_filter_looks_at_all_windows(client: Client, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(backend, "EXACT_PASSAGES", 20)
    result = client.query(
        "locked out of my account", alpha=1.0, where={"sector": "bank"}, group_by="passage", size=90
    )
    assert len(result) > 20
    assert {hit.metadata["sector"] for hit in result} == {"bank"}


def test_what_was_deleted_is_in_no_hit_though_it_is_listed(client: Client) -> None:
    deleted_ids = {hit.id for hit in client.query("locked out of my account", alpha=1.0)}
    client.delete(sorted(deleted_ids))
    result = client.query("locked out of my account", alpha=1.0, size=50)
    assert len(result) >= 40
    assert not deleted_ids & {hit.id for hit in result}


def test_new_documents_are_found_beside_lists(
    client: Client, monkeypatch: pytest.MonkeyPatch
) -> None:
    forbid_windows(monkeypatch)
    client.ingest([{"id": "zebra", "text": "A zebra escaped from the zoo."}])
    assert client.query("zebra escaped", alpha=1.0).hits[0].id == "zebra"


def test_new_segments_have_lists_of_the_same_centroids(folder: Path, client: Client) -> None:
    before = read_centroids(folder)
    text = "crossed the quiet road again " * 24
    client.ingest([{"id": str(number), "text": f"zebra {number} {text}"} for number in range(90)])
    after = read_centroids(folder)
    assert before is not None
    assert after is not None
    assert after.identity == before.identity
    assert set(list_identities(folder)) == {after.identity}


def test_centroids_are_trained_again_when_the_index_has_grown(folder: Path) -> None:
    before = read_centroids(folder)
    assert before is not None
    execute(folder, "UPDATE centroids SET passages = ?", before.passages // 4)
    grow_segments(folder)
    after = read_centroids(folder)
    assert after is not None
    assert after.passages > before.passages
    assert set(list_identities(folder)) == {after.identity}


@pytest.mark.parametrize(
    "statement",
    [
        "UPDATE centroids SET data = zeroblob(length(data))",
        "UPDATE centroids SET data = 'text'",
        "UPDATE centroids SET data = x'00'",
        "UPDATE centroids SET identity = identity + 1",
        "DELETE FROM centroids",
    ],
)
def test_damaged_centroids_are_not_used_and_made_again(folder: Path, statement: str) -> None:
    with connect(f"embedded:{folder}") as client:
        expected = best_passages(client, TOPICS[0])
        execute(folder, statement)
    with connect(f"embedded:{folder}") as client:
        assert best_passages(client, TOPICS[0]) == expected
        warnings = client.query(TOPICS[0]).plan.get("warnings", [])
    is_there = statement.startswith("UPDATE")
    assert len(warnings) == is_there
    assert all("centroids of index 'calls' are damaged" in warning for warning in warnings)
    grow_segments(folder)
    trained = read_centroids(folder)
    assert trained is not None
    assert set(list_identities(folder)) == {trained.identity}


def test_an_interrupted_change_of_lists_is_completed(folder: Path) -> None:
    """A writer is killed after new centroids are stored, and before the lists are."""
    new_centroids = centroids.train([make_codes(390)])
    with closing(schema.connect(folder / "calls.sqlite")) as connection:
        centroid_store.store(connection, new_centroids)
    with connect(f"embedded:{folder}") as client:
        assert len(best_passages(client, TOPICS[0])) == 10
    grow_segments(folder)
    assert set(list_identities(folder)) == {new_centroids.identity}
