"""Words that must go: masked at ingest or later, and then in no text, term, code or byte."""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest

from benchmarks.faults.planted import plant_secrets
from hybrid_search import connect
from hybrid_search.backends.embedded.remains import CHUNK, OVERLAP, iterate_files
from hybrid_search.client import Client
from hybrid_search.errors import DocumentMissingError, InputError, UsageError
from hybrid_search.ingest.document_parser import parse
from hybrid_search.text import word_codes
from hybrid_search.text.words import words
from tests.helpers.cli import invoke_cli
from tests.helpers.tiny_encoder import bm25_scores, fill_index

pytestmark = pytest.mark.usefixtures("tiny_encoder")

PLANTED = plant_secrets(24, 6)
CALL: dict[str, Any] = {
    "id": "a",
    "turns": [
        {"speaker": "agent", "text": "...", "start_ms": 5},
        {"speaker": "agent", "text": "What is your name?", "start_ms": 10},
        {"text": "?!"},
        {
            "speaker": "customer",
            "text": "Oma Bräsig 🧀, b-r-ä",
            "word_times": [[0, 3, 20, 30], [4, 10, 30, 50]],
            "channel": 1,
        },
        {"text": ""},
        {"speaker": "agent", "text": "Thank you."},
    ],
    "sector": "shop",
}
TEXT = "...\nWhat is your name?\n?!\nOma Bräsig 🧀, b-r-ä\n\nThank you."
NAME = {"id": "a", "start": TEXT.index("Oma"), "end": TEXT.index(" 🧀"), "type": "name"}
MASKED = "What is your name?\n?!\n██████████ 🧀, b-r-ä\n\nThank you."


def span(start: Any, end: Any, **others: Any) -> dict[str, Any]:
    return {"id": "a", "start": start, "end": end, "type": "name", **others}


def list_codes(client: Client) -> dict[tuple[str, int], bytes]:
    """Return the stored word codes of each passage."""
    passages = client.backend.scan_codes("calls")
    return {
        (passage.document_id, passage.ordinal): word_codes.to_bytes(passage.tokens)
        for passage in passages
    }


def list_hashes(client: Client) -> dict[str, str]:
    rows = client.backend.iterate_passages("calls")
    return {row.document_id: row.source_hash for row in rows}


def test_planted_words_are_gone_and_all_else_is_as_if_they_had_never_been_there(
    client: Client,
) -> None:
    fill_index(client.backend, PLANTED.calls)
    before = {call["id"]: client.open_document(call["id"]).text.rstrip() for call in PLANTED.calls}
    found = client.search_words(PLANTED.words)
    assert {item.line for item in found.found} == set(range(1, 7))

    receipts = client.redact(PLANTED.spans)

    assert [list(receipt.spans.values()) for receipt in receipts] == [[1]] * 6
    assert not any(
        word in json.dumps([item.to_dict() for item in receipts]) for word in PLANTED.words
    )
    check = client.search_words(PLANTED.words)
    assert (check.found, check.remains) == ([], [])
    assert check.passages == client.describe().passages
    with connect("memory:") as fresh:
        by_id = {item["id"]: item for item in PLANTED.spans}
        fill_index(
            fresh.backend,
            [
                {**call, "redactions": [without_id(by_id[call["id"]])]}
                if call["id"] in by_id
                else call
                for call in PLANTED.calls
            ],
        )
        assert list_codes(client) == list_codes(fresh)
        for phrase in ("Orla", *PLANTED.words, "my money back", "card"):
            scores, expected = (bm25_scores(own, phrase) for own in (client.backend, fresh.backend))
            assert scores.keys() == expected.keys()
            if "analyzer=standard" not in repr(client):  # it keeps the stop words, and so lengths
                assert scores == pytest.approx(expected, rel=1e-5)
    for item in PLANTED.spans:
        text, original = client.open_document(item["id"]).text, before[item["id"]]
        start, end = item["start"], item["end"]
        assert text == f"{original[:start]}{'█' * (end - start)}{original[end:]}"
    assert bm25_scores(client.backend, "Orla") == {}
    assert client.verify().is_sound


def without_id(item: Mapping[str, Any]) -> dict[str, Any]:
    return {name: value for name, value in item.items() if name != "id"}


