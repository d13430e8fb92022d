"""The pipeline: what a run counts, skips and refuses, and where refused documents are written."""

from __future__ import annotations

import json
import logging
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest

from hybrid_search.backends import open_backend
from hybrid_search.backends.base import Backend
from hybrid_search.client import Client
from hybrid_search.config import Settings
from hybrid_search.credentials import Access
from hybrid_search.encoder import Encoder, EncoderInfo
from hybrid_search.errors import IndexMissingError, IndexStoreError, InputError, UsageError
from hybrid_search.ingest import pipeline
from hybrid_search.ingest.options import IngestOptions
from hybrid_search.ingest.seen_ids import SeenIds
from hybrid_search.ingest.summary import Summary
from hybrid_search.text.types import Encoding
from tests.helpers.source_lines import make_lines
from tests.helpers.tiny_encoder import TinyEncoder

REFUND: dict[str, Any] = {"id": "refund", "text": "I want my money back.", "sector": "shop"}
LOCKED: dict[str, Any] = {"id": "locked", "text": "My account is locked.", "sector": "bank"}
PARCEL: dict[str, Any] = {
    "id": "parcel",
    "turns": [
        {"speaker": "agent", "text": "Hello."},
        {"speaker": "customer", "text": "Where is my parcel?"},
    ],
}
DOCUMENTS = [REFUND, LOCKED, PARCEL]
REJECTS = Path("calls.rejected.jsonl")


@dataclass
class RecordingEncoder:
    """An encoder that remembers the texts it encoded."""

    inner: Encoder
    texts: list[str] = field(default_factory=list)

    @property
    def info(self) -> EncoderInfo:
        return self.inner.info

    def encode(self, texts: Sequence[str]) -> list[Encoding]:
        self.texts += texts
        return self.inner.encode(texts)


@pytest.fixture
def recording_encoder(real_encoder: Encoder) -> RecordingEncoder:
    return RecordingEncoder(real_encoder)


@pytest.fixture
def backend() -> Backend:
    return open_backend("embedded:store")


def count(summary: Summary, names: str) -> list[Any]:
    """Return what a summary says under these names."""
    return [getattr(summary, name) for name in names.split()]


def ingest_documents(
    backend: Backend, encoder: Encoder, documents: Sequence[dict[str, Any] | bytes], **options: Any
) -> Summary:
    return pipeline.ingest(
        make_lines(documents), backend, encoder, IngestOptions("calls", REJECTS, **options)
    )


def take_encoded_texts(recording_encoder: RecordingEncoder) -> list[str]:
    """Return the texts that were encoded since the last call."""
    texts, recording_encoder.texts = recording_encoder.texts, []
    return texts


def read_rejects() -> list[dict[str, Any]]:
    return [json.loads(line) for line in next(Path().rglob(REJECTS.name)).read_text().splitlines()]


def make_long_document(metadata: object) -> dict[str, Any]:
    """Return a document of 70 passages, more than a block of 64: 70 * 80 words, in turns of 80."""
    return {"id": "long", "turns": [{"text": " ".join(["word"] * 80)}] * 70, "n": metadata}


def test_the_summary_counts_what_the_index_then_holds(client: Client) -> None:
    summary = client.ingest([*DOCUMENTS, {"id": "empty", "text": ""}])
    description = client.describe()
    assert count(summary, "read documents failed skipped duplicates") == [4, 3, 1, 0, 0]
    assert (description.documents, description.passages, description.spans) == (3, 3, summary.spans)
    assert summary.passages == 3
    # One token a word and one a mark: "I want my money back ." 6, "My account is locked ." 5,
    # "Hello ." 2, "Where is my parcel ?" 5.
    assert summary.tokens == 6 + 5 + 2 + 5


def test_the_summary_as_json_has_the_keys_that_programs_rely_on(client: Client) -> None:
    summary = client.ingest(DOCUMENTS).to_dict()
    assert {"read", "documents", "passages", "spans", "failed", "skipped", "seconds"} <= set(
        summary
    )
    assert summary["rejected"] is None
    assert set(summary["stages"]) == {"read", "encode", "shape", "write"}
    json.dumps(summary)


def test_the_same_run_again_skips_everything_and_encodes_nothing(
    backend: Backend, recording_encoder: RecordingEncoder
) -> None:
    ingest_documents(backend, recording_encoder, DOCUMENTS)
    assert sorted(take_encoded_texts(recording_encoder)) == [
        "Hello.",
        "I want my money back.",
        "My account is locked.",
        "Where is my parcel?",
    ]
    again = ingest_documents(backend, recording_encoder, DOCUMENTS)
    assert count(again, "read documents skipped passages tokens") == [3, 0, 3, 0, 0]
    assert take_encoded_texts(recording_encoder) == []


