"""Test `verify` on indexes that are damaged on purpose: each damage is found, and nothing else."""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any
from urllib.parse import quote

import numpy as np
import pybase64
import pytest

from hybrid_search import connect
from hybrid_search.backends.embedded.backend import EmbeddedBackend
from hybrid_search.backends.embedded.record import Record
from hybrid_search.backends.memory import MemoryBackend
from hybrid_search.backends.server import passage_codec
from hybrid_search.backends.server.graph_vectors import GraphVectors
from hybrid_search.encoder.base import EncoderInfo
from hybrid_search.errors import IndexMissingError, ModelError, UsageError
from hybrid_search.maintenance.verify import Verification, verify
from hybrid_search.maintenance.verify.repair import repair_index
from hybrid_search.maintenance.verify.report import EXACT, INT8
from hybrid_search.text import word_codes
from hybrid_search.text.types import Encoding
from tests.helpers.changed_index import (
    STORE,
    change_codes,
    change_records,
    find_passage,
    read_codes,
)
from tests.helpers.cli import invoke_cli
from tests.helpers.server_index import TINY, RawIndex
from tests.helpers.tiny_encoder import FINEST, TinyEncoder, fill_index, make_entries, make_spec

TURNS: dict[str, Any] = {
    "id": "turns",
    "turns": [{"speaker": "agent", "text": f"turn{number} " + "blah " * 60} for number in range(4)],
}
LONG: dict[str, Any] = {
    "id": "long",
    "text": " ".join(f"word{number * number % 307}" for number in range(500)),
}
DOTS: dict[str, Any] = {
    "id": "dots",
    "turns": [{"text": "..."}, {"text": "Käse 🧀 bitte,\r\nsofort!"}, {"text": "?!"}],
}
NOTHING: dict[str, Any] = {"id": "nothing", "text": "... ?!"}
FOUR = [TURNS, LONG, DOTS, NOTHING]


@pytest.fixture
def store() -> Iterator[EmbeddedBackend]:
    """The four documents in an embedded index ``calls``."""
    embedded_store = EmbeddedBackend(STORE)
    fill_index(embedded_store, FOUR, codes=FINEST)
    yield embedded_store
    embedded_store.close()


def verify_store(store: Any, sample: int = 100, *, full: bool = False) -> Verification:
    return verify(store, TinyEncoder(), "calls", sample, full=full)


def list_findings(store: Any, sample: int = 100) -> list[tuple[str, str, int | None]]:
    return sorted(
        (finding.kind, finding.document_id, finding.ordinal)
        for finding in verify_store(store, sample).findings
    )


def change_record(document_id: str, number: int, **changes: Any) -> None:
    """Change what is stored of a passage with its checksum, as a wrong writer would."""

    def edit(found: Record) -> Record:
        is_meant = (found.id, found.ordinal) == (document_id, number)
        return replace(found, **changes) if is_meant else found

    change_records(edit)


def remove_record(document_id: str, ordinal: int) -> None:
    change_records(
        lambda found: None if (found.id, found.ordinal) == (document_id, ordinal) else found
    )


def codes(document_id: str, ordinal: int) -> bytes:
    return read_codes(find_passage(document_id, ordinal))


def recode(document_id: str, ordinal: int, data: bytes) -> None:
    """Replace the word codes of a passage with their checksum, as a wrong writer would."""
    change_codes(find_passage(document_id, ordinal), data)


def retext(document_id: str, ordinal: int, old: str, new: str) -> None:
    change_records(
        lambda found: (
            replace(found, text=found.text.replace(old, new))
            if (found.id, found.ordinal) == (document_id, ordinal)
            else found
        )
    )


def test_an_index_that_nobody_touched_is_sound_wherever_it_is(client: Any) -> None:
    fill_index(client.backend, FOUR)
    verification = verify_store(client.backend)
    assert verification.findings == []
    assert (
        verification.documents,
        verification.passages,
        verification.encoded_documents,
        verification.encoded_passages,
    ) == (4, 10, 4, 10)
    assert verification.difference < 1e-5
    assert verification.bound == EXACT == 0.0011


def test_an_empty_index_is_sound(client: Any) -> None:
    client.backend.create_index("calls", make_spec(), {})
    assert verify_store(client.backend).to_dict()["passages"] == 0
    assert verify_store(client.backend).is_sound


def test_a_sample_of_none_lists_and_encodes_nothing(store: EmbeddedBackend) -> None:
    verification = verify_store(store, sample=0)
    assert (
        verification.passages,
        verification.encoded_documents,
        verification.encoded_passages,
    ) == (10, 0, 0)


