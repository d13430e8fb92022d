"""The nearest-neighbour graphs of the embedded backend.

They are sealed, extended and rebuilt, and find nearly what an exhaustive search finds.
"""

from __future__ import annotations

import json
import logging
import os
import shutil
import sqlite3
import stat
from collections.abc import Callable, Iterator
from contextlib import closing
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from usearch.index import Index

from hybrid_search import connect
from hybrid_search.backends.embedded import backend, graph_builder, graph_segments, schema
from hybrid_search.backends.embedded.backend import EmbeddedBackend
from hybrid_search.backends.embedded.graph_segments import Segment
from hybrid_search.client import Client
from hybrid_search.errors import IndexMissingError, IndexStoreError
from hybrid_search.ingest.sources.files import SAMPLE
from hybrid_search.system import file_digest
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
    make_small(monkeypatch)
    monkeypatch.setattr(backend, "CANDIDATES", 0)


def make_small(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(graph_builder, "EXACT_SPANS", 200)
    patch.setattr(graph_builder, "SEGMENT_SPANS", SEGMENT)
    patch.setattr(graph_builder, "ADD_SPANS", 100)


@pytest.fixture(scope="module")
def segmented(sample_url: str, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The sample with the same codes, and its graphs built again in small segments."""
    folder = tmp_path_factory.mktemp("segmented") / "store"
    shutil.copytree(sample_url.removeprefix("embedded:"), folder)
    with pytest.MonkeyPatch.context() as patch:
        make_small(patch)
        grow_graphs(folder)
    return folder


@pytest.fixture
def folder(segmented: Path, tmp_path: Path, small: None) -> Path:
    """A copy of it that keeps the times of its files."""
    return Path(shutil.copytree(segmented, tmp_path / "copy"))


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


def list_names(folder: Path) -> list[str]:
    return sorted(path.name for path in folder.iterdir())


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


# Files that are damaged


def change_file(path: Path, change: Callable[[bytearray], object]) -> None:
    """Change a file in place, and set its time back to what it was."""
    times, data = path.stat(), bytearray(path.read_bytes())
    change(data)
    path.write_bytes(data)
    os.utime(path, ns=(times.st_atime_ns, times.st_mtime_ns))


def flip_three_bits(seed: int) -> Callable[[bytearray], None]:
    """Return a change of the last third, where the links and vectors of the last nodes are."""

    def flip(data: bytearray) -> None:
        generator = np.random.default_rng(seed)
        for _ in range(3):
            data[generator.integers(2 * len(data) // 3, len(data))] ^= 1 << generator.integers(8)

    return flip


def segment_paths(folder: Path) -> list[Path]:
    return [segment.path(folder / "calls.spans") for segment in list_segments(folder)]


REPAIR = "hybrid-search verify --index calls --repair"


@pytest.mark.parametrize("seed", range(3))
def test_flipped_bits_are_noticed_though_size_and_time_are_kept(
    folder: Path, exhaustive: Ranking, caplog: pytest.LogCaptureFixture, seed: int
) -> None:
    (first, *_), count = segment_paths(folder), len(list_segments(folder))
    change_file(first, flip_three_bits(seed))
    with connect(f"embedded:{folder}") as client:
        assert recall(client, exhaustive) >= 0.95
        plan = client.query("refund").plan
        assert plan["candidates"] == f"HNSW in {count - 1} segments"
        (warning,) = plan["warnings"]
        assert warning.startswith(f"{first} is not the file that was written, or is damaged")
        assert warning.endswith(REPAIR)


def test_damage_is_never_extended_and_sealed_anew(folder: Path, client: Client) -> None:
    change_file(segment_paths(folder)[-1], flip_three_bits(0))
    client.ingest([{"id": f"new-{number}", "text": "a zebra crossed"} for number in range(300)])
    assert client.verify(sample=0, full=True).is_sound
    assert "warnings" not in client.query("zebra").plan


def test_damage_since_the_writer_began_is_not_extended(folder: Path) -> None:
    """A writer may be open for hours before it extends the newest segment."""
    with connect(f"embedded:{folder}") as client:
        lines = make_documents(15)

        def damage_then_yield() -> Iterator[dict[str, Any]]:
            yield lines[0]
            change_file(segment_paths(folder)[-1], flip_three_bits(0))
            yield from lines[1:]

        client.ingest(damage_then_yield())
        assert client.verify(sample=0, full=True).is_sound


def test_a_search_that_fails_in_the_library_is_done_exactly(
    client: Client, exhaustive: Ranking, monkeypatch: pytest.MonkeyPatch
) -> None:
    def fail(*_: object) -> None:
        raise RuntimeError("no such node")

    phrase = TOPICS[0]
    monkeypatch.setattr(Index, "search", fail)
    common = set(best_passages(client, phrase)) & set(exhaustive[phrase])
    assert len(common) >= 9
    plan = client.query(phrase).plan
    assert plan["candidates"] == "exact"
    assert all("cannot be searched (no such node)" in warning for warning in plan["warnings"])


def test_each_file_is_read_once_a_process_and_again_if_it_changes(
    folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    paths_read: list[Path] = []

    def digest(path: Path) -> str:
        paths_read.append(path)
        return file_digest(path)

    monkeypatch.setattr(graph_segments, "file_digest", digest)
    monkeypatch.setattr(graph_segments, "_digests", {})
    for _ in range(2):
        with connect(f"embedded:{folder}") as client:
            client.query("refund")
            client.query("parcel")
    assert sorted(paths_read) == segment_paths(folder)
    segment_paths(folder)[0].touch()
    with connect(f"embedded:{folder}") as client:
        client.query("refund")
    assert paths_read[len(segment_paths(folder)) :] == segment_paths(folder)[:1]


def test_verify_reads_the_files_even_if_this_process_has(
    folder: Path, client: Client, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A disk may change its mind without a new time."""
    client.query("refund")
    change_file(segment_paths(folder)[0], flip_three_bits(0))
    digest = list_segments(folder)[0].sha256
    identities = dict.fromkeys(graph_segments._digests, digest)
    status = segment_paths(folder)[0].stat()
    times = status.st_mtime_ns, status.st_ctime_ns
    identities[status.st_dev, status.st_ino, status.st_size, *times] = digest
    monkeypatch.setattr(graph_segments, "_digests", identities)
    verification = client.verify(sample=0)
    assert set(verification.wrong) == {"vectors"}
    assert REPAIR in verification.findings[0].remedy


def record_as_written(folder: Path, number: int) -> None:
    """Record a changed file as what was written, as if it had been changed before."""
    path = Segment.path(list_segments(folder)[0], folder / "calls.spans")
    with closing(sqlite3.connect(folder / "calls.sqlite")) as connection, connection:
        connection.execute(
            "UPDATE segments SET sha256 = ? WHERE segment = ?", (file_digest(path), number)
        )


def test_full_verification_finds_vectors_that_are_not_those_of_the_codes(
    folder: Path, client: Client
) -> None:
    """Before files were read, damage could be sealed under a digest that vouches for it."""
    first = list_segments(folder)[0]
    graph = Index.restore(str(first.path(folder / "calls.spans")))
    vector = graph.get(graph.keys[0])

    def overwrite(data: bytearray) -> None:
        place = bytes(data).index(vector.tobytes())
        data[place : place + vector.nbytes] = (-vector).tobytes()

    change_file(first.path(folder / "calls.spans"), overwrite)
    record_as_written(folder, first.number)
    assert client.verify(sample=0).is_sound
    (finding,) = client.verify(sample=0, full=True).findings
    assert (finding.kind, finding.remedy) == ("vectors", f"{REPAIR} mends it")
    assert "1 of its vectors in the graph are not those of its codes" in finding.found
    verification = client.verify(sample=0, repair=True)
    assert (verification.is_sound, verification.repaired_documents) == (True, 1)


def test_repair_rebuilds_without_encoding_anything(
    folder: Path, client: Client, monkeypatch: pytest.MonkeyPatch
) -> None:
    for path in segment_paths(folder):
        change_file(path, flip_three_bits(0))
    verification = client.verify(sample=0, repair=True)
    assert (verification.is_sound, verification.repaired_documents) == (True, 0)
    plan = client.query("refund").plan
    assert plan["candidates"] == f"HNSW in {len(list_segments(folder))} segments"
    assert "warnings" not in plan


# Files that are not ours


def move_behind_a_link(folder: Path, elsewhere: Path) -> None:
    """Move the graphs to a folder that has files of its own, and put a link in their place."""
    shutil.move(folder / "calls.spans", elsewhere)
    (elsewhere / "thesis.txt").write_text("years of work")
    (elsewhere / "000001.usearch.bak").write_text("a copy")
    (elsewhere / "123456.usearch").mkdir()
    (folder / "calls.spans").symlink_to(elsewhere)


OTHERS = ["000001.usearch.bak", "123456.usearch", "thesis.txt"]


def test_files_of_others_behind_a_link_are_left_alone(
    folder: Path, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    move_behind_a_link(folder, tmp_path / "elsewhere")
    (tmp_path / "elsewhere" / "unfinished.tmp").write_text("ours, half written")
    (tmp_path / "elsewhere" / "000099.usearch").write_text("ours, and left over")
    with connect(f"embedded:{folder}") as client:
        client.ingest(make_documents(60))
        assert client.query("zebra").plan["candidates"].startswith("HNSW")
        ours = [path.name for path in segment_paths(folder)]
        assert list_names(tmp_path / "elsewhere") == sorted([*ours, *OTHERS])
        client.drop("calls")
    assert list_names(tmp_path / "elsewhere") == OTHERS
    assert list_names(folder) == ["calls.spans"]
    assert f"{folder / 'calls.spans'} is a link that somebody else made" in caplog.text


def make_file(path: Path) -> None:
    path.write_text("not what you think")


def make_dangling_link(path: Path) -> None:
    path.symlink_to("nothing")


@pytest.mark.parametrize("make", [os.mkfifo, make_file, make_dangling_link])
def test_something_else_in_the_place_of_the_folder_is_an_error_with_the_remedy(
    folder: Path, make: Callable[[Path], None]
) -> None:
    place = folder / "calls.spans"
    shutil.rmtree(place)
    make(place)
    with connect(f"embedded:{folder}") as client:
        with pytest.raises(
            IndexStoreError,
            match=r"calls\.spans is not a folder, .*: move it away, and run the same command again",
        ):
            client.ingest(make_documents(60))
        place.rename(folder / "moved away")
        assert client.ingest(make_documents(60)).documents == 60
    assert files(folder)


@pytest.mark.parametrize("mask", [0o000, 0o022])
def test_graphs_are_for_their_user_alone(folder: Path, mask: int) -> None:
    shutil.rmtree(folder / "calls.spans")
    old_mask = os.umask(mask)
    try:
        grow_graphs(folder)
    finally:
        os.umask(old_mask)
    paths = segment_paths(folder)
    assert paths
    assert {stat.S_IMODE(path.stat().st_mode) for path in paths} == {0o600}


def test_a_folder_with_files_of_others_is_left_and_said_to_be(
    folder: Path, caplog: pytest.LogCaptureFixture
) -> None:
    (folder / "calls.spans" / "thesis.txt").write_text("years of work")
    with connect(f"embedded:{folder}") as client:
        client.drop("calls")
        with pytest.raises(IndexMissingError):
            client.describe("calls")
    assert files(folder) == ["thesis.txt"]
    assert "1 files that are not the index's ('thesis.txt')" in caplog.text


def test_a_deleted_index_leaves_nothing(folder: Path, caplog: pytest.LogCaptureFixture) -> None:
    with connect(f"embedded:{folder}") as client, caplog.at_level(logging.WARNING):
        client.drop("calls")
    assert not list(folder.iterdir())
    assert caplog.text == ""
