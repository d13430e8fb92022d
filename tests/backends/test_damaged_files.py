"""Files of an embedded index: what damage, killed writers and other programs do to them."""

from __future__ import annotations

import json
import os
import shutil
import signal
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import pytest

from hybrid_search import connect
from hybrid_search.backends.crc import crc32
from hybrid_search.backends.embedded.backend import EmbeddedBackend
from hybrid_search.backends.embedded.sealed_file import SealedFile
from hybrid_search.errors import DamagedIndexError, IndexStoreError
from hybrid_search.maintenance.verify import Verification
from tests.helpers.changed_index import (
    DOCUMENTS,
    INDEX,
    STORE,
    URL,
    ask,
)
from tests.helpers.source_lines import make_lines

TOLERANCE = 0.03
"""How far a score may be off: BM25 counts what was deleted until its segment is merged."""


@pytest.fixture
def answers(tiny_encoder: None) -> dict[str, float]:
    """The answer of an index of all `DOCUMENTS`, in two commits, which is in `STORE` and closed."""
    with connect(URL) as client:
        client.ingest(DOCUMENTS[:20])
        client.ingest(DOCUMENTS[20:])
        return ask(client)


def find_file(suffix: str) -> Path:
    """Return the largest file of the index whose name ends so."""
    paths = [path for path in INDEX.rglob(f"*{suffix}") if path.is_file()]
    return max(paths, key=lambda path: path.stat().st_size)


def near(answers: dict[str, float]) -> Any:
    """Return what compares equal to scores that deleted documents moved a little."""
    return pytest.approx(answers, abs=TOLERANCE)


def flip(path: Path, place: float = 0.5) -> None:
    """Change one bit at a place of a file, given as a share of its length."""
    data = bytearray(path.read_bytes())
    data[int(place * (len(data) - 1))] ^= 4
    path.write_bytes(data)


def repair() -> Verification:
    with connect(URL) as client:
        return client.verify("calls", repair=True)


SUFFIXES = (".store", ".term", ".idx", ".fast", ".fieldnorm", ".pos")


def assert_told_and_ingested_again(
    answers: dict[str, float], message: str = "delete --index calls --yes"
) -> None:
    """Check that queries are an error that names its remedy, and that the remedy helps."""
    with connect(URL) as client:
        with pytest.raises(DamagedIndexError, match=message):
            client.query("refund")
        client.backend.drop_index("calls")
        client.ingest(DOCUMENTS)
        assert ask(client) == near(answers)


@pytest.mark.parametrize("suffix", SUFFIXES)
@pytest.mark.parametrize("place", [0.0, 0.4, 1.0])
def test_a_changed_bit_in_a_file_of_tantivy_is_told(
    answers: dict[str, float], suffix: str, place: float
) -> None:
    flip(find_file(suffix), place)
    assert_told_and_ingested_again(answers)


