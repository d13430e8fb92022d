"""Highlights: the words that made a passage's BM25 score, by their true offsets."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from typing import Any

import pytest

from hybrid_search import connect
from hybrid_search.backends.index_options import DEFAULT_ANALYZER
from hybrid_search.client import Client
from hybrid_search.search.hit import Hit
from tests.helpers.offset_corpus import TEXTS

TALK = "and then we talked about the weather and the price of bread in town for a while " * 8

CALLS: list[dict[str, Any]] = [
    {
        "id": "kettle",
        "text": "The kettle never worked. A kettle! I want my money back for this KETTLE.",
    },
    {
        "id": "refund",
        "text": "Refund request for order 17. A refund was promised; the refund never came.",
    },
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
    {
        "id": "emoji",
        "text": "👩\u200d👩\u200d👧\u200d👦 😀😀 a refund👍🏽! 🇩🇪 Refund, 𝓡𝓮𝓯𝓾𝓷𝓭 𐐷 refund.",
    },
    {"id": "windows", "text": "\r\n\r\n \t The refund\r\nof order 17,\r\n\r\nthe refund.\r\n\t "},
    {
        "id": "separators",
        "text": "first refund\u2029second refund\u2028third\u0085refund\x0bfourth\x1f refund"
        "\x0c\n\n\nlast\u00a0refund\u3000",
    },
    {"id": "marks", "text": "Zu\u0308rich cafe\u0301 refund na\u00efve, e\u0301tat: refund."},
    {
        "id": "tags",
        "text": "<em>refund</em> &lt;b&gt;refund&lt;/b&gt; <mark>red</mark> &amp; &#233; <refund>",
    },
    {
        "id": "alike",
        "text": "\ue000refund\ue001 ([ refund ]) \ue000deadbeefdeadbeef(refund"
        "\ue000deadbeefdeadbeef[ refund",
    },
    {
        "id": "dashes",
        "text": "refund-request, refund_request refund/request refund.request "
        "refund'request refund",
    },
    {"id": "chinese", "text": "我想要退款。订单号是12345，退款！"},
    {"id": "twice", "text": "refund refund refund"},
    {"id": "letters", "text": "The cafe\u0301 by the oﬃce has ｆｕｌｌ cups."},
]
TEXTS_BY_ID = {
    call["id"]: call.get("text") or "\n".join(turn["text"] for turn in call["turns"])
    for call in CALLS
}


@pytest.fixture(scope="module")
def filled_client(module_url: str, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Client]:
    """`CALLS` on each backend, and hard texts. Only to be read."""
    with connect(module_url) as client:
        rejects = tmp_path_factory.mktemp("filled") / "rejected.jsonl"
        assert client.ingest(CALLS, rejects=rejects).failed == 0
        assert (
            client.ingest(
                ({"id": name, "text": text} for name, text in TEXTS.items()),
                index="hard",
                rejects=rejects,
            ).failed
            == 0
        )
        yield client


def hits_by_id(client: Client, phrase: str | list[str], **options: Any) -> dict[str, Hit]:
    return {hit.id: hit for hit in client.query(phrase, highlight=True, size=100, **options)}


def highlighted_words(hit: Hit, text: str) -> list[str]:
    assert hit.highlights is not None
    return [text[start:end] for start, end in hit.highlights]


@pytest.mark.parametrize("alpha", [0.0, 0.5, 1.0])
def test_highlights_are_the_words_of_the_phrase_in_the_text(
    filled_client: Client, alpha: float
) -> None:
    hits = hits_by_id(filled_client, "kettle money", alpha=alpha)
    assert highlighted_words(hits["kettle"], TEXTS_BY_ID["kettle"]) == [
        "kettle",
        "kettle",
        "money",
        "KETTLE",
    ]


@pytest.mark.parametrize(
    "name", ["emoji", "windows", "separators", "marks", "tags", "twice", "refund"]
)
def test_every_place_of_a_word_is_given_and_no_other(filled_client: Client, name: str) -> None:
    assert hits_by_id(filled_client, "refund")[name].highlights == [
        match.span() for match in re.finditer("refund", TEXTS_BY_ID[name], re.IGNORECASE)
    ]


def test_marks_ligatures_and_widths_of_letters_make_no_difference(filled_client: Client) -> None:
    options = getattr(filled_client.backend, "options", None)
    if options and options.analyzer != DEFAULT_ANALYZER:
        pytest.skip(f"this server's texts are cut by {options.analyzer}")
    text = TEXTS_BY_ID["letters"]
    for phrase in ("café office full", "cafe oﬃce ｆｕｌｌ", "CAFE\u0301 OFFICE FULL"):
        hit = hits_by_id(filled_client, phrase, alpha=0.0)["letters"]
        assert highlighted_words(hit, text) == ["cafe\u0301", "oﬃce", "ｆｕｌｌ"]


PHRASES = {
    "calls": [
        "refund",
        "refund order 17 café",
        "naïve Zürich état",
        "退款",
        "12345",
        "the never",
        "red light router",
    ],
    "hard": [
        "refund order",
        "e\u0301tait café",
        "退款 返金 환불",
        "please 12345",
        "the and 50 a",
        "कृपया استرداد",
        "İstanbul straße",
    ],
}
"""By index."""


@pytest.mark.parametrize("index", PHRASES)
def test_highlighted_words_match_alone_and_nothing_else_does(
    filled_client: Client, index: str
) -> None:
    """A highlighted word, as a document of its own, has a BM25 score for its phrase.

    The rest of a passage, without its highlighted words, has none.
    """
    labelled_pieces = [
        (phrase, piece, is_highlighted)
        for phrase in PHRASES[index]
        for piece, is_highlighted in split_by_highlights(filled_client, phrase, index)
    ]
    documents = [
        {"id": str(number), "text": piece, "phrase": phrase}
        for number, (phrase, piece, _) in enumerate(labelled_pieces)
    ]
    filled_client.ingest(documents, index="taken-apart", rejects="taken-apart.jsonl")
    for phrase in PHRASES[index]:
        hits = filled_client.query(
            phrase, index="taken-apart", where={"phrase": phrase}, alpha=0.0, size=1000
        )
        assert {hit.id for hit in hits} == {
            str(number)
            for number, (source_phrase, _, is_highlighted) in enumerate(labelled_pieces)
            if is_highlighted and source_phrase == phrase
        }, phrase
    filled_client.drop("taken-apart")
    # some find nothing where no words are cut out of Chinese
    assert len({phrase for phrase, _, is_highlighted in labelled_pieces if is_highlighted}) >= 5


def split_by_highlights(client: Client, phrase: str, index: str) -> Iterator[tuple[str, bool]]:
    """Yield every highlighted word with True, and the rest of each passage with False."""
    texts = {"calls": TEXTS_BY_ID, "hard": TEXTS}[index]
    for name, hit in hits_by_id(client, phrase, index=index).items():
        assert bool(hit.highlights) == (hit.bm25 > 0), name
        yield from ((word, True) for word in highlighted_words(hit, texts[name]))
        remainder = remove_highlights(hit)
        if remainder.strip():
            yield remainder, False


def remove_highlights(hit: Hit) -> str:
    """The passage with a blank for each highlighted word."""
    text = hit.text
    for start, end in sorted(hit.highlights or [], reverse=True):
        text = f"{text[: start - hit.start]} {text[end - hit.start :]}"
    return text


def test_stemmed_forms_are_highlighted_where_they_score(filled_client: Client) -> None:
    hit = hits_by_id(filled_client, "refund")["forms"]
    stems = hit.bm25 > 0  # Elasticsearch's analyzer "standard" does not
    assert highlighted_words(hit, TEXTS_BY_ID["forms"]) == (
        ["refunded", "refunds", "refunding"] if stems else []
    )
    assert highlighted_words(
        hits_by_id(filled_client, "refunds")["forms"], TEXTS_BY_ID["forms"]
    ) == (["refunded", "refunds", "refunding"] if stems else ["refunds"])


def test_where_only_spans_matched_nothing_is_highlighted(filled_client: Client) -> None:
    hits = hits_by_id(filled_client, "purloined plastic", alpha=1.0)
    assert hits["card"].spans
    assert {name: hit.highlights for name, hit in hits.items()} == {
        name: [] for name in TEXTS_BY_ID
    }


def test_unasked_there_are_no_highlights(filled_client: Client) -> None:
    hit = filled_client.query("refund").hits[0]
    assert hit.highlights is None
    assert "highlights" not in hit.to_dict()


def test_the_json_form_has_pairs_of_offsets(filled_client: Client) -> None:
    (hit,) = filled_client.query("refund", where={"id": "twice"}, highlight=True)
    assert json.loads(json.dumps(hit.to_dict()))["highlights"] == [[0, 6], [7, 13], [14, 20]]
    (hit,) = filled_client.query("xylophone", where={"id": "twice"}, highlight=True)
    assert json.loads(json.dumps(hit.to_dict()))["highlights"] == []


def test_each_passage_has_its_own_by_its_place_in_the_document(filled_client: Client) -> None:
    text = TEXTS_BY_ID["long"]
    hits = filled_client.query(
        "router refund", highlight=True, where={"id": "long"}, group_by="passage"
    ).hits
    assert {hit.passage: highlighted_words(hit, text) for hit in hits} == {
        0: ["router"],
        1: ["router"],
        2: ["refund"],
    }
    for hit in hits:
        assert all(
            hit.start <= start < end <= hit.start + len(hit.text)
            for start, end in hit.highlights or []
        )


def test_a_document_has_those_of_its_best_passage(filled_client: Client) -> None:
    (hit,) = filled_client.query(
        "I see the router", highlight=True, where={"id": "long"}, alpha=0.0
    )
    best, *_ = filled_client.query(
        "I see the router", highlight=True, where={"id": "long"}, alpha=0.0, group_by="passage"
    )
    assert (hit.passage, hit.highlights) == (best.passage, best.highlights)
    assert "router" in highlighted_words(hit, TEXTS_BY_ID["long"])


def test_of_several_phrases_the_one_that_found_the_hit_is_highlighted(
    filled_client: Client,
) -> None:
    hits = hits_by_id(filled_client, ["money back kettle", "stolen card", "refund"])
    assert highlighted_words(hits["kettle"], TEXTS_BY_ID["kettle"]) == [
        "kettle",
        "kettle",
        "money",
        "back",
        "KETTLE",
    ]
    assert highlighted_words(hits["card"], TEXTS_BY_ID["card"]) == ["card", "stolen"]
    assert highlighted_words(hits["twice"], TEXTS_BY_ID["twice"]) == ["refund"] * 3


@pytest.mark.parametrize(
    "phrase",
    [
        "<em>refund</em>",
        "refund AND NOT kettle",
        'text:"refund"*',
        "refund\\",
        "((refund",
        "refund OR",
        "re?und refund~2",
    ],
)
def test_a_phrase_that_looks_like_a_query_marks_its_words(
    filled_client: Client, phrase: str
) -> None:
    assert (
        highlighted_words(hits_by_id(filled_client, phrase)["twice"], TEXTS_BY_ID["twice"])
        == ["refund"] * 3
    )


def test_filters_sorting_and_pages_change_no_highlight(filled_client: Client) -> None:
    all_hits = hits_by_id(filled_client, "refund order")
    changes: list[dict[str, Any]] = [
        {"where": {"id": list(TEXTS_BY_ID)}},
        {"sort": "-id"},
        {"offset": 3},
        {"spans": 0},
        {"fusion": "rrf"},
    ]
    for options in changes:
        hits = hits_by_id(filled_client, "refund order", **options)
        assert hits
        assert {name: hit.highlights for name, hit in hits.items()} == {
            name: all_hits[name].highlights for name in hits
        }