def test_a_passage_that_is_gone_is_missed(store: EmbeddedBackend) -> None:
    remove_record("turns", 2)
    verification = verify_store(store)
    assert verification.wrong == {"missing": 1}
    assert [(finding.document_id, finding.ordinal) for finding in verification.findings] == [
        ("turns", 2)
    ]
    assert (
        verification.encoded_documents == 3
    )  # not that one: it has to be ingested again in any case


def test_what_is_said_to_be_done_mends_it(store: EmbeddedBackend) -> None:
    retext("dots", 0, "sofort", "sofor")
    (finding,) = verify_store(store).findings
    assert (finding.kind, finding.document_id, finding.ordinal) == ("text", "dots", 0)
    assert "hybrid-search delete --index calls -- 'dots'" in finding.remedy
    assert fill_index(store, FOUR).skipped == 4  # so the document must be deleted first
    with store.writer("calls", store.read_head("calls")[0]) as writer:
        assert writer.delete(["dots"]) == 1
    assert fill_index(store, FOUR).documents == 1
    assert verify_store(store).is_sound


def test_repair_keeps_the_times_of_words(store: EmbeddedBackend) -> None:
    """Each passage of a long turn has those of its own words: 400 words are four passages."""
    word_times = [[6 * number, 6 * number + 5, number, number + 1] for number in range(400)]
    turn = {"text": " ".join(f"a{number:04}" for number in range(400)), "word_times": word_times}
    fill_index(store, [{"id": "timed", "turns": [turn]}])
    layouts = read_layouts(store, "timed")
    assert len(layouts) == 4
    assert all("word_times" in layout for layout in layouts)
    assert max(map(len, layouts)) < sum(map(len, layouts)) / 3
    recode("timed", 1, b"\0")
    spec, _ = store.read_head("calls")
    assert repair_index(store, TinyEncoder(), "calls", spec) == 1
    assert verify_store(store, full=True).is_sound
    assert read_layouts(store, "timed") == layouts


def read_layouts(store: EmbeddedBackend, document_id: str) -> list[str]:
    rows = [row for row in store.iterate_passages("calls") if row.document_id == document_id]
    contents = store.fetch_contents("calls", [row.key for row in rows])
    return [contents[row.key].layout for row in sorted(rows, key=lambda row: row.ordinal)]


def test_passages_beyond_the_last_are_orphans(store: EmbeddedBackend) -> None:
    change_record("turns", 3, ordinal=7)
    assert list_findings(store) == [("missing", "turns", 3), ("orphan", "turns", 7)]


def test_passages_of_two_versions_are_told_apart(store: EmbeddedBackend) -> None:
    """Only the memory backend stores a version for each passage, so it is changed there."""
    memory = MemoryBackend()
    fill_index(memory, FOUR)
    passages = memory._get_index("calls").documents["turns"]
    passages[3].entry = replace(passages[3].entry, source_hash="0123456789abcdef.older")
    (finding,) = verify_store(memory).findings
    assert (finding.kind, finding.document_id, finding.ordinal) == ("orphan", "turns", 3)
    assert "0123456789ab" in finding.found


def test_a_document_that_was_made_by_other_settings_is_of_an_old_version(
    store: EmbeddedBackend,
) -> None:
    (written,) = (row for row in store.iterate_passages("calls") if row.document_id == "dots")
    change_record("dots", 0, source_hash=f"{written.source_hash[:41]}{'f' * 16}")
    assert list_findings(store) == [("version", "dots", 0)]


def test_swapped_codes_are_found_in_both_places(store: EmbeddedBackend) -> None:
    """The words of both passages have the same offsets, so that only the vectors differ."""
    fill_index(
        store,
        [{"id": "one", "text": "apple juice please"}, {"id": "two", "text": "drink spice really"}],
    )
    first, second = codes("one", 0), codes("two", 0)
    recode("one", 0, second)
    recode("two", 0, first)
    assert list_findings(store) == [("codes", "one", 0), ("codes", "two", 0)]
    assert "may be 0.0011" in verify_store(store).findings[0].found


@pytest.mark.parametrize(
    ("damage", "kind"),
    [
        (
            lambda stored: replace(
                stored,
                residuals=_replace_element(stored.residuals, (3, 0), stored.residuals[3, 0] ^ 0xFF),
            ),
            "codes",
        ),
        (
            lambda stored: replace(
                stored, lengths=_replace_element(stored.lengths, 3, stored.lengths[3] * 2)
            ),
            "codes",
        ),
        (
            lambda stored: replace(stored, norms=_replace_element(stored.norms, 1, 9)),
            "codes",
        ),
        (
            lambda stored: replace(
                stored, words=_replace_element(stored.words, (2, 1), stored.words[2, 1] + 1)
            ),
            "offsets",
        ),
        (lambda stored: replace(stored, counts=_replace_element(stored.counts, 0, 19)), "offsets"),
    ],
)
def test_damaged_codes_are_found(
    store: EmbeddedBackend, damage: Callable[[Any], Any], kind: str
) -> None:
    recode("turns", 1, word_codes.to_bytes(damage(word_codes.read(codes("turns", 1)))))
    assert list_findings(store) == [(kind, "turns", 1)]


