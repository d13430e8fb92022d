"""Reading files, gzipped files and standard input: numbered lines, and where a source broke."""

from __future__ import annotations

import gzip
import json
from collections.abc import Sequence
from pathlib import Path
from random import Random

import pytest

from hybrid_search.errors import UsageError
from hybrid_search.ingest.sources import files, json_texts
from hybrid_search.ingest.sources.read_options import ReadOptions
from hybrid_search.ingest.types import SourceLine

REJECTS = Path("calls.rejected.jsonl")


def write_source(path: Path, data: bytes) -> str:
    path.write_bytes(gzip.compress(data) if path.suffix == ".gz" else data)
    return str(path)


def read_data(source: str) -> list[bytes]:
    return [line.data for line in files.read([source])]


def faults(lines: Sequence[SourceLine]) -> list[tuple[int, str | None]]:
    return [(line.number, line.fault) for line in lines]


@pytest.mark.parametrize("name", ["calls.jsonl", "calls.jsonl.gz"])
def test_each_line_is_given_as_it_is_with_its_source_and_number(name: str) -> None:
    source = write_source(Path(name), b'{"id": "a"}\n{"id": "b"}\n')
    assert list(files.read([source])) == [
        SourceLine(name, 1, b'{"id": "a"}\n'),
        SourceLine(name, 2, b'{"id": "b"}\n'),
    ]


@pytest.mark.parametrize(
    ("content", "lines"),
    [
        (b"", []),
        (b"one\ntwo", [b"one\n", b"two"]),
        (gzip.compress(b"one\n", mtime=0) + gzip.compress(b"two\n", mtime=0), [b"one\n", b"two\n"]),
        ("one\u2028two\x85three\x0cfour".encode(), ["one\u2028two\x85three\x0cfour".encode()]),
    ],
)
def test_a_newline_alone_ends_a_line(content: bytes, lines: list[bytes]) -> None:
    assert read_data(write_source(Path("x.jsonl"), content)) == lines


def test_blank_lines_and_windows_line_ends_are_counted_so_that_numbers_agree_with_an_editor() -> (
    None
):
    lines = list(files.read([write_source(Path("x.jsonl"), b"one\r\n\r\n \nfour\r\n")]))
    assert [(line.number, line.data.strip()) for line in lines] == [
        (1, b"one"),
        (2, b""),
        (3, b""),
        (4, b"four"),
    ]


def test_several_sources_are_read_in_order_and_numbered_each_from_one() -> None:
    paths = [write_source(Path("a.jsonl"), b"1\n2\n"), write_source(Path("b.jsonl.gz"), b"3\n")]
    assert [(line.source, line.number) for line in files.read(paths)] == [
        ("a.jsonl", 1),
        ("a.jsonl", 2),
        ("b.jsonl.gz", 1),
    ]


def test_a_gzip_file_that_breaks_off_gives_its_lines_a_fault_and_then_the_next_source() -> None:
    compressed = gzip.compress(b"one\ntwo\n" * 10)
    Path("cut.jsonl.gz").write_bytes(compressed[:-8])  # the checksum and length at its end
    after = write_source(Path("after.jsonl"), b"after\n")
    lines = list(files.read(["cut.jsonl.gz", after]))
    assert [line.data for line in lines if not line.fault] == [
        *([b"one\n", b"two\n"] * 10),
        b"after\n",
    ]
    fault = "the source cannot be read on after line 20: it is damaged, or cut off"
    assert faults(lines[-2:]) == [(21, fault), (1, None)]
    assert lines[-2].detail.startswith("Compressed file ended before the end-of-stream marker")


def test_a_gzip_file_that_is_damaged_inside_says_so() -> None:
    numbers = "".join(str(number**9) for number in range(10_000))
    compressed = bytearray(gzip.compress(numbers.encode()))
    compressed[90_000:90_010] = bytes(10)
    Path("bad.jsonl.gz").write_bytes(compressed)
    *_, last = files.read(["bad.jsonl.gz"])
    assert last.fault is not None
    assert last.fault.startswith(f"the source cannot be read on after line {last.number - 1}: ")