def test_a_changed_document_is_encoded_again_and_no_other(
    backend: Backend, recording_encoder: RecordingEncoder
) -> None:
    ingest_documents(backend, recording_encoder, DOCUMENTS)
    take_encoded_texts(recording_encoder)
    again = ingest_documents(
        backend, recording_encoder, [REFUND, {**LOCKED, "text": "My account is open."}, PARCEL]
    )
    assert (again.documents, again.skipped) == (1, 2)
    assert take_encoded_texts(recording_encoder) == ["My account is open."]
    assert backend.describe_index("calls").documents == 3


def test_changed_metadata_is_a_change(client: Client) -> None:
    client.ingest(DOCUMENTS)
    assert client.ingest([{**LOCKED, "sector": "shop"}]).documents == 1
    assert {hit.id for hit in client.query("money", where={"sector": "shop"})} == {
        "refund",
        "locked",
    }


def test_of_an_id_that_comes_twice_the_last_wins_and_a_warning_says_where(
    client: Client, caplog: pytest.LogCaptureFixture
) -> None:
    summary = client.ingest([REFUND, LOCKED, {**REFUND, "text": "Keep the money."}])
    assert (summary.documents, summary.duplicates, client.describe().documents) == (3, 1, 2)
    assert [hit.text for hit in client.query("money", where={"id": "refund"})] == [
        "Keep the money."
    ]
    assert caplog.record_tuples == [
        (
            "hybrid_search.ingest.prepare",
            logging.WARNING,
            "id 'refund' is at documents:1 and again at documents:3: the last one wins; "
            'rows="turn" makes one call of them',
        )
    ]


@pytest.mark.parametrize("between", [0, 450])
def test_the_last_wins_also_when_it_is_what_the_index_held_before(
    tiny_encoder: None, client: Client, between: int
) -> None:
    """Both versions are looked up together, or, with many documents between them, separately."""
    client.ingest([REFUND])
    other_documents = [{"id": f"other {number}", "text": "Fine."} for number in range(between)]
    summary = client.ingest([{**REFUND, "text": "Keep the money."}, *other_documents, REFUND])
    assert (summary.duplicates, summary.skipped) == (1, 0)
    assert [hit.text for hit in client.query("money", where={"id": "refund"})] == [
        "I want my money back."
    ]


def test_three_versions_in_one_block_leave_one_document(client: Client) -> None:
    client.ingest([{**REFUND, "text": f"Version {number}."} for number in range(3)])
    assert client.describe().documents == client.describe().passages == 1
    assert [hit.text for hit in client.query("version")] == ["Version 2."]


def test_a_refused_line_is_kept_with_source_number_and_reason(
    backend: Backend, recording_encoder: RecordingEncoder
) -> None:
    summary = ingest_documents(
        backend, recording_encoder, [REFUND, b"{bad", LOCKED, b'{"id": "x", "text": ""}\r']
    )
    assert count(summary, "read documents failed rejected") == [4, 2, 2, str(REJECTS)]
    assert read_rejects() == [
        {
            "source": "calls.jsonl",
            "line": 2,
            "reason": "not JSON: Expecting property name enclosed in double quotes",
            "detail": "at character 1",
            "document": "{bad",
        },
        {
            "source": "calls.jsonl",
            "line": 4,
            "reason": "the text is empty",
            "document_id": "x",
            "document": '{"id": "x", "text": ""}',
        },
    ]


def test_a_run_without_refusals_makes_no_rejects_file(client: Client) -> None:
    assert client.ingest(DOCUMENTS).rejected is None
    assert not list(Path().rglob(REJECTS.name))


def test_the_rejects_of_a_run_replace_those_of_the_one_before(
    backend: Backend, recording_encoder: RecordingEncoder
) -> None:
    ingest_documents(backend, recording_encoder, [b"first", b"second"])
    ingest_documents(backend, recording_encoder, [b"third"])
    assert [entry["document"] for entry in read_rejects()] == ["third"]


def test_rejects_that_cannot_be_written_end_the_run_with_the_remedy(client: Client) -> None:
    message = (
        r"refused documents cannot be written to nowhere/x.jsonl \(No such file or "
        r"directory\): name another"
    )
    with pytest.raises(UsageError, match=message):
        client.ingest([{"id": ""}], rejects="nowhere/x.jsonl")


def test_a_field_of_another_type_is_refused_and_the_document_stays_as_it_was(
    client: Client,
) -> None:
    client.ingest([{**REFUND, "priority": 1}, {**PARCEL, "priority": 2}])
    summary = client.ingest(
        [LOCKED, {**REFUND, "priority": "high", "text": "New."}, {**PARCEL, "priority": 3}]
    )
    assert (summary.documents, summary.failed) == (2, 1)
    reason = "metadata field 'priority' is a string here and a number in the index"
    (entry,) = read_rejects()
    assert entry["line"] == 2
    assert entry["reason"].startswith(reason)
    assert [hit.text for hit in client.query("money", where={"id": "refund"})] == [
        "I want my money back."
    ]


