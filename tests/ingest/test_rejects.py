"""The rejects file: who may read it, and what of a refused line is in it alone."""

from __future__ import annotations

import json
from collections.abc import Sequence
from contextlib import closing
from dataclasses import asdict
from pathlib import Path
from typing import Any

import pytest

from hybrid_search.backends import memory, open_backend
from hybrid_search.backends.types import RejectedDocument
from hybrid_search.errors import IndexStoreError, UsageError
from hybrid_search.ingest import prepare
from hybrid_search.ingest import rejects as rejects_module
from hybrid_search.ingest.checkpoint import Checkpoint
from hybrid_search.ingest.options import IngestOptions
from hybrid_search.ingest.pipeline import ingest
from hybrid_search.ingest.rejects import Rejects
from hybrid_search.ingest.shards import Shard
from hybrid_search.ingest.summary import Summary, Tally
from hybrid_search.ingest.types import SourceLine
from hybrid_search.text.types import Encoding
from tests.helpers.cli import invoke_cli
from tests.helpers.source_lines import make_lines
from tests.helpers.tiny_encoder import TinyEncoder

REJECTS = Path("calls.rejected.jsonl")
GOOD = {"id": "good", "text": "I want my money back."}
SECRET = "4111111111111111"
PRIVATE = 0o600


class QuotingEncoder(TinyEncoder):
    """Fails at some texts, and quotes them."""

    def encode(self, texts: Sequence[str]) -> list[Encoding]:
        for text in texts:
            if "breaks" in text:
                raise ValueError(f"cannot encode {text!r}")
        return super().encode(texts)


def ingest_lines(
    lines: Sequence[SourceLine], url: str = "memory:", **options: Any
) -> tuple[Summary, int]:
    """Return the summary, and how many documents the index has, if a document made it."""
    with closing(open_backend(url)) as backend:
        summary = ingest(lines, backend, QuotingEncoder(), IngestOptions("calls", **options))
        exists = "calls" in backend.list_indexes()
        return summary, backend.describe_index("calls").documents if exists else 0


def read_entries(path: Path = REJECTS) -> list[dict[str, Any]]:
    return [json.loads(line) for line in path.read_text().splitlines()]


def read_mode(path: Path) -> int:
    return path.stat().st_mode & 0o777


REFUSED: dict[str, tuple[bytes, bytes]] = {
    "text that is no string": (b'{"id": "x", "text": ["%s"]}', b'{"id": "y", "text": [1]}'),
    "a time that is no number": (
        b'{"id": "x", "turns": [{"text": "a", "start_ms": ["%s"]}]}',
        b'{"id": "y", "turns": [{"text": "a"}, {"text": "b", "start_ms": ["soon"]}]}',
    ),
    "no id": (b'{"%s": 1, "text": "a"}', b'{"text": "b"}'),
    "no JSON": (b'{"id": "x", "text": "%s"', b'{"id": "y", "text": "b"'),
    "a number that no store holds": (
        b'{"id": "x", "text": "a", "n": %s000000000}',
        b'{"id": "y", "text": "b", "n": 9999999999999999999999}',
    ),
    "an id that is too long": (
        b'{"id": "%s' + b"1" * 500 + b'", "text": "a"}',
        b'{"id": "' + b"2" * 600 + b'", "text": "a"}',
    ),
    "an encoder that quotes the text": (
        b'{"id": "x", "text": "breaks %s"}',
        b'{"id": "y", "text": "breaks too"}',
    ),
}
"""A line with `SECRET` in it, and another that is refused by the same rule."""


