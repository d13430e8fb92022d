"""Highlights: the words that made a passage's BM25 score, by their true offsets, on every backend."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from typing import Any

import pytest

from hybrid_search import connect
from hybrid_search.client import Client
from hybrid_search.results import Hit
from tests.offset_corpus import TEXTS

TALK = "and then we talked about the weather and the price of bread in town for a while " * 8

CALLS: list[dict[str, Any]] = [
    {"id": "kettle", "text": "The kettle never worked. A kettle! I want my money back for this KETTLE."},
    {"id": "refund", "text": "Refund request for order 17. A refund was promised; the refund never came."},
    {"id": "forms", "text": "They refunded nothing, refunds are refused, refunding is a word."},
    {"id": "card", "text": "My card was stolen on the train, block it."},
    {
        "id": "long",
        "turns": [
            {"speaker": "customer", "text": f"My router shows a red light. {TALK}"},
            {"speaker": "agent", "text": f"I see the router here. {TALK}"},
            {"speaker": "customer", "text": "And a refund, for the days without internet."},
        ],
    },
    {"id": "emoji", "text": "👩\u200d👩\u200d👧\u200d👦 😀😀 a refund👍🏽! 🇩🇪 Refund, 𝓡𝓮𝓯𝓾𝓷𝓭 𐐷 refund."},
    {"id": "windows", "text": "\r\n\r\n \t The refund\r\nof order 17,\r\n\r\nthe refund.\r\n\t "},
    {"id": "separators", "text": "first refund\u2029second refund\u2028third\u0085refund\x0bfourth\x1f refund\x0c\n\n\nlast\u00a0refund\u3000"},
    {"id": "marks", "text": "Zu\u0308rich cafe\u0301 refund na\u00efve, e\u0301tat: refund."},
    {"id": "tags", "text": "<em>refund</em> &lt;b&gt;refund&lt;/b&gt; <mark>red</mark> &amp; &#233; <refund>"},
    {"id": "alike", "text": "\ue000refund\ue001 ([ refund ]) \ue000deadbeefdeadbeef(refund\ue000deadbeefdeadbeef[ refund"},
    {"id": "dashes", "text": "refund-request, refund_request refund/request refund.request refund'request refund"},
    {"id": "chinese", "text": "我想要退款。订单号是12345，退款！"},
    {"id": "twice", "text": "refund refund refund"},
]
FULL = {call["id"]: call.get("text") or "\n".join(turn["text"] for turn in call["turns"]) for call in CALLS}


@pytest.fixture(scope="module")
def filled(module_url: str, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Client]:
    """`CALLS` on each backend, and hard texts. Only to be read."""
    with connect(module_url) as client:
        rejects = tmp_path_factory.mktemp("filled") / "rejected.jsonl"
        assert client.ingest(CALLS, rejects=rejects).failed == 0
        assert client.ingest(({"id": name, "text": text} for name, text in TEXTS.items()), index="hard", rejects=rejects).failed == 0
        yield client


def asked(client: Client, phrase: str | list[str], **more: Any) -> dict[str, Hit]:
    return {hit.id: hit for hit in client.query(phrase, highlight=True, size=100, **more)}


def words(hit: Hit, text: str) -> list[str]:
    assert hit.highlights is not None
    return [text[start:end] for start, end in hit.highlights]


@pytest.mark.parametrize("alpha", [0.0, 0.5, 1.0])
def test_highlights_are_the_words_of_the_phrase_in_the_text(filled: Client, alpha: float) -> None:
    found = asked(filled, "kettle money", alpha=alpha)
    assert words(found["kettle"], FULL["kettle"]) == ["kettle", "kettle", "money", "KETTLE"]


@pytest.mark.parametrize("name", ["emoji", "windows", "separators", "marks", "tags", "twice", "refund"])
def test_every_place_of_a_word_is_given_and_no_other(filled: Client, name: str) -> None:
    assert asked(filled, "refund")[name].highlights == [match.span() for match in re.finditer("refund", FULL[name], re.IGNORECASE)]


PHRASES = {
    "calls": ["refund", "refund order 17 café", "naïve Zürich état", "退款", "12345", "the never", "red light router"],
    "hard": ["refund order", "e\u0301tait café", "退款 返金 환불", "please 12345", "the and 50 a", "कृपया استرداد", "İstanbul straße"],
}
"""By index."""


@pytest.mark.parametrize("index", PHRASES)
def test_highlighted_words_match_alone_and_nothing_else_does(filled: Client, index: str) -> None:
    """Each highlighted word, as a document of its own, has a BM25 score for its phrase; what is left of a passage without them has none."""
    taken_apart = [(phrase, piece, good) for phrase in PHRASES[index] for piece, good in pieces(filled, phrase, index)]
    documents = [{"id": str(number), "text": piece, "phrase": phrase} for number, (phrase, piece, _) in enumerate(taken_apart)]
    filled.ingest(documents, index="taken-apart", rejects="taken-apart.jsonl")
    for phrase in PHRASES[index]:
        found = filled.query(phrase, index="taken-apart", where={"phrase": phrase}, alpha=0.0, size=1000)
        assert {hit.id for hit in found} == {str(number) for number, (of, _, good) in enumerate(taken_apart) if good and of == phrase}, phrase
    filled.drop("taken-apart")
    assert len({phrase for phrase, _, good in taken_apart if good}) >= 5  # some find nothing where no words are cut out of Chinese


def pieces(client: Client, phrase: str, index: str) -> Iterator[tuple[str, bool]]:
    """Every highlighted word, which is good, and what is left of each passage without them, which is not."""
    texts = {"calls": FULL, "hard": TEXTS}[index]
    for name, hit in asked(client, phrase, index=index).items():
        assert bool(hit.highlights) == (hit.bm25 > 0), name
        yield from ((word, True) for word in words(hit, texts[name]))
        rest = without(hit)
        if rest.strip():
            yield rest, False


def without(hit: Hit) -> str:
    """The passage with a blank for each highlighted word."""
    text = hit.text
    for start, end in sorted(hit.highlights or [], reverse=True):
        text = f"{text[: start - hit.start]} {text[end - hit.start :]}"
    return text


def test_stemmed_forms_are_highlighted_where_they_score(filled: Client) -> None:
    hit = asked(filled, "refund")["forms"]
    stems = hit.bm25 > 0  # Elasticsearch's analyzer "standard" does not
    assert words(hit, FULL["forms"]) == (["refunded", "refunds", "refunding"] if stems else [])
    assert words(asked(filled, "refunds")["forms"], FULL["forms"]) == (["refunded", "refunds", "refunding"] if stems else ["refunds"])


def test_where_only_spans_matched_nothing_is_highlighted(filled: Client) -> None:
    found = asked(filled, "purloined plastic", alpha=1.0)
    assert found["card"].spans
    assert {name: hit.highlights for name, hit in found.items()} == {name: [] for name in FULL}


def test_unasked_there_are_no_highlights(filled: Client) -> None:
    hit = filled.query("refund").hits[0]
    assert hit.highlights is None
    assert "highlights" not in hit.to_dict()


def test_the_json_form_has_pairs_of_offsets(filled: Client) -> None:
    (hit,) = filled.query("refund", where={"id": "twice"}, highlight=True)
    assert json.loads(json.dumps(hit.to_dict()))["highlights"] == [[0, 6], [7, 13], [14, 20]]
    (hit,) = filled.query("xylophone", where={"id": "twice"}, highlight=True)
    assert json.loads(json.dumps(hit.to_dict()))["highlights"] == []


def test_each_passage_has_its_own_by_its_place_in_the_document(filled: Client) -> None:
    text = FULL["long"]
    hits = filled.query("router refund", highlight=True, where={"id": "long"}, group_by="passage").hits
    assert {hit.passage: words(hit, text) for hit in hits} == {0: ["router"], 1: ["router"], 2: ["refund"]}
    for hit in hits:
        assert all(hit.start <= start < end <= hit.start + len(hit.text) for start, end in hit.highlights or [])


def test_a_document_has_those_of_its_best_passage(filled: Client) -> None:
    (hit,) = filled.query("I see the router", highlight=True, where={"id": "long"}, alpha=0.0)
    best, *_ = filled.query("I see the router", highlight=True, where={"id": "long"}, alpha=0.0, group_by="passage")
    assert (hit.passage, hit.highlights) == (best.passage, best.highlights)
    assert "router" in words(hit, FULL["long"])


def test_of_several_phrases_the_one_that_found_the_hit_is_highlighted(filled: Client) -> None:
    found = asked(filled, ["money back kettle", "stolen card", "refund"])
    assert words(found["kettle"], FULL["kettle"]) == ["kettle", "kettle", "money", "back", "KETTLE"]
    assert words(found["card"], FULL["card"]) == ["card", "stolen"]
    assert words(found["twice"], FULL["twice"]) == ["refund"] * 3


def test_a_phrase_given_twice_is_highlighted_as_once(filled: Client) -> None:
    assert asked(filled, ["refund", "refund"]) == asked(filled, "refund")


@pytest.mark.parametrize(
    "phrase", ["<em>refund</em>", "refund AND NOT kettle", 'text:"refund"*', "refund\\", "((refund", "refund OR", "re?und refund~2"]
)
def test_a_phrase_that_looks_like_a_query_marks_its_words(filled: Client, phrase: str) -> None:
    assert words(asked(filled, phrase)["twice"], FULL["twice"]) == ["refund"] * 3


def test_filters_sorting_and_pages_change_no_highlight(filled: Client) -> None:
    every = asked(filled, "refund order")
    changes: list[dict[str, Any]] = [{"where": {"id": list(FULL)}}, {"sort": "-id"}, {"offset": 3}, {"spans": 0}, {"fusion": "rrf"}]
    for more in changes:
        some = asked(filled, "refund order", **more)
        assert some
        assert {name: hit.highlights for name, hit in some.items()} == {name: every[name].highlights for name in some}
