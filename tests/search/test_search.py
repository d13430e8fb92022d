"""A query from phrase to hits, on every backend: legs, grouping, pages, filters, spans, errors."""

from __future__ import annotations

import json
import math
from collections.abc import Callable, Iterator
from itertools import pairwise
from operator import itemgetter
from statistics import mean, stdev
from typing import Any

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from hybrid_search import connect
from hybrid_search.client import Client
from hybrid_search.encoder import SHIPPED
from hybrid_search.errors import HybridSearchError, UsageError
from hybrid_search.search import calibration
from hybrid_search.search.fusion import FUSIONS
from hybrid_search.search.hit import Hit

FILLER = (
    "and then we talked for a while about the weather and the football and the price of bread in "
    "town "
) * 4

CALLS: list[dict[str, Any]] = [
    {"id": "kettle", "sector": "shop", "minutes": 3, "solved": True, "date": "2026-01-10",
     "tags": ["money", "late"],
     "customer": {"tier": "gold", "orders": [{"n": 1}, {"n": 2}]},
     "turns": [
         {"speaker": "agent", "text": "Good morning, Kettle & Co., how can I help you?",
          "start_ms": 0, "end_ms": 2500},
         {"speaker": "customer", "text": "The kettle never worked and I want my money back.",
          "start_ms": 2600, "end_ms": 6000, "channel": {"side": "left"}, "mood": "angry"},
         {"speaker": "agent", "text": "Of course, I'll put the payment back on your card today.",
          "start_ms": 6100, "end_ms": 9000}]},
    {"id": "refund", "sector": "shop", "minutes": 12, "date": "2026-02-01", "tags": ["money"],
     "customer": {"tier": "silver"},
     "text": "Refund request for order 17. A refund was promised; the refund never came."},
    {"id": "locked", "sector": "bank", "minutes": 7.5, "solved": False, "date": "2026-02-20",
     "customer": {"tier": "gold"},
     "text": "🔒 It says too many attempts, and now I can't get into my account at all — "
     "naïve of me!"},
    {"id": "card", "sector": "bank", "minutes": 12, "solved": True, "date": "2026-03-05",
     "text": "My card was stolen on the train, block it."},
    {"id": "long", "sector": "telecom", "minutes": 45, "date": "2026-03-06",
     "turns": [
         {"speaker": "customer", "text": f"My router shows a red light. {FILLER}"},
         {"speaker": "agent", "text": f"I see the router here. {FILLER}"},
         {"speaker": "customer",
          "text": "And I'd like a refund for the days without internet."}]},
    {"id": "german", "sector": "telecom",
     "text": "Ich möchte mein Geld zurück, die Straße ist seit Tagen ohne Netz."},
    {"id": "thanks", "text": "Thank you, that was all. Goodbye."},
]  # fmt: skip
TEXTS = {
    call["id"]: call.get("text") or "\n".join(turn["text"] for turn in call["turns"])
    for call in CALLS
}


@pytest.fixture(scope="module")
def filled_client(module_url: str, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Client]:
    """`CALLS` on each backend. Only to be read."""
    with connect(module_url) as client:
        summary = client.ingest(CALLS, rejects=tmp_path_factory.mktemp("filled") / "rejected.jsonl")
        assert (summary.documents, summary.failed) == (len(CALLS), 0)
        yield client


def ids(hits: list[Hit]) -> list[str]:
    return [hit.id for hit in hits]


def scores(client: Client, phrase: str | list[str], **options: Any) -> dict[tuple[str, int], float]:
    return {(hit.id, hit.passage): hit.score for hit in client.query(phrase, **options)}


def is_subset(subset: dict[tuple[str, int], float], superset: dict[tuple[str, int], float]) -> bool:
    """Return whether `superset` holds all of `subset` with the same scores.

    Scores may differ by the rounding of sums in another order.
    """
    return all(
        key in superset and score == pytest.approx(superset[key], abs=1e-6)
        for key, score in subset.items()
    )


# The two legs


def test_the_words_of_a_phrase_and_its_meaning_are_both_found(filled_client: Client) -> None:
    assert ids(filled_client.query("refund request", alpha=0.0).hits)[0] == "refund"
    assert "kettle" in ids(filled_client.query("refund request", alpha=0.5).hits)
    assert filled_client.query("I cannot log in", alpha=1.0).hits[0].id == "locked"