@pytest.mark.parametrize("name", ["plain.gz", "packed.jsonl"])
def test_a_file_is_unpacked_if_it_is_packed_whatever_its_name(name: str) -> None:
    line = b'{"id": "a", "text": "x"}\n'
    Path(name).write_bytes(gzip.compress(line) if name == "packed.jsonl" else line)
    assert read_data(name) == [line]


def test_an_over_long_line_is_passed_over_without_being_held(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(json_texts, "MAX_LINE_BYTES", 2000)
    long = b"x" * 7000
    lines = list(files.read([write_source(Path("x.jsonl"), b"one\n" + long + b"\ntwo\n" + long)]))
    fault = "the line is over 2000 bytes long"
    assert faults(lines) == [(1, None), (2, fault), (3, None), (4, fault)]
    assert [line.data for line in lines] == [b"one\n", long[:1000], b"two\n", long[:1000]]


@pytest.mark.parametrize("end", [b"", b"\n"])
def test_a_line_of_just_the_limit_is_whole(monkeypatch: pytest.MonkeyPatch, end: bytes) -> None:
    monkeypatch.setattr(json_texts, "MAX_LINE_BYTES", 2000)
    # without a newline, a line of the limit may go on
    line = b"x" * (2000 - len(end) - 1 * (not end)) + end
    assert faults(list(files.read([write_source(Path("x.jsonl"), line)]))) == [(1, None)]


def test_a_missing_file_and_an_empty_folder_are_errors_before_anything_begins() -> None:
    Path("folder").mkdir()
    with pytest.raises(UsageError, match=r"source nowhere.jsonl does not exist"):
        files.check(["-", "nowhere.jsonl"], REJECTS)
    with pytest.raises(UsageError, match="source folder is a folder without files"):
        files.check(["folder"], REJECTS)
    with pytest.raises(UsageError, match=r"folder/\*\.csv matches no file"):
        files.check(["folder/*.csv"], REJECTS)


def test_the_size_is_that_of_all_files_and_unknown_with_standard_input() -> None:
    paths = [write_source(Path("a.jsonl"), b"12345"), write_source(Path("b.jsonl"), b"123")]
    assert files.size(paths) == 5 + 3
    assert files.size([*paths, "-"]) is None


def test_a_file_that_vanishes_is_a_fault_and_the_next_is_read() -> None:
    after = write_source(Path("after.jsonl"), b"after\n")
    lines = list(files.read(["gone.jsonl", after]))
    assert lines[0].fault == (
        "the source cannot be read on after line 0: [Errno 2] No such file or directory: "
        "'gone.jsonl'"
    )
    assert lines[1] == SourceLine(after, 1, b"after\n")


@pytest.mark.parametrize(
    ("name", "data", "ids"),
    [
        ("calls/a.json", b'{"text": "Hello."}', ["a"]),
        ("calls/b.json.gz", b'{\n "text": "Hello."\n}\n', ["b"]),
        ("calls/c.json", b'{"id": "own", "text": "Hello."}', ["own"]),
        ("calls/g.json", b'{"call_id": "c-1", "body": "Hello."}', [None]),
        ("calls/d.json", b'[{"text": "Hello."}, {"id": "e", "text": "Goodbye."}]', [None, "e"]),
        ("calls/f.jsonl", b'{"text": "Hello."}\n', [None]),
    ],
)
def test_a_document_alone_in_its_json_file_takes_its_name(
    name: str, data: bytes, ids: list[str | None]
) -> None:
    Path("calls").mkdir()
    write_source(Path(name), data)
    lines = files.read(["calls"], ReadOptions())
    assert [json.loads(line.data).get("id") for line in lines] == ids


def test_a_document_with_an_id_that_is_alone_in_its_json_file_is_read_as_it_is() -> None:
    data = b'{"id": "own", "turns": "no list",  "text": ""}'
    assert read_data(write_source(Path("a.json"), data)) == [data]


def test_a_document_is_read_though_its_json_file_breaks_off_behind_it() -> None:
    line = b'{"id": "a", "text": "Hello."}\n'
    letters = Random(1).randbytes(100_000).hex().encode()  # noqa: S311 (no secret)
    packed = gzip.compress(line + b'{"id": "b", "text": "' + letters)
    Path("calls.json.gz").write_bytes(packed[: len(packed) // 2])
    first, *faults_after = files.read(["calls.json.gz"])
    assert first.data == line
    assert [fault.number for fault in faults_after] == [2]