def test_a_refused_document_leaves_no_field_behind(client: Client) -> None:
    with pytest.raises(InputError, match="none of 1 documents was taken, the first because of"):
        client.ingest([{**REFUND, "new": "x", "mixed": [1, "one"]}])
    assert client.indexes() == []
    refused = {**PARCEL, "new": "x", "mixed": [1, "one"]}
    assert client.ingest([refused, LOCKED]).failed == 1
    fields = client.describe().fields
    assert {"new", "mixed"}.isdisjoint(fields)
    assert client.ingest([{**REFUND, "new": 1}]).documents == 1
    assert client.describe().fields == {**fields, "new": "number"}


def test_a_refused_document_of_many_blocks_counts_as_one_refused_and_as_nothing_else(
    tiny_encoder: None, client: Client
) -> None:
    client.ingest([{**REFUND, "n": 1}])
    summary = client.ingest([make_long_document("x"), LOCKED])
    assert (summary.read, summary.documents, summary.passages, summary.failed) == (2, 1, 1, 1)
    assert (client.describe().documents, client.describe().passages) == (2, 2)
    assert len(read_rejects()) == 1


def test_a_document_of_many_blocks_is_there_whole(tiny_encoder: None, client: Client) -> None:
    summary = client.ingest([LOCKED, make_long_document(1), PARCEL])
    assert (summary.documents, summary.passages) == (3, 1 + 70 + 1)
    assert client.describe().passages == 72


def test_blank_lines_are_not_counted(backend: Backend, recording_encoder: RecordingEncoder) -> None:
    assert ingest_documents(backend, recording_encoder, [b"", REFUND, b"  \r", LOCKED]).read == 2


def test_a_span_policy_that_is_none_makes_no_index(client: Client) -> None:
    with pytest.raises(UsageError, match="span policy 'often' is not of the form"):
        client.ingest(DOCUMENTS, policy="often")
    assert client.indexes() == []
    assert client.ingest(DOCUMENTS).documents == 3


def test_progress_is_reported_at_the_beginning_and_after_each_block(backend: Backend) -> None:
    reported: list[int] = []

    def report(summary: Summary) -> None:
        reported.append(summary.passages)

    ingest_documents(backend, TinyEncoder(), [make_long_document(1)], report=report)
    assert reported == [0, 0, 70]  # what belongs to an unfinished document does not count yet


def test_a_full_temporary_folder_is_one_error_and_what_was_committed_stays(
    backend: Backend, monkeypatch: pytest.MonkeyPatch
) -> None:
    class SizeLimitedSeen(SeenIds):
        def __init__(self) -> None:
            super().__init__()
            # of 4 KiB: some hundreds of short ids
            self._connection.execute("PRAGMA max_page_count = 24")

    monkeypatch.setattr(pipeline, "SeenIds", SizeLimitedSeen)
    documents = [{"id": f"call {number}", "text": "a b"} for number in range(6_000)]
    message = r"temporary folder: database or disk is full\. Free space there, or set"
    with pytest.raises(IndexStoreError, match=message):
        ingest_documents(backend, TinyEncoder(), documents)
    assert backend.describe_index("calls").documents > 500


def test_documents_that_where_does_not_select_are_passed_over_and_counted(backend: Backend) -> None:
    mail = {**REFUND, "sector": "mail"}
    documents: list[dict[str, Any] | bytes] = [REFUND, LOCKED, PARCEL, mail, b"no JSON"]
    selected = {"sector": ["shop", "post"]}
    summary = ingest_documents(backend, TinyEncoder(), documents, where=selected)
    assert count(summary, "read documents excluded failed duplicates") == [5, 1, 3, 1, 0]
    assert summary.to_dict()["excluded"] == 3
    with pytest.raises(UsageError, match="cannot filter 'sector' by like"):
        ingest_documents(backend, TinyEncoder(), documents, where={"sector": {"like": "s"}})


def test_summaries_are_added() -> None:
    total, second = (
        Summary(read=2, documents=1, seconds=0.5),
        Summary(read=3, failed=1, seconds=1.0, rejected="r", stages={"read": 0.25, "wait": 1.0}),
    )
    total.add(second)
    assert count(total, "read documents failed seconds rejected") == [5, 1, 1, 1.5, "r"]
    assert total.stages == {"read": 0.25, "encode": 0.0, "shape": 0.0, "write": 0.0, "wait": 1.0}


def test_the_repr_of_a_summary_says_only_what_was_counted() -> None:
    summary = Summary(read=2, documents=2, seconds=0.061244025999258156)
    assert repr(summary) == "Summary(read=2, documents=2, seconds=0.061)"


@pytest.mark.parametrize("documents", ["a.jsonl", b"{}", Path("a.jsonl"), {"id": "a"}, 7, None])
def test_a_path_or_a_single_document_is_refused_at_once(documents: Any) -> None:
    """Its letters or keys would be rejected as documents, each by itself."""
    with Client(Settings("memory:", None, "cpu", Access())) as client:
        with pytest.raises(UsageError, match="list of dicts"):
            client.ingest(documents)
        with pytest.raises(IndexMissingError):
            client.describe("calls")