def test_at_alpha_0_only_bm25_is_asked(filled_client: Client) -> None:
    result = filled_client.query("refund", alpha=0.0, spans_by="cosine")
    assert result.plan["legs"] == ["bm25"]
    assert set(ids(result.hits)) == {"refund", "long"}
    assert result.total == 2
    assert all(hit.spans and hit.cosine == pytest.approx(hit.spans[0].cosine) for hit in result)


def test_at_alpha_1_only_spans_are_asked(filled_client: Client) -> None:
    result = filled_client.query("refund", alpha=1.0)
    assert result.plan["legs"] == ["spans"]
    assert result.total == len(CALLS)
    span_scores = [hit.cosine + hit.prior for hit in result]
    assert span_scores == sorted(span_scores, reverse=True)
    assert {hit.id for hit in result if hit.bm25 > 0} == {"refund", "long"}


def test_ranks_count_from_1_by_the_scores_of_their_leg(filled_client: Client) -> None:
    hits = filled_client.query("refund", group_by="passage").hits
    assert sorted(hit.bm25_rank for hit in hits if hit.bm25_rank) == [1, 2]
    assert all((hit.bm25_rank is None) == (hit.bm25 == 0) for hit in hits)
    by_rank = sorted(hits, key=lambda hit: hit.cosine_rank or 0)
    assert [hit.cosine_rank for hit in by_rank] == list(range(1, len(hits) + 1))
    span_scores = [hit.cosine + hit.prior for hit in by_rank]
    assert span_scores == sorted(span_scores, reverse=True)


def test_there_is_no_rank_beyond_the_window(sample: Client) -> None:
    result = sample.query("I want to cancel my contract", group_by="passage", size=60, offset=40)
    assert result.plan["window"] == 100
    everything = sample.query("I want to cancel my contract", group_by="passage", size=100)
    assert everything.total == 100
    assert all(
        1 <= rank <= 100 for hit in everything for rank in (hit.bm25_rank, hit.cosine_rank) if rank
    )
    assert any(hit.bm25_rank is None for hit in everything)


# Offsets and spans


@pytest.mark.parametrize("group_by", ["document", "passage"])
@pytest.mark.parametrize(
    "phrase", ["money back", "locked out of the account", "router", "Straße", "Thank you"]
)
def test_every_offset_is_true(filled_client: Client, phrase: str, group_by: str) -> None:
    for hit in filled_client.query(phrase, spans=20, group_by=group_by):
        text = TEXTS[hit.id]
        assert text[hit.start : hit.start + len(hit.text)] == hit.text
        for span in hit.spans:
            assert text[span.start : span.end] == span.text
            turns = next(call for call in CALLS if call["id"] == hit.id).get(
                "turns", [{"text": text}]
            )
            turn = turns[span.turn]
            assert turn["text"][span.turn_start : span.turn_end] == span.text
            assert span.speaker == turn.get("speaker")
            if "start_ms" in turn:  # interpolated by characters
                rate = (turn["end_ms"] - turn["start_ms"]) / len(turn["text"])
                places = (span.turn_start, span.turn_end)
                times = [round(turn["start_ms"] + place * rate) for place in places]
                assert [span.start_ms, span.end_ms, span.times] == [*times, "interpolated"]
            else:
                assert (span.start_ms, span.end_ms, span.times) == (None, None, None)


def test_the_other_keys_of_a_turn_come_back_with_its_spans(filled_client: Client) -> None:
    spans = [span for hit in filled_client.query("money back", spans=5) for span in hit.spans]
    others = {span.speaker: span.turn_metadata for span in spans if span.start_ms is not None}
    assert others["customer"] == {"channel": {"side": "left"}, "mood": "angry"}
    assert others["agent"] is None
    dicts = [span.to_dict() for span in spans]
    assert {"turn_metadata" in span for span in dicts} == {True, False}


def test_the_span_is_the_words_that_match(filled_client: Client) -> None:
    hit = next(hit for hit in filled_client.query("red light") if hit.id == "long")
    assert "red light" in hit.spans[0].text
    assert hit.spans[0].speaker == "customer"