def _replace_element(array: Any, where: Any, value: Any) -> Any:
    changed = np.array(array)
    changed[where] = value
    return changed


@pytest.mark.parametrize("cut", [5, 100])
def test_codes_that_cannot_be_read_are_found_and_their_neighbours_compared(
    store: EmbeddedBackend, cut: int
) -> None:
    recode("turns", 1, codes("turns", 1)[:cut])
    verification = verify_store(store)
    assert [
        (finding.kind, finding.document_id, finding.ordinal) for finding in verification.findings
    ] == [("codes", "turns", 1)]
    assert verification.encoded_passages == 10


@pytest.mark.parametrize(
    ("document_id", "ordinal", "old", "new", "kind", "at"),
    [
        ("turns", 1, "turn1", "turn9", "codes", 1),  # the same places, other words
        ("turns", 1, "turn1", "t rn1", "offsets", 1),
        ("turns", 1, "turn1", "a turn1", "text", 1),  # longer than its turn
        ("dots", 0, "sofort", "sofor", "text", 0),
        (
            "long",
            1,
            " word",
            "  ord",
            "text",
            1,
        ),  # its first words are the last of the piece before it
    ],
)
def test_a_changed_text_is_found(
    store: EmbeddedBackend, document_id: str, ordinal: int, old: str, new: str, kind: str, at: int
) -> None:
    retext(document_id, ordinal, old, new)
    assert list_findings(store) == [(kind, document_id, at)]
    found = " ".join(finding.found for finding in verify_store(store).findings)
    assert not re.search(r"word\d|turn\d|ord\d", found), "it quotes the document"


def test_a_lost_file_of_codes_is_told_for_each_of_its_passages(store: EmbeddedBackend) -> None:
    for path in STORE.rglob("*.codes"):
        path.unlink()
    store.close()
    verification = verify_store(store)
    assert verification.wrong == {"codes": 10}
    assert all("are missing" in finding.found for finding in verification.findings)
    assert verify(store, TinyEncoder(), "calls", repair=True).is_sound


class RotatedEncoder(TinyEncoder):
    """The tiny encoder with all vectors rotated: every span's cosine is off by 1 - cos(angle)."""

    def __init__(self, angle: float, precision: str = "float32") -> None:
        plane = [[np.cos(angle), -np.sin(angle)], [np.sin(angle), np.cos(angle)]]
        self.turn = np.kron(np.eye(4), plane).astype(np.float32)
        self.info = EncoderInfo("tiny", "tiny-fingerprint", 8, precision, "turn")

    def encode(self, texts: Any) -> list[Encoding]:
        return [
            Encoding(encoding.vectors @ self.turn, encoding.offsets)
            for encoding in super().encode(texts)
        ]


def test_passages_of_another_precision_are_told_apart_and_are_not_wrong(
    store: EmbeddedBackend,
) -> None:
    """1 - cos(0.1) is 0.0050: more than float32 may differ, and less than int8 may."""
    verification = verify(store, RotatedEncoder(0.1), "calls")
    assert verification.is_sound
    assert verification.other_precision == 9  # all that have a word
    assert verification.difference == 0.0


def test_the_bound_is_that_of_the_coarser_precision(store: EmbeddedBackend) -> None:
    verification = verify(store, RotatedEncoder(0.1, "int8"), "calls")
    assert (verification.bound, verification.other_precision, verification.is_sound) == (
        INT8,
        0,
        True,
    )
    # of 8 numbers, codes keep less than of 384: an angle of .1 and one of .02 are 0.0072
    assert verification.difference == pytest.approx(0.0050, abs=0.003)


def test_another_model_of_the_same_fingerprint_is_too_far_off(store: EmbeddedBackend) -> None:
    """1 - cos(0.2) is 0.0199."""
    assert verify(store, RotatedEncoder(0.2), "calls").wrong == {"codes": 9}


def test_a_model_of_another_fingerprint_is_refused(store: EmbeddedBackend) -> None:
    encoder = RotatedEncoder(0.0)
    encoder.info = replace(encoder.info, fingerprint="another")
    with pytest.raises(ModelError, match="tiny-fingerprint"):
        verify(store, encoder, "calls")