def test_a_document_keeps_its_turns_times_metadata_and_offsets(client: Client) -> None:
    fill_index(client.backend, [CALL])
    client.redact([NAME])
    client.redact([NAME])  # again: it does no harm
    view = client.open_document("a")
    assert view.text.strip() == MASKED
    assert view.metadata == {"sector": "shop"}
    places = [(turn.turn, turn.speaker, turn.start, turn.start_ms) for turn in view.turns]
    assert places == [
        (1, "agent", 4, 10),
        (3, "customer", 26, None),
        (5, "agent", TEXT.index("Thank"), None),
    ]
    hit = client.query("b-r-ä", alpha=1.0).hits[0]
    assert TEXT[hit.spans[0].start : hit.spans[0].end] == hit.spans[0].text


def test_the_mask_is_no_word() -> None:
    assert len(words("the card is ████ ████, and P███ is my name")) == 8  # P is one


@pytest.mark.parametrize(
    ("spans", "problem"),
    [
        ([span(0, 3), span(2, 5)], "overlap"),
        ([span(0, 3), span(0, 3)], "overlap"),
        ([span(0, 5)], "goes beyond its turn"),
        ([span(3, 4)], "goes beyond its turn"),  # the newline between two turns
        ([span(len(TEXT) - 1, len(TEXT) + 1)], "reaches beyond the text"),
        ([span(5, 5)], "ends where it starts"),
        ([span(-1, 5)], "at least 0"),
        ([span(0, 3, text="Oma")], "not a known key"),
        ([span(0, "3")], "a whole number"),
        ([{"id": "a", "start": 0, "end": 3}], "is missing"),
        ([span(0, 3, id=7)], "has no id"),
        ([], "no spans were given"),
    ],
)
def test_a_wrong_span_is_an_error_and_nothing_is_changed(
    client: Client, spans: list[dict[str, Any]], problem: str
) -> None:
    fill_index(client.backend, [CALL, {"id": "b", "text": "a good call"}])
    before = list_hashes(client)
    with pytest.raises(UsageError, match=problem) as error:
        client.redact([{"id": "b", "start": 2, "end": 6, "type": "word"}, *spans] if spans else [])
    assert "Oma" not in str(error.value)
    assert list_hashes(client) == before
    assert client.open_document("b").text == "a good call"


def test_a_span_of_an_unknown_document_is_an_error_and_nothing_is_changed(client: Client) -> None:
    fill_index(client.backend, [CALL])
    before = list_hashes(client)
    with pytest.raises(DocumentMissingError, match="no document 'z'"):
        client.redact([NAME, span(0, 1, id="z")])
    assert list_hashes(client) == before


def test_a_redacted_document_is_replaced_only_by_one_that_was_looked_through(
    client: Client, caplog: pytest.LogCaptureFixture
) -> None:
    fill_index(client.backend, [CALL])
    client.redact([NAME])
    summary = fill_index(client.backend, [CALL])
    assert (summary.documents, summary.skipped, summary.unredacted) == (0, 1, 1)
    assert "1 documents were left as they are" in caplog.text
    assert client.search_words(["Oma"]).is_clean
    shorter = {**CALL, "turns": CALL["turns"][:4], "redactions": [without_id(NAME)]}
    assert fill_index(client.backend, [shorter]).documents == 1
    assert "Thank you" not in client.open_document("a").text
    assert client.search_words(["Oma"]).found == []


def test_redactions_of_a_document_are_masked_before_it_is_cleaned_and_hashed() -> None:
    line: dict[str, Any] = {"id": "a", "text": "I am <b>Oma</b>."}
    line["redactions"] = [without_id(span(8, 11))]
    document, canonical = parse(json.dumps(line).encode())
    assert document.text == "I am <b>███</b>."
    assert document.metadata == {}
    assert "Oma" not in canonical
    line["redactions"] = [without_id(span(8, 90))]
    with pytest.raises(InputError, match="reaches beyond the text"):
        parse(json.dumps(line).encode())
    for wrong in ({"start": 1}, "no list"):
        line["redactions"] = wrong
        with pytest.raises(InputError, match="one of redactions is not"):
            parse(json.dumps(line).encode())
    assert parse(b'{"id": "a", "text": "x y", "redactions": null}')[0].text == "x y"


def write_recogniser(folder: Path, monkeypatch: pytest.MonkeyPatch, body: str) -> None:
    folder.joinpath("own_recogniser.py").write_text(f"import re\ndef find(text):\n    {body}\n")
    monkeypatch.syspath_prepend(folder)