def test_spans_are_best_first_and_none_overlaps_another(filled_client: Client) -> None:
    for hit in filled_client.query("money", spans=10):
        scores = [span.cosine + span.prior for span in hit.spans]
        assert scores == sorted(scores, reverse=True)
        places = sorted((span.start, span.end) for span in hit.spans)
        assert all(end <= start for (_, end), (start, _) in pairwise(places))


def test_a_document_shows_spans_of_all_its_passages(filled_client: Client) -> None:
    hit = next(hit for hit in filled_client.query("router and refund", spans=6) if hit.id == "long")
    assert {span.turn for span in hit.spans} == {0, 1, 2}


@pytest.mark.parametrize("spans", [0, 1, 2])
def test_so_many_spans_are_shown_as_were_asked_for(filled_client: Client, spans: int) -> None:
    result = filled_client.query("money back", spans=spans, spans_by="cosine")
    assert {len(hit.spans) for hit in result} == {spans}
    one_each = filled_client.query("money back", spans_by="cosine")
    assert [hit.score for hit in result] == [hit.score for hit in one_each]


# Documents and passages


def test_a_hits_numbers_are_those_of_its_best_passage(filled_client: Client) -> None:
    best: dict[str, Hit] = {}
    for hit in filled_client.query("refund for my router", group_by="passage"):
        best.setdefault(hit.id, hit)
    for hit in filled_client.query("refund for my router"):
        passage = best[hit.id]
        assert (hit.passage, hit.score, hit.bm25, hit.cosine) == (
            passage.passage,
            passage.score,
            passage.bm25,
            passage.cosine,
        )
        assert (hit.bm25_rank, hit.cosine_rank, hit.text, hit.start) == (
            passage.bm25_rank,
            passage.cosine_rank,
            passage.text,
            passage.start,
        )


def test_documents_are_counted_once_and_passages_each_the_best_first(filled_client: Client) -> None:
    documents, passages = (
        filled_client.query("refund for my router", group_by=group)
        for group in ("document", "passage")
    )
    assert len(set(ids(documents.hits))) == len(documents) == documents.total == len(CALLS)
    assert (
        len({(hit.id, hit.passage) for hit in passages})
        == len(passages)
        == passages.total
        == filled_client.describe().passages
    )
    assert sorted(hit.passage for hit in passages if hit.id == "long") == [0, 1, 2]
    for result in (documents, passages):
        hit_scores = [hit.score for hit in result]
        assert hit_scores == sorted(hit_scores, reverse=True)


def test_the_metadata_comes_with_the_hit(filled_client: Client) -> None:
    hit = next(hit for hit in filled_client.query("kettle") if hit.id == "kettle")
    assert hit.metadata == {
        key: value for key, value in CALLS[0].items() if key not in ("id", "turns")
    }


# Size and pages


def test_a_page_behind_the_last_hit_is_empty(filled_client: Client) -> None:
    result = filled_client.query("refund", offset=50)
    assert (result.hits, result.total) == ([], len(CALLS))
    assert filled_client.query("refund", size=10_000).total == len(CALLS)
    assert filled_client.query("refund", size=10_000, offset=9_999).hits == []


@pytest.mark.parametrize("alpha", [0.0, 0.3, 1.0])
def test_size_changes_no_score(sample: Client, alpha: float) -> None:
    sizes = [
        scores(sample, "I was charged twice", size=size, alpha=alpha, group_by="passage", spans=0)
        for size in (1, 30, 150, 1000)
    ]
    for smaller in sizes[:-1]:
        assert is_subset(smaller, sizes[-1])
    assert [len(page_scores) for page_scores in sizes[:2]] == [1, 30]


def test_hits_under_the_least_score_are_left_out_and_not_counted(filled_client: Client) -> None:
    everything = filled_client.query("refund request")
    least = everything.hits[2].score
    result = filled_client.query("refund request", min_score=least)
    # spans of passages under it too: it chooses among hits, and changes none
    assert result.hits == everything.hits[:3]
    assert result.total == 3
    assert filled_client.query("refund request", min_score=2.0).hits == []


# Filters


