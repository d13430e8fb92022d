"""Passages whose stored word codes are damaged: left out, named with the remedy, and mended."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import closing
from dataclasses import replace
from typing import Any

import numpy as np
import pytest

from hybrid_search.backends import open_backend
from hybrid_search.backends.base import Backend
from hybrid_search.backends.embedded.backend import EmbeddedBackend
from hybrid_search.backends.memory import MemoryBackend
from hybrid_search.maintenance.verify import verify
from hybrid_search.search.calibration import Calibration
from hybrid_search.search.hit import Hit
from hybrid_search.search.pipeline import search
from hybrid_search.search.query import Query
from hybrid_search.search.result import Result
from hybrid_search.text import codebook, word_codes
from hybrid_search.text.types import Entry, WordCodes
from tests.backends.test_head_cache import FakeCluster
from tests.helpers.changed_index import (
    STORE,
    change_codes,
    change_records,
    find_passage,
    read_codes,
)
from tests.helpers.cli import invoke_cli
from tests.helpers.fake_server import ScriptedServer
from tests.helpers.tiny_encoder import TinyEncoder, fill_index, make_entries

PHRASE = "money back"
CALLS: list[dict[str, Any]] = [
    {"id": "sound", "text": "I want my money back, the kettle leaks."},
    {
        "id": "hurt",
        "year": 2024,
        "turns": [
            {"text": "..."},
            {"speaker": "agent", "text": "The money came back twice.", "start_ms": 5, "mood": "ok"},
            {"text": "?!"},
            {"speaker": "caller", "text": "Then all is well."},
        ],
    },
    {"id": "other", "text": "A parcel is late."},
]
REMEDY = "hybrid-search verify --index calls --repair"
WARNING = f"'hurt' passage 0: left out, because of damaged word codes. To mend this: {REMEDY}"

Damage = Callable[[bytes], bytes]


def run_query(backend: Backend, phrase: str = PHRASE, **options: Any) -> Result:
    query = Query(phrase, index="calls", **options)
    return search(backend, TinyEncoder(), lambda *_: Calibration(), query)


def ids(result: Result) -> list[str]:
    return sorted(hit.id for hit in result)


def show(hit: Hit) -> tuple[Any, ...]:
    """Return all of a hit but its BM25, which counts what was replaced until it is merged."""
    return hit.id, hit.passage, hit.cosine, hit.metadata, hit.spans, hit.text


@pytest.fixture
def store() -> Iterator[EmbeddedBackend]:
    with closing(EmbeddedBackend(STORE)) as embedded_store:
        fill_index(embedded_store, CALLS)
        yield embedded_store


def damage_codes(damage: Damage, document_id: str = "hurt") -> None:
    passage = find_passage(document_id)
    change_codes(passage, damage(read_codes(passage)))


def change(**changes: Callable[[Any], Any]) -> Damage:
    """Return a damage that keeps the form of the codes, and changes some of their arrays."""

    def damage(data: bytes) -> bytes:
        codes = word_codes.read(data)
        arrays = {name: make(getattr(codes, name).copy()) for name, make in changes.items()}
        return word_codes.to_bytes(replace(codes, **arrays))

    return damage


def set_element(place: Any, value: Any) -> Callable[[Any], Any]:
    def overwrite(array: Any) -> Any:
        array[place] = value
        return array

    return overwrite


UNREADABLE: dict[str, Damage] = {
    "nothing": lambda _: b"",
    "a cut header": lambda data: data[:5],
    "a cut array": lambda data: data[:-1],
    "another magic": lambda data: b"XXXX" + data[4:],
    "another dimension": lambda data: word_codes.to_bytes(_halve(word_codes.read(data))),
    "other bits": lambda data: data[:4] + b"\x05" + data[5:],
    "another codebook": lambda data: data[:8] + b"ABCD" + data[12:],
    "a centroid that is not there": change(centroids=set_element(0, 1)),
    "more spans than words": change(
        counts=set_element(-1, 2), norms=lambda norms: np.append(norms, norms[:1])
    ),
    "a span without its norm": change(norms=lambda norms: norms[:-1]),
    "a length that is no number": change(lengths=set_element(0, np.nan)),
    "an infinite length": change(lengths=set_element(0, np.inf)),
    "a negative length": change(lengths=set_element(0, -0.5)),
}


def _halve(codes: WordCodes) -> WordCodes:
    half = codes.residuals[:, : codes.residuals.shape[1] // 2]
    return replace(codes, codebook=codebook.plain(codes.dimension // 2), residuals=half)


@pytest.mark.parametrize("damage", UNREADABLE.values(), ids=list(UNREADABLE))
@pytest.mark.parametrize("alpha", [0.0, 0.5, 1.0])
def test_a_damaged_passage_is_left_out_and_named(
    store: EmbeddedBackend, caplog: pytest.LogCaptureFixture, damage: Damage, alpha: float
) -> None:
    expected = [hit for hit in run_query(store, alpha=alpha) if hit.id != "hurt"]
    damage_codes(damage)
    caplog.clear()
    result = run_query(store, alpha=alpha)
    assert [hit.id for hit in result] == [hit.id for hit in expected]
    assert result.plan["warnings"] == [WARNING]
    assert result.total == len(expected)
    assert WARNING in caplog.messages


@pytest.mark.parametrize("damage", UNREADABLE.values(), ids=list(UNREADABLE))
def test_full_verification_finds_it_and_repair_mends_it(
    store: EmbeddedBackend, damage: Damage
) -> None:
    expected = run_query(store, spans=5)
    damage_codes(damage)
    (finding,) = verify(store, TinyEncoder(), "calls", 0, full=True).findings
    assert (finding.kind, finding.document_id, finding.ordinal) == ("codes", "hurt", 0)
    assert finding.remedy == f"{REMEDY} mends it"
    verification = verify(store, TinyEncoder(), "calls", 100, repair=True)
    assert (verification.is_sound, verification.repaired_documents) == (True, 1)
    mended = run_query(store, spans=5)
    assert [show(hit) for hit in mended] == [show(hit) for hit in expected]
    assert "warnings" not in mended.plan
    assert fill_index(store, CALLS).skipped == 3


def test_without_damage_there_is_no_warning(store: EmbeddedBackend) -> None:
    assert "warnings" not in run_query(store).plan


def test_a_filter_or_an_exact_search_that_meets_it_says_so(
    store: EmbeddedBackend, monkeypatch: pytest.MonkeyPatch
) -> None:
    damage_codes(UNREADABLE["a cut array"])
    assert run_query(store).plan["warnings"] == [WARNING]
    query = Query(PHRASE, index="calls", where={"year": 2024})
    result = search(store, TinyEncoder(), lambda *_: Calibration(), query)
    assert (result.hits, result.plan["warnings"]) == ([], [WARNING])


def test_spans_with_impossible_places_are_left_out_of_the_hit(store: EmbeddedBackend) -> None:
    """Their cosines are right: the offsets are only for showing them."""
    damage_codes(change(words=set_element((slice(None), slice(2)), 900)))
    result = run_query(store)
    (hit,) = [hit for hit in result if hit.id == "hurt"]
    assert hit.spans == []
    (warning,) = result.plan["warnings"]
    assert warning.startswith("'hurt' passage 0: without some spans")


def test_a_document_whose_text_is_damaged_too_is_not_encoded_again(
    store: EmbeddedBackend,
) -> None:
    """Its codes would then vouch for a text that its source never had."""
    damage_codes(UNREADABLE["a cut array"])
    change_records(
        lambda found: replace(found, text=f"{found.text} more") if found.id == "hurt" else found
    )
    verification = verify(store, TinyEncoder(), "calls", 100, repair=True)
    assert verification.repaired_documents == 0
    assert {finding.document_id for finding in verification.findings} == {"hurt"}
    assert "hybrid-search delete --index calls -- 'hurt'" in verification.findings[-1].remedy


def test_numbers_that_changed_are_found_by_the_norms(store: EmbeddedBackend) -> None:
    damage_codes(
        change(lengths=lambda lengths: 3 * lengths * np.arange(len(lengths), dtype=np.float16))
    )
    assert verify(store, TinyEncoder(), "calls", 0).is_sound
    (finding,) = verify(store, TinyEncoder(), "calls", 0, full=True).findings
    assert (finding.kind, finding.document_id) == ("codes", "hurt")
    assert verify(store, TinyEncoder(), "calls", 9, repair=True).is_sound


def test_codes_in_memory_are_treated_alike() -> None:
    memory = MemoryBackend()
    fill_index(memory, CALLS)
    (passage,) = memory._get_index("calls").documents["hurt"]
    passage.entry = replace(passage.entry, tokens=word_codes.UNREADABLE)
    result = run_query(memory)
    assert ids(result) == ["other", "sound"]
    assert result.plan["warnings"] == [WARNING]
    assert verify(memory, TinyEncoder(), "calls", repair=True).is_sound
    assert ids(run_query(memory)) == ["hurt", "other", "sound"]


class DamagedCluster(FakeCluster):
    """A cluster in which the codes of the document ``hurt`` are `tokens`."""

    tokens: Any = None

    def hit(self, entry: Entry) -> dict[str, Any]:
        hit = super().hit(entry)
        if entry.document.id == "hurt":
            hit["fields"] = {
                name: values for name, values in hit["fields"].items() if name != "tokens"
            }
            hit["fields"] |= {"tokens": [self.tokens]} if self.tokens else {}
        return hit


@pytest.mark.parametrize("tokens", [None, "AAAA", "!", "SFNUMQ"])
def test_codes_on_a_server_are_treated_alike(tokens: str | None) -> None:
    entries = [entry for call in CALLS for entry in make_entries(call)]
    cluster = DamagedCluster(entries=entries)
    cluster.tokens = tokens
    with (
        ScriptedServer(cluster) as server,
        closing(open_backend(f"opensearch+{server.url}")) as backend,
    ):
        for window in (10, 5000):  # codes come with the legs, or in requests of their own
            result = run_query(backend, size=window)
            assert ids(result) == ["other", "sound"]
            assert result.plan["warnings"] == [WARNING]


def test_the_command_warns_and_mends(
    store: EmbeddedBackend, tiny_encoder: None, caplog: pytest.LogCaptureFixture
) -> None:
    damage_codes(UNREADABLE["a cut array"])
    url = ("--url", "embedded:store")
    result = invoke_cli("query", PHRASE, *url)
    assert (result.status, WARNING in caplog.messages) == (0, True)  # on standard error
    assert invoke_cli("query", PHRASE, *url, "--json").json["plan"]["warnings"] == [WARNING]
    assert invoke_cli("verify", *url, "--full", "--sample", "0").status == 1
    repaired = invoke_cli("verify", *url, "--repair")
    assert repaired.status == 0
    assert "encoded again from their text: 1 documents" in repaired.stdout
    assert "warnings" not in invoke_cli("query", PHRASE, *url, "--json").json["plan"]