@pytest.mark.parametrize("case", REFUSED)
def test_what_a_refused_line_says_is_in_the_rejects_file_alone(
    case: str, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    notes: list[RejectedDocument] = []
    monkeypatch.setattr(
        memory.MemoryWriter, "note", lambda _, rejected_documents: notes.extend(rejected_documents)
    )
    caplog.set_level("DEBUG")
    secret_line, other = REFUSED[case]
    line = secret_line.replace(b"%s", SECRET.encode())
    ingest_lines(make_lines([line, GOOD, other]))
    assert [note.line for note in notes] == [1, 3]
    assert len({note.reason for note in notes}) == 1  # so that a chart by reason counts them as one
    assert SECRET not in json.dumps([asdict(note) for note in notes])
    assert SECRET not in caplog.text
    entries = read_entries()
    assert entries[0]["document"] == line.decode()
    assert not any(SECRET in entry["reason"] for entry in entries)


@pytest.mark.parametrize(
    ("line", "document_id"),
    [
        (b'{"id": "x", "text": ""}', "x"),
        (b'{"id": "x", "turns": 5}', "x"),
        (b'{"id": [7], "text": "a"}', None),
        (b'{"id": " ", "text": "a"}', None),
        (b'{"id": "' + b"1" * 501 + b'", "text": "a"}', None),
        (b'{"id": "\\ud800", "text": "a"}', None),
        (b'{"id": "a\\u0000", "text": "a"}', None),
        (b'{"id": "x", "text": "a"', None),
        (b"[1]", None),
    ],
)
def test_a_refused_line_is_noted_with_its_id_if_it_has_a_valid_one(
    line: bytes, document_id: str | None, monkeypatch: pytest.MonkeyPatch
) -> None:
    notes: list[RejectedDocument] = []
    monkeypatch.setattr(
        memory.MemoryWriter, "note", lambda _, rejected_documents: notes.extend(rejected_documents)
    )
    ingest_lines(make_lines([line]))
    assert [note.document_id for note in notes] == [document_id]
    assert read_entries()[0].get("document_id") == document_id


def test_only_the_owner_may_read_it_also_where_an_older_file_was_open_to_others() -> None:
    REJECTS.write_text("old")
    REJECTS.chmod(0o644)
    other_name = Path("other.txt")
    other_name.hardlink_to(REJECTS)
    ingest_lines(make_lines([b"bad"]))
    assert read_mode(REJECTS) == PRIVATE
    assert other_name.read_text() == "old"  # a hard link to it gets nothing
    ingest_lines(make_lines([b"bad"]), shard=Shard(0, 1), rejects=Path("shard.jsonl"))
    assert read_mode(Path("shard.jsonl")) == PRIVATE


def test_it_is_not_written_through_a_symbolic_link() -> None:
    victim = Path("victim.txt")
    victim.write_text("mine")
    REJECTS.symlink_to(victim)
    message = r"calls\.rejected\.jsonl is a symbolic link, .*: name another file for them"
    with pytest.raises(UsageError, match=message):
        ingest_lines(make_lines([b"bad"]))
    assert victim.read_text() == "mine"


def test_checkpoint_and_carried_rejects_are_private_and_follow_no_link(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr("hybrid_search.ingest.checkpoint.SECONDS", 0.0)
    file, source, victim = Path("done.json"), Path("calls.jsonl"), Path("victim.txt")
    victim.write_text("mine")
    for name in ("done.json.new", "calls.rejected.jsonl.carried"):
        Path(name).symlink_to(victim)
    source.write_text("bad\n")
    line = SourceLine(str(source), 1, b"bad")
    rejects = Rejects(REJECTS)
    rejects.add(line, "not JSON")
    checkpoint = Checkpoint(file, "place", [str(source)])
    with pytest.raises(IndexStoreError, match=r"cannot be written to done\.json .* symbolic link"):
        checkpoint.note(line, [("x", "hash")], complete=True, rejects=rejects)
    size, digest = rejects.state()
    carried = Rejects(REJECTS)
    with pytest.raises(IndexStoreError, match="symbolic link"):
        carried.carry(size, digest, lambda *_: True)
    for name in ("done.json.new", "calls.rejected.jsonl.carried"):
        Path(name).unlink()
    checkpoint.note(line, [("x", "hash")], complete=True, rejects=rejects)
    assert carried.carry(size, digest, lambda *_: True)
    rejects.close()
    carried.close()
    assert (read_mode(file), read_mode(REJECTS), victim.read_text()) == (PRIVATE, PRIVATE, "mine")


def test_a_very_long_line_is_kept_by_its_beginning_and_size(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(rejects_module, "MAX_DOCUMENT_BYTES", 30_000)
    ingest_lines(make_lines([b"\0" * 5000, b"\0" * 40_000, b"x" * 29_000]))
    whole, cut, plain = read_entries()
    assert ("bytes" in whole, len(whole["document"])) == (False, 5000)
    assert (cut["source"], cut["line"], cut["bytes"]) == ("calls.jsonl", 2, 40_000)
    assert len(cut["document"]) == 1000
    assert len(plain["document"]) == 29_000


def test_a_line_that_was_cut_is_not_tried_again_but_stays_with_the_remedy(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(rejects_module, "MAX_DOCUMENT_BYTES", 3000)
    text = "breaks " + "a" * 4000
    ingest_lines(make_lines([{"id": "long", "text": text}, {"id": "short", "text": "breaks"}]))
    cut, whole = rejects_module.read_retried(REJECTS)
    assert whole.fault is None
    remedy = "the line is too long for a rejects file: correct it in its source, and ingest that"
    assert cut.fault == f"the encoder fails at this text: ValueError ({remedy})"


def test_a_full_disk_is_one_error_and_all_that_is_counted_is_in_the_index(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """The third line comes while the second document has only some of its passages written."""
    monkeypatch.setattr(prepare, "LOOKUP_DOCUMENTS", 1)
    tally = Tally()
    turns = [{"text": f"turn {number} " + "word " * 78} for number in range(70)]
    lines = make_lines([GOOD, {"id": "long", "turns": turns}, b"bad"])
    options = {"rejects": Path("/dev/full"), "report": tally}
    message = r"written to /dev/full \(No space left on device\)\. .* free space"
    with pytest.raises(IndexStoreError, match=message):
        ingest_lines(lines, "embedded:store", **options)
    _, documents = ingest_lines([], "embedded:store")
    assert (tally.total().documents, documents) == (1, 1)


def test_the_command_tells_what_was_done_before_the_error(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(prepare, "LOOKUP_DOCUMENTS", 1)
    documents = [{"id": str(number), "text": "My money."} for number in range(70)]
    lines = [json.dumps(document) for document in documents]
    Path("calls.jsonl").write_text("\n".join([*lines, "bad", *lines[:3]]))
    command = ("ingest", "--url", "embedded:store", "--rejects", "/dev/full", "calls.jsonl")
    result = invoke_cli(*command)
    assert result.error.startswith("refused documents cannot be written to /dev/full (No space")
    assert result.json["documents"] == 64  # the block that was read before the bad line
    assert "64 documents (" in result.stderr
    again = invoke_cli("ingest", "--url", "embedded:store", "calls.jsonl")
    assert (again.status, again.json["documents"], again.json["failed"]) == (1, 9, 1)


def test_each_reason_is_on_the_screen_once_with_its_number_and_first_place() -> None:
    lines = ["bad", json.dumps(GOOD), '{"id": "z"}', '{"id": "", "text": "x"}', "worse", "[1]"]
    Path("calls.jsonl").write_text("\n".join(lines))
    result = invoke_cli("ingest", "calls.jsonl", "--url", "embedded:store")
    assert [line for line in result.stderr.splitlines() if "refused" in line][1:] == [
        "refused: 2 x not JSON: Expecting value (first at calls.jsonl:1)",
        "refused: 1 x neither of text and turns: if other keys have them, name these, as in "
        "--columns id=call_id,text=body (first at calls.jsonl:3)",
        "refused: 1 x the id is empty (first at calls.jsonl:4)",
        "refused: 1 x not an object: a JSON list (first at calls.jsonl:6)",
        "refused documents, with reasons: store/calls.rejected.jsonl",
    ]
    assert list(result.json["reasons"].values()) == [2, 1, 1, 1]


def test_many_reasons_are_counted_in_the_memory_of_a_few(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(rejects_module, "MAX_REASONS", 2)
    rejects = Rejects(REJECTS)
    for number in range(5):
        rejects.add(SourceLine("a.jsonl", number, b"x"), f"reason {number}")
    rejects.close()
    assert {name: reason.count for name, reason in rejects.reasons.items()} == {
        "reason 0": 1,
        "reason 1": 1,
        "other reasons": 3,
    }


@pytest.mark.parametrize(
    ("url", "path"),
    [
        ("embedded:store", "store/calls.rejected.jsonl"),
        ("embedded:/srv/search", "/srv/search/calls.rejected.jsonl"),
        ("memory:", "calls.rejected.jsonl"),
        ("opensearch+https://host:9200", "calls.rejected.jsonl"),
    ],
)
def test_refused_documents_lie_beside_an_embedded_index_and_else_here(url: str, path: str) -> None:
    assert rejects_module.default_rejects_path(url, "calls") == Path(path)