@pytest.mark.parametrize(
    ("where", "expected"),
    [
        ({"sector": "bank"}, {"locked", "card"}),
        ({"sector": ["bank", "telecom"]}, {"locked", "card", "long", "german"}),
        ({"sector": []}, set()),
        ({"sector": "insurance"}, set()),
        ({"tags": "money"}, {"kettle", "refund"}),
        ({"tags": ["late", "early"]}, {"kettle"}),
        ({"minutes": 12}, {"refund", "card"}),
        ({"minutes": "7.5"}, {"locked"}),
        ({"minutes": {"gte": 7.5, "lt": 45}}, {"refund", "locked", "card"}),
        ({"date": {"gt": "2026-02-01", "lte": "2026-03-05"}}, {"locked", "card"}),
        ({"solved": True}, {"kettle", "card"}),
        ({"solved": "false"}, {"locked"}),
        ({"customer.tier": "gold"}, {"kettle", "locked"}),
        ({"customer.orders.n": 2}, {"kettle"}),
        ({"id": "thanks"}, {"thanks"}),
        ({"id": ["thanks", "german", "nobody"]}, {"thanks", "german"}),
        ({"sector": "shop", "customer.tier": "gold"}, {"kettle"}),
        ({"sector": "shop", "solved": False}, set()),
        ({}, {call["id"] for call in CALLS}),
    ],
)
def test_a_filter_leaves_what_it_says(
    filled_client: Client, where: dict[str, Any], expected: set[str]
) -> None:
    result = filled_client.query("refund my card", where=where)
    assert set(ids(result.hits)) == expected
    assert result.total == len(expected)


def test_a_filter_changes_no_score(filled_client: Client) -> None:
    everything = scores(filled_client, "refund my card")
    few = scores(filled_client, "refund my card", where={"sector": "shop"})
    assert len(few) == 2
    assert is_subset(few, everything)


def test_a_filter_holds_at_both_ends_of_alpha(filled_client: Client) -> None:
    assert ids(filled_client.query("refund", where={"sector": "telecom"}, alpha=0.0).hits) == [
        "long"
    ]
    assert set(ids(filled_client.query("refund", where={"sector": "telecom"}, alpha=1.0).hits)) == {
        "long",
        "german",
    }


def test_a_filter_by_very_many_ids_is_answered(filled_client: Client) -> None:
    unknown_ids = [f"nobody-{number}" for number in range(40_000)]
    assert ids(
        filled_client.query("refund request", where={"id": [*unknown_ids, "refund"]}).hits
    ) == ["refund"]


# Several phrases, a context, a closer look


@pytest.mark.parametrize("alpha", [0.0, 0.5, 1.0])
def test_of_several_phrases_each_passage_has_the_best(filled_client: Client, alpha: float) -> None:
    phrases = ["refund request", "stolen card", "locked out"]
    alone = [scores(filled_client, phrase, alpha=alpha, group_by="passage") for phrase in phrases]
    best = {
        key: max(phrase_scores.get(key, 0.0) for phrase_scores in alone)
        for phrase_scores in alone
        for key in phrase_scores
    }
    together = filled_client.query(phrases, alpha=alpha, group_by="passage")
    assert {(hit.id, hit.passage): hit.score for hit in together} == pytest.approx(best, abs=1e-6)
    assert together.plan["phrase"] == phrases
    assert [hit.score for hit in together] == pytest.approx(
        sorted(best.values(), reverse=True), abs=1e-6
    )


@pytest.mark.parametrize("phrases", [["refund"], ["refund", "refund"]])
def test_one_phrase_in_a_list_is_that_phrase(filled_client: Client, phrases: list[str]) -> None:
    assert filled_client.query(phrases).hits == filled_client.query("refund").hits


def test_a_context_says_in_which_sense_a_phrase_is_meant(filled_client: Client) -> None:
    plain, card, game = (
        filled_client.query("card", context=context, alpha=1.0)
        for context in (None, "a stolen bank card", "a card game at a party")
    )
    assert len({result.hits[0].cosine for result in (plain, card, game)}) == 3
    assert {hit.id: hit.bm25 for hit in plain} == {hit.id: hit.bm25 for hit in card}