def test_a_recogniser_masks_what_it_finds_in_each_turn(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    # of the name, and of its first word: what a recogniser finds may overlap
    twice = (
        "return [(*m.span(n), 'name') for m in re.finditer('(Oma) Bräsig', text) for n in (0, 1)]"
    )
    write_recogniser(tmp_path, monkeypatch, twice)
    with connect("memory:") as client:
        client.ingest([CALL], recogniser="own_recogniser:find")
        assert client.open_document("a").text.strip().startswith(MASKED[:30])
        assert client.search_words(["Oma Bräsig", "Bräsig"]).is_clean


@pytest.mark.parametrize("body", ["return [(0, 99, 'name')]", "raise KeyError(text)"])
def test_a_document_at_which_a_recogniser_fails_is_refused(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, body: str
) -> None:
    write_recogniser(tmp_path, monkeypatch, body)
    monkeypatch.delitem(__import__("sys").modules, "own_recogniser", raising=False)
    with (
        connect("memory:") as client,
        pytest.raises(InputError, match="the recogniser") as error,
    ):
        client.ingest([CALL], recogniser="own_recogniser:find")
    assert "Oma" not in str(error.value)


@pytest.mark.parametrize("path", ["no_such_module:find", "json:no", "json", "json:__name__"])
def test_a_recogniser_that_is_none_is_an_error_before_anything_is_made(path: str) -> None:
    with connect("memory:") as client:
        with pytest.raises(UsageError, match=r"give PACKAGE\.MODULE:FUNCTION"):
            client.ingest([CALL], recogniser=path)
        assert client.indexes() == []


def test_the_commands_mask_and_prove_it_and_print_no_word(tmp_path: Path) -> None:
    url = f"embedded:{tmp_path / 'store'}"
    with connect(url) as client:
        fill_index(client.backend, PLANTED.calls)
    spans, secret = tmp_path / "spans.jsonl", tmp_path / "words.txt"
    spans.write_text("\n".join(map(json.dumps, PLANTED.spans)))
    secret.write_text("\n\n".join(PLANTED.words), encoding="utf-8")
    before = invoke_cli("verify", "--redacted", str(secret), "--url", url)
    masked = invoke_cli("redact", "--spans", str(spans), "--url", url)
    after = invoke_cli("verify", "--redacted", str(secret), "--url", url, "--json")
    assert (before.status, masked.status, after.status) == (1, 0, 0)
    assert "line 1 is in document 'call-00000'" in before.stdout
    assert len(masked.stdout.splitlines()) == 6
    assert after.json["found"] == after.json["remains"] == []
    assert after.json["bytes"] > 0
    printed = before.stdout + masked.stdout + masked.stderr + after.stdout
    assert not any(word in printed for word in PLANTED.words)
    spans.write_text('{"id": "a"}\nnot json\n')
    assert (
        "spans.jsonl:2: not JSON" in invoke_cli("redact", "--spans", str(spans), "--url", url).error
    )
    secret.write_text("\n \n")
    nothing = invoke_cli("verify", "--redacted", str(secret), "--url", url)
    assert "there are no words to search for" in nothing.error
    missing = invoke_cli("verify", "--redacted", str(tmp_path / "none"), "--url", url)
    assert "cannot be read" in missing.error


def test_deleted_words_are_found_until_the_index_is_purged(tmp_path: Path) -> None:
    with connect(f"embedded:{tmp_path / 'store'}") as client:
        fill_index(client.backend, PLANTED.calls)
        client.delete([PLANTED.spans[0]["id"], PLANTED.calls[-1]["id"]])
        check = client.search_words(PLANTED.words[:1])
        assert any("deleted passages are in segments" in text for text in check.remains)
        assert any("codes of" in text for text in check.remains)
        client.backend.purge("calls")
        assert client.search_words(PLANTED.words[:1]).is_clean
        client.delete([call["id"] for call in PLANTED.calls[:-1]])
        fill_index(client.backend, [CALL])
        client.delete(["a"])
        client.backend.purge("calls")
        assert client.backend.list_remains("calls") == []
        assert client.describe().passages == 0
        fill_index(client.backend, PLANTED.calls)  # an emptied index takes documents
        assert client.verify(full=True).is_sound


def test_a_word_is_found_where_two_chunks_of_a_file_meet(tmp_path: Path) -> None:
    (tmp_path / "file").write_bytes(bytes(CHUNK - 3) + b"secret" + bytes(OVERLAP))
    assert any(b"secret" in data for _, data in iterate_files(tmp_path))