@pytest.mark.parametrize("damage", ["gone", "cut", "noise"])
def test_a_damaged_list_of_segments_is_told(answers: dict[str, float], damage: str) -> None:
    (path,) = INDEX.rglob("meta.json")
    if damage == "gone":
        path.unlink()
    elif damage == "cut":
        os.truncate(path, path.stat().st_size // 2)
    else:
        path.write_bytes(b"\0" * path.stat().st_size)
    assert_told_and_ingested_again(answers)


def test_a_segment_whose_file_is_gone_is_told(answers: dict[str, float]) -> None:
    find_file(".store").unlink()
    assert_told_and_ingested_again(answers)


@pytest.mark.parametrize("place", [0.0, 0.3, 0.8, 1.0])
def test_a_changed_bit_in_a_file_of_codes_is_told_and_mended_from_the_text(
    answers: dict[str, float], place: float
) -> None:
    flip(find_file(".codes"), place)
    with connect(URL) as client:
        result = client.query("refund word7", size=50)
        unharmed = {hit.id: hit.score for hit in result.hits} == pytest.approx(
            answers, abs=TOLERANCE
        )
        assert unharmed or result.plan["warnings"]
        assert client.verify("calls", full=True).findings
    assert not repair().findings
    with connect(URL) as client:
        assert ask(client) == near(answers)


@pytest.mark.parametrize("section", ["list words", "ids"])
def test_a_file_of_codes_with_a_damaged_array_is_told_and_made_again(
    answers: dict[str, float], section: str
) -> None:
    path = find_file(".codes")
    data = bytearray(path.read_bytes())
    data[SealedFile(path)._sections[section]["start"]] ^= 4
    path.write_bytes(data)
    with connect(URL) as client:
        assert "verify --index calls --repair" in client.query("refund word7").plan["warnings"][0]
        assert {finding.kind for finding in client.verify("calls").findings} == {"codes"}
    assert not repair().findings
    with connect(URL) as client:
        assert "warnings" not in client.query("refund word7").plan
        assert ask(client) == near(answers)


@pytest.mark.parametrize("damage", ["gone", "cut", "foreign"])
def test_a_file_of_codes_that_is_gone_or_another_is_told_and_made_again(
    answers: dict[str, float], damage: str
) -> None:
    path = find_file(".codes")
    if damage == "gone":
        path.unlink()
    elif damage == "cut":
        os.truncate(path, path.stat().st_size // 2)
    else:
        with connect("embedded:elsewhere") as client:
            client.ingest([{"id": "a", "text": "another"}])
        shutil.copy2(next(Path("elsewhere").rglob("*.codes")), path)
    with connect(URL) as client:
        assert "call-" in str(client.query("refund word7", size=50).plan["warnings"])
    repair()
    with connect(URL) as client:
        assert ask(client) == near(answers)
        assert not client.verify("calls", full=True).findings


@pytest.mark.parametrize("data", [b"", b"{}", b"[" * 9000, b'{"head": "{}", "crc32": 2}'])
def test_a_damaged_head_is_told_and_the_index_can_be_deleted(
    answers: dict[str, float], data: bytes
) -> None:
    (INDEX / "head.json").write_bytes(data)
    assert_told_and_ingested_again(answers, r"damaged .* hybrid-search delete")


@pytest.mark.parametrize("other", [2, 7])
def test_an_index_of_another_format_is_refused_in_one_line(
    answers: dict[str, float], other: int
) -> None:
    path = INDEX / "head.json"
    text = json.loads(path.read_bytes())["head"].replace('"format": 4', f'"format": {other}')
    path.write_text(json.dumps({"head": text, "crc32": crc32(text.encode())}))
    match = rf"format {other}\.\d.*again"
    with connect(URL) as client, pytest.raises(IndexStoreError, match=match):
        client.query("refund")


def test_what_others_put_into_the_folders_stays(answers: dict[str, float]) -> None:
    folders = [INDEX, *(path for path in INDEX.rglob("*") if path.is_dir())]
    for folder in folders:
        (folder / "notes.txt").write_text("not ours")
    with connect(URL) as client:
        client.reindex("calls", make_lines(DOCUMENTS))
        client.backend.drop_index("calls")
    assert sorted(path for path in STORE.rglob("*") if path.is_file()) == sorted(
        folder / "notes.txt" for folder in folders
    )


KILLED = """
import sys
from pathlib import Path
from hybrid_search.backends.embedded.backend import EmbeddedBackend
from hybrid_search.backends.crc import crc32
from tests.helpers.tiny_encoder import make_entries, make_spec

store = EmbeddedBackend(Path(sys.argv[1]))
with store.writer("calls", make_spec()) as writer:
    for number in range(int(sys.argv[2]), 10_000):
        text = f"word{number} " + "blah " * 200
        writer.write(make_entries({"id": str(number % 50), "turns": [{"text": text}] * 2}))
        print(number, flush=True)
"""


def test_a_writer_that_is_killed_again_and_again_leaves_each_document_whole(
    tmp_path: Path,
) -> None:
    said = -1
    for wait in (0.1, 0.5, 0.9, 1.3):
        with subprocess.Popen(
            [sys.executable, "-c", KILLED, str(tmp_path), str(said + 1)],
            stdout=subprocess.PIPE,
            text=True,
            env={**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)},
        ) as process:
            assert process.stdout
            process.stdout.readline()
            time.sleep(wait)
            process.send_signal(signal.SIGKILL)
            lines = process.stdout.read().split()
        said = max(said + 1, *map(int, lines or ["0"]))
        store = EmbeddedBackend(tmp_path)
        passages = list(store.iterate_passages("calls", full=True))
        assert not [passage for passage in passages if passage.faults]
        by_id: dict[str, list[int]] = {}
        for passage in passages:
            by_id.setdefault(passage.document_id, []).append(passage.ordinal)
        assert len(by_id) >= min(50, said + 1)
        assert all(sorted(ordinals) == list(range(len(ordinals))) for ordinals in by_id.values())
        store.close()