def test_a_missing_index_and_a_sample_under_0_are_errors(store: EmbeddedBackend) -> None:
    with pytest.raises(IndexMissingError):
        verify(store, TinyEncoder(), "other")
    with pytest.raises(UsageError, match="-1"):
        verify_store(store, -1)


def test_the_sample_is_of_the_whole_index(store: EmbeddedBackend) -> None:
    fill_index(store, [{"id": f"d{number}", "text": f"some text {number}"} for number in range(96)])
    verification = verify_store(store, sample=10)
    assert (verification.documents, verification.encoded_documents) == (100, 10)


# the command


def test_the_command_says_that_all_is_well(sample_url: str) -> None:
    result = invoke_cli("verify", "--url", sample_url, "--sample", "2", "--device", "cpu")
    assert (result.status, result.stdout.splitlines()[-1]) == (0, "all is well")
    report = invoke_cli(
        "verify", "--url", sample_url, "--sample", "1", "--device", "cpu", "--json"
    ).json
    assert (
        report["documents"],
        report["encoded_documents"],
        report["wrong"],
        report["findings"],
    ) == (88, 1, {}, [])
    assert report["difference"] <= report["bound"]


def test_the_command_says_what_is_wrong_and_ends_with_1(
    store: EmbeddedBackend, tiny_encoder: None
) -> None:
    remove_record("turns", 3)
    result = invoke_cli("verify", "--url", "embedded:store")
    assert result.status == 1
    assert (
        "missing: 'turns' passage 3: it is not there, and its document has 4 passages; "
        "ingest it again" in result.stdout
    )
    assert result.stdout.splitlines()[-1] == "wrong: 1 missing"
    json_result = invoke_cli("verify", "--url", "embedded:store", "--json")
    assert (json_result.status, json_result.json["wrong"]) == (1, {"missing": 1})
    assert set(json_result.json["findings"][0]) == {
        "kind",
        "document_id",
        "ordinal",
        "found",
        "remedy",
    }


def test_the_command_ends_with_2_where_nothing_could_run(tmp_path: Path) -> None:
    assert (
        "no index 'calls'"
        in invoke_cli("verify", "--url", f"embedded:{tmp_path}", "--device", "cpu").error
    )


# on servers


@pytest.fixture
def place(place: RawIndex) -> RawIndex:
    place.ingest(FOUR)
    return place


def findings_on_server(place: RawIndex) -> list[tuple[str, str, int | None]]:
    place.request_json("POST", f"/{place.index}/_refresh")
    with connect(place.url) as client:
        verification = verify(client.backend, TinyEncoder(), place.index)
    return sorted(
        (finding.kind, finding.document_id, finding.ordinal) for finding in verification.findings
    )


def overwrite_passage(place: RawIndex, document_id: str, number: int, **changed: Any) -> None:
    """Write one passage again, with changed fields."""
    entry = make_entries(next(document for document in FOUR if document["id"] == document_id))[
        number
    ]
    (mapping,) = place.request_json("GET", f"/{place.index}/_mapping").values()
    properties = mapping["mappings"]["properties"]
    graph = GraphVectors.from_mapping(properties["spans"]["properties"]["vector"], TINY.dimension)
    built = passage_codec.build_source(entry, TINY, "2026-01-01T00:00:00+00:00", graph)
    source = json.loads(passage_codec.to_json(built)) | changed
    passage_id = passage_codec.passage_id(document_id, changed.get("ordinal", number))
    place.write_passage("PUT", f"/{place.index}/_doc/{quote(passage_id)}", source)


def test_each_damage_of_an_index_on_a_server_is_found(place: RawIndex) -> None:
    assert findings_on_server(place) == []
    place.write_passage("DELETE", f"/{place.index}/_doc/{quote('turns#2')}")
    overwrite_passage(place, "long", 3, ordinal=9)
    overwrite_passage(place, "long", 2, source_hash="0123.older")
    overwrite_passage(place, "dots", 0, spans=[])
    assert findings_on_server(place) == [
        ("missing", "turns", 2),
        ("orphan", "long", 2),
        ("orphan", "long", 9),
        ("vectors", "dots", 0),
    ]


def test_swapped_codes_and_changed_texts_are_found_on_a_server(place: RawIndex) -> None:
    first, second = (
        pybase64.b64encode_as_string(word_codes.to_bytes(entry.tokens))
        for entry in make_entries(TURNS)[:2]
    )
    overwrite_passage(place, "turns", 0, tokens=second)
    overwrite_passage(place, "turns", 1, tokens=first)
    overwrite_passage(place, "dots", 0, text="Käse 🧀 bittx,\r\nsofort!")
    assert findings_on_server(place) == [
        ("codes", "dots", 0),
        ("codes", "turns", 0),
        ("codes", "turns", 1),
    ]