def test_isolated_spans_keep_their_offsets_and_are_judged_by_their_own_words(
    filled_client: Client,
) -> None:
    (hit,) = filled_client.query("money back", where={"id": "kettle"}, spans=10)
    (isolated,) = filled_client.query(
        "money back", where={"id": "kettle"}, spans=10, refine="isolate"
    )
    before, after = (
        {(span.start, span.end, span.text, span.turn): span.cosine for span in variant.spans}
        for variant in (hit, isolated)
    )
    assert set(after) == set(before)
    assert after != before
    assert list(after.values()) == sorted(after.values(), reverse=True)
    for span in isolated.spans:
        # a batch of another make-up moves an int8 model's vectors a little
        assert span.cosine == pytest.approx(
            filled_client.phrase_similarity("money back", span.text), abs=0.05
        )


def test_isolated_spans_change_neither_hits_nor_scores(filled_client: Client) -> None:
    plain, isolated = (
        filled_client.query("money back", refine=refine) for refine in (None, "isolate")
    )
    assert [(hit.id, hit.score, hit.cosine) for hit in isolated] == [
        (hit.id, hit.score, hit.cosine) for hit in plain
    ]
    assert all(len(hit.spans) <= 3 for hit in isolated)
    assert all(
        hit.spans == [] for hit in filled_client.query("money back", refine="isolate", spans=0)
    )


@pytest.mark.parametrize("alpha", [0.0, 0.25, 1.0])
@pytest.mark.parametrize("fusion", FUSIONS)
def test_the_explanation_adds_up(filled_client: Client, fusion: str, alpha: float) -> None:
    for hit in filled_client.query("refund request", fusion=fusion, alpha=alpha, explain=True):
        explanation = hit.explanation
        assert explanation is not None
        assert itemgetter("fusion", "alpha", "score")(explanation) == (fusion, alpha, hit.score)
        assert alpha * explanation["spans"] + (1 - alpha) * explanation["bm25"] == pytest.approx(
            hit.score, abs=1e-12
        )


@pytest.mark.parametrize("alpha", [0.0, 0.3, 1.0])
def test_the_default_score_can_be_computed_from_the_explanation_alone(
    filled_client: Client, alpha: float
) -> None:
    """1 / (1 + e^(-slope * (cosine + prior - midpoint))), bm25 / (bm25 + saturation * terms)."""
    fitted = calibration.load(SHIPPED, filled_client.encoder.info.precision, kind=calibration.SCORE)
    for hit in filled_client.query(
        "a refund, the router and a REFUND", alpha=alpha, explain=True, group_by="passage"
    ):
        explanation = json.loads(json.dumps(hit.explanation))
        raw, maps = explanation["raw"], explanation["calibration"]
        assert {name: getattr(fitted, name) for name in maps} == maps
        assert (raw["bm25"], raw["cosine"], raw["prior"], raw["terms"]) == (
            hit.bm25,
            hit.cosine,
            hit.prior,
            5,
        )  # a, refund, the, router, and
        assert explanation["ranks"] == {
            "bm25": hit.bm25_rank,
            "cosine": hit.cosine_rank,
            "window": 100,
        }
        bm25 = raw["bm25"] / (raw["bm25"] + maps["saturation"] * raw["terms"])
        span_score = raw["cosine"] + raw["prior"]
        spans = 1 / (1 + math.exp(-maps["slope"] * (span_score - maps["midpoint"])))
        assert (explanation["bm25"], explanation["spans"]) == pytest.approx((bm25, spans), abs=1e-9)
        assert explanation["alpha"] * spans + (1 - explanation["alpha"]) * bm25 == pytest.approx(
            hit.score, abs=1e-9
        )


SCALES: dict[str, Callable[[float, list[float]], float]] = {
    "min_max": lambda score, leg: (score - min(leg)) / (max(leg) - min(leg)),
    "l2": lambda score, leg: score / math.sqrt(sum(value * value for value in leg)),
    "z_score": lambda score, leg: (score - mean(leg)) / stdev(leg),
}


@pytest.mark.parametrize("fusion", SCALES)
def test_a_score_scaled_by_its_list_can_be_computed_from_the_explanations_of_all(
    filled_client: Client, fusion: str
) -> None:
    hits = filled_client.query(
        "refund router", fusion=fusion, alpha=0.3, explain=True, group_by="passage", size=100
    ).hits
    raws = [hit.explanation["raw"] for hit in hits if hit.explanation]
    assert len(raws) == filled_client.describe().passages
    bm25 = [raw["bm25"] for raw in raws]
    spans = [raw["cosine"] + raw["prior"] for raw in raws]
    for hit, lexical_score, span_score in zip(hits, bm25, spans, strict=True):
        lexical, semantic = SCALES[fusion](lexical_score, bm25), SCALES[fusion](span_score, spans)
        assert hit.score == pytest.approx(0.3 * semantic + 0.7 * lexical, abs=1e-6)


