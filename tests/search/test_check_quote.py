"""`check_quote`: where the words of a quotation stand, in every store, or that nobody said them."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import numpy as np
import pytest

from hybrid_search import connect
from hybrid_search.backends.types import Fault, Key, PassageContent
from hybrid_search.client import Client
from hybrid_search.errors import IndexMissingError, UsageError
from hybrid_search.search.quote import QuoteCheck

pytestmark = pytest.mark.usefixtures("tiny_encoder")

WRITTEN: dict[str, Sequence[str]] = {
    "refund": ("refund", "REFUND!", "re\u00adfund", "(refund"),
    "cafe": ("cafe", "Café", "cafe\u0301,"),
    "the": ("the", "The", "thé"),
    "don't": ("don't", "Don’t"),
    "no": ("no", "No.", "-no-"),
    "3.50": ("3.50", "3.50;"),
    "name": ("name", "<name>", "[NAME]"),
    "unclear": ("unclear", "[-unclear]"),
    "prix": ("prix", "prix\u202f!"),
    "p.m": ("p.m.", "P.M"),
    "strasse": ("Straße", "STRASSE"),
    "мои": ("мои", "мой", "мои\u0306"),
    "x" * 128: ("x" * 128, "X" * 128),
}
"""Words, as they are compared in English, and ways to write each."""

LONG_TURN = " ".join(f"item{number}" for number in range(400))
"""A turn of more words than a passage has: it is cut into three pieces that overlap."""

DOCUMENTS: list[dict[str, Any]] = [
    {
        "id": "shop",
        "turns": [
            {
                "speaker": "customer",
                "text": "Well, I’d like my money back. To be, or not to be?",
                "start_ms": 1000,
                "end_ms": 6000,
            },
            {
                "speaker": "agent",
                "text": "3.50 at the Café in <CITY NAME>. No, no, no, no.",
            },
        ],
    },
    {
        "id": "ticket",
        "text": "I'd like my money back; the re\u00adfund of 3.50 is due. Thé end.",
    },
    {"id": "swapped", "text": "My money: back I'd like."},
    {"id": "long", "turns": [{"speaker": "agent", "text": LONG_TURN}]},
    {"id": "de", "text": "Das ist schon schön, sagte die Ho\u0308rerin.", "language": "de"},
    {"id": "ru", "text": "Верните мой платёж."},
]


@pytest.fixture
def filled_client(client: Client) -> Client:
    client.ingest(DOCUMENTS)
    return client


def list_texts(check: QuoteCheck) -> list[tuple[str, str]]:
    return sorted((place.id, place.text) for place in check.places)


def test_a_quotation_is_found_wherever_it_stands_with_its_place(filled_client: Client) -> None:
    check = filled_client.check_quote("i'd LIKE my money, back")
    assert (check.found, check.complete, check.nearest) == (True, True, ())
    shop, ticket = sorted(check.places, key=lambda place: place.id)
    assert (shop.id, shop.turn, shop.speaker, shop.text) == (
        *("shop", 0, "customer"),
        "I’d like my money back",
    )
    assert (ticket.id, ticket.start, ticket.turn, ticket.speaker) == ("ticket", 0, 0, None)
    # 50 characters in 5,000 ms: the words are characters 6 to 28
    assert (shop.start_ms, shop.end_ms, shop.times) == (1600, 3800, "interpolated")
    for place in check.places:
        text = filled_client.open_document(place.id).text
        assert text[place.start : place.end] == place.text


@pytest.mark.parametrize(
    ("quotation", "expected"),
    [
        ("to be or not to be", [("shop", "To be, or not to be")]),  # stop words alone
        ("the", [("shop", "the"), ("ticket", "the"), ("ticket", "Thé")]),
        ("refund of 3.50", [("ticket", "re\u00adfund of 3.50")]),
        ("3.5", []),
        ("cafe", [("shop", "Café")]),
        ("in the city name", []),
        ("in city name", [("shop", "in <CITY NAME>")]),
        ("no no", [("shop", "No, no"), ("shop", "no, no")]),
        ("liked my money back", []),  # not stemmed
        ("like my back", []),  # no word left out
        ("schön sagte die Hörerin", [("de", "schön, sagte die Ho\u0308rerin")]),
        ("schon", [("de", "schon")]),  # another word than "schön"
        ("die", [("de", "die")]),  # a stop word in German
        ("мой платеж", [("ru", "мой платёж")]),
        ("back to be", [("shop", "back. To be")]),  # over a sentence
        ("not to be 3.50 at", []),  # over a turn
    ],
)
def test_words_are_compared_one_by_one(
    filled_client: Client, quotation: str, expected: Sequence[tuple[str, str]]
) -> None:
    check = filled_client.check_quote(quotation)
    assert list_texts(check) == sorted(expected)
    assert bool(check.nearest) != check.found


@pytest.mark.parametrize(
    ("quotation", "expected"),
    [
        ("like my ... to be", [("shop", "like my money back. To be")]),
        ("i'd […] back; the ... due", [("ticket", DOCUMENTS[1]["text"][:50])]),
        ("... Well, [...]", [("shop", "Well")]),
        ("back ... like", [("swapped", "back I'd like")]),
        ("no…no", [("shop", "No, no"), ("shop", "no, no")]),
        ("well ... the cafe", []),  # in two turns
    ],
)
def test_pieces_of_a_quotation_stand_in_order_in_one_turn(
    filled_client: Client, quotation: str, expected: Sequence[tuple[str, str]]
) -> None:
    assert list_texts(filled_client.check_quote(quotation)) == sorted(expected)


@pytest.mark.parametrize(("first", "last"), [(0, 400), (100, 160), (125, 145), (0, 1), (399, 400)])
def test_a_quotation_of_a_long_turn_is_found_once_across_its_passages(
    filled_client: Client, first: int, last: int
) -> None:
    wording = LONG_TURN.split()[first:last]
    (place,) = filled_client.check_quote(" ".join(wording)).places
    assert (place.id, place.text) == ("long", " ".join(wording))
    ends = f"{wording[0]} ... {wording[-1]}" if last - first > 1 else wording[0]
    assert filled_client.check_quote(ends).places == [place]
    made_up = " ".join([*wording, "never"])
    assert not filled_client.check_quote(made_up).found


def test_what_nobody_said_has_the_nearest_spans(filled_client: Client) -> None:
    check = filled_client.check_quote("I'd like my money now")
    assert (check.found, check.places, check.complete) == (False, [], True)
    best = check.nearest[0]
    assert "like my money" in best.text
    text = filled_client.open_document(best.id).text
    assert text[best.start : best.end] == best.text


def test_no_more_places_are_listed_than_asked_for(filled_client: Client) -> None:
    every = filled_client.check_quote("my money", places=3)
    assert (len(every.places), every.complete) == (3, True)
    some = filled_client.check_quote("my money", places=2)
    assert (some.places, some.complete) == (every.places[:2], False)


def test_a_deleted_document_is_not_quoted(filled_client: Client) -> None:
    assert filled_client.delete(["shop", "ticket"]) == 2
    assert not filled_client.check_quote("I'd like my money back").found
    filled_client.ingest([{"id": "long", "text": "I'd like my money back"}])
    assert list_texts(filled_client.check_quote("like my money")) == [("long", "like my money")]


@pytest.mark.parametrize(
    ("quotation", "message"),
    [
        ("", "the text is blank"),
        ("?! ... \u2026", r"the text '\?! ... \u2026' has no word: give what was said"),
        ("word " * 2000, "text has 10,000 characters: it may have at most 5,000"),
        (7, "text is 7: it must be a string"),
    ],
)
def test_what_is_no_quotation_is_one_error(quotation: Any, message: str) -> None:
    with connect("memory:") as client, pytest.raises(UsageError, match=message):
        client.check_quote(quotation)


def test_a_document_that_cannot_be_read_is_told_of(monkeypatch: pytest.MonkeyPatch) -> None:
    with connect("memory:") as client:
        client.ingest(DOCUMENTS)
        fetch = client.backend.fetch_contents

        def damage(index: str, keys: Sequence[Key]) -> dict[Key, PassageContent]:
            fault = Fault("text", "it was changed")
            return {
                key: replace(content, fault=fault) if key[0] == "shop" else content
                for key, content in fetch(index, keys).items()
            }

        monkeypatch.setattr(client.backend, "fetch_contents", damage)
        check = client.check_quote("like my money")
        assert list_texts(check) == [("ticket", "like my money")]
        assert not check.complete
        assert "delete --index calls -- shop" in check.warnings[0]


def test_a_missing_index_is_an_error(client: Client) -> None:
    with pytest.raises(IndexMissingError, match="calls"):
        client.check_quote("my money")


def test_random_quotations_stand_where_they_were_put(client: Client) -> None:
    draw = np.random.default_rng(55)

    def write(chosen: Sequence[str]) -> str:
        return " ".join(draw.choice(WRITTEN[word]) for word in chosen)

    def choose(size: int) -> list[str]:
        return [str(word) for word in draw.choice(list(WRITTEN), size)]

    turns = [choose(size) for size in draw.choice((5, 20, 250), 20)]
    client.ingest({"id": str(number), "text": write(turn)} for number, turn in enumerate(turns))
    found = 0
    for _ in range(60):
        size, turn = int(draw.integers(1, 5)), turns[draw.integers(len(turns))]
        start = draw.integers(len(turn) - size)
        quoted = turn[start : start + size] if draw.integers(2) else choose(size)
        check = client.check_quote(write(quoted), places=10_000)
        expected = Counter({str(n): count(turn, quoted) for n, turn in enumerate(turns)})
        assert Counter(place.id for place in check.places) == +expected
        found += check.found
    assert 20 < found < 60


def count(turn: Sequence[str], quoted: Sequence[str]) -> int:
    """Return how often words stand in a turn in sequence, without overlaps."""
    places, start = 0, 0
    while start <= len(turn) - len(quoted):
        stands = turn[start : start + len(quoted)] == quoted
        places, start = places + stands, start + (len(quoted) if stands else 1)
    return places