def test_a_score_of_ranks_can_be_computed_from_the_explanation(filled_client: Client) -> None:
    for hit in filled_client.query("refund router", fusion="rrf", alpha=0.3, explain=True):
        assert hit.explanation is not None
        lexical, semantic = (
            1 / (60 + rank) if rank else 0
            for rank in (hit.explanation["ranks"]["bm25"], hit.explanation["ranks"]["cosine"])
        )
        assert hit.score == pytest.approx(0.3 * semantic + 0.7 * lexical)


def test_each_of_several_phrases_is_explained_by_its_own_terms(filled_client: Client) -> None:
    explanations = {
        hit.id: hit.explanation
        for hit in filled_client.query(["stolen card", "where is the red light"], explain=True)
        if hit.explanation
    }
    assert (explanations["card"]["raw"]["terms"], explanations["long"]["raw"]["terms"]) == (2, 5)


def test_nothing_is_explained_unasked(filled_client: Client) -> None:
    hit = filled_client.query("refund").hits[0]
    assert hit.explanation is None
    assert "explanation" not in hit.to_dict()


def test_the_plan_says_what_ran(filled_client: Client) -> None:
    plan = filled_client.query("refund", alpha=0.25, size=150, fusion="rrf").plan
    expected = {
        "phrase": "refund",
        "index": "calls",
        "alpha": 0.25,
        "fusion": "rrf",
        "legs": ["bm25", "spans"],
        "window": 1000,
        "passages": filled_client.describe().passages,
        "model": filled_client.encoder.info.name,
        "precision": filled_client.encoder.info.precision,
    }
    assert {key: plan[key] for key in expected} == expected
    assert plan["milliseconds"] > 0
    assert json.dumps(dict(plan))


# What is refused


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"phrase": "\u200d\u200d"}, "has no word: give at least one"),
        ({"phrase": "refund \ud83d"}, "lone surrogate, U+D83D"),
        ({"group_by": "turn"}, "cannot sort, group or count by 'turn'"),
        (
            {"where": {"sektor": "bank"}},
            "no such field. Its fields: customer.orders.n, customer.tier, date, id, minutes, "
            "sector, solved, tags",
        ),
        ({"where": {"customer": "gold"}}, "cannot filter on 'customer'"),
        ({"where": {"minutes": "many"}}, "'minutes' by 'many': the field is a number"),
        ({"where": {"minutes": {"above": 1}}}, "use gt, gte, lt, lte"),
        ({"context": "nothing of it"}, "'nothing of it' does not contain the phrase 'refund'"),
        ({"index": "Calls"}, "index name 'Calls'"),
        ({"index": "../calls"}, "index name '../calls'"),
    ],
)
def test_what_cannot_be_asked_is_refused_in_one_line(
    filled_client: Client, options: dict[str, Any], message: str
) -> None:
    with pytest.raises(UsageError) as raised:
        filled_client.query(**{"phrase": "refund", **options})
    assert message in str(raised.value)
    assert "\n" not in str(raised.value)


def test_any_phrase_is_answered_or_refused_in_words(filled_client: Client) -> None:
    @settings(deadline=None, max_examples=20)
    @given(st.text(max_size=40), st.sampled_from([0.0, 0.5, 1.0]))
    @example("refund\0", 0.5)
    @example("a" * 5000, 0.0)
    @example("refund " * 700, 0.5)
    @example("ﷺ ﬁ Ǆ İ ß", 0.0)
    @example("\u0301\u0300", 0.5)
    def run_query(phrase: str, alpha: float) -> None:
        try:
            result = filled_client.query(phrase, alpha=alpha)
        except HybridSearchError as error:
            assert str(error)
            return
        assert all(
            0 <= hit.score <= 1 and hit.bm25 >= 0 and -1 <= hit.cosine <= 1 for hit in result
        )

    run_query()
