"""The forms of a result that a user sees: its text, its HTML, its JSON."""

from __future__ import annotations

import json
import re
from dataclasses import replace

import pytest

from hybrid_search.client import Client
from hybrid_search.search.hit import Hit, Span
from hybrid_search.search.result import Result
from hybrid_search.search.result_html import format_time

TEXT = "I want <b>my money</b> back & soon"
# 20 code points stand before the passage in its document; "my money" is 10..18 in the passage,
# "soon" 30..34
SPANS = [
    Span(50, 54, "soon", 0.25, 1, 30, 34, "customer", 10, 900),
    Span(30, 38, "my money", 0.75, 1, 10, 18, "customer", 10, 900),
]
HIT = Hit(
    "call-1", 2, 0.5, 1.25, 0.75, 1, None, {"sector": "bank", "tags": ["a"]}, SPANS, TEXT, start=20
)
RESULT = Result([HIT], 7, {"phrase": "refund"})

SPAN_KEYS = {
    *("start", "end", "text", "cosine", "prior", "turn", "turn_start", "turn_end"),
    *("speaker", "start_ms", "end_ms", "times"),
}
HIT_KEYS = {
    *("prior", "probability", "id", "passage", "score", "bm25", "cosine", "bm25_rank"),
    *("cosine_rank", "metadata", "spans"),
}


def test_the_printed_result_has_scores_ids_speakers_and_offsets() -> None:
    assert (list(RESULT), len(RESULT)) == ([HIT], 1)
    assert repr(Result([], 0, {"phrase": "refund"})) == "0 of 0 hits for 'refund'"
    assert repr(RESULT).splitlines() == [
        "1 of 7 hits for 'refund'",
        "  1. 0.500  call-1  (BM25 1.25, cosine 0.750)",
        "       0.250  customer: 'soon' [50:54]",
        "       0.750  customer: 'my money' [30:38]",
    ]


def with_probabilities(*probabilities: float | None) -> Result:
    hits = [replace(HIT, probability=probability) for probability in probabilities]
    return Result(hits, 7, {"phrase": "refund"})


def test_a_hit_is_likely_from_a_probability_of_a_fifth_on() -> None:
    assert with_probabilities(0.2, 0.19, 0.9).likely == 2
    assert with_probabilities(0.1).to_dict()["likely"] == 0
    assert with_probabilities().likely == 0
    assert with_probabilities(None, None).to_dict()["likely"] is None


NOTHING = "nothing likely found: the most probable of these has 0.19"


def test_that_nothing_likely_was_found_stands_above_the_hits() -> None:
    result = with_probabilities(0.125, 0.1875)
    first, second, hit, *_ = repr(result).splitlines()
    assert (first, second) == ("2 of 7 hits for 'refund'", NOTHING)
    assert hit == "  1. 0.500  call-1  (probability 0.12, BM25 1.25, cosine 0.750)"
    html = result._repr_html_()
    assert f"2 of 7 hits for &#x27;refund&#x27;<br>{NOTHING}</p>" in html
    assert "probability 0.12, BM25 1.25" in html
    for other in (with_probabilities(0.25, 0.5), with_probabilities(None), with_probabilities()):
        assert "nothing likely" not in repr(other)
        assert "nothing likely" not in other._repr_html_()


def test_a_printed_span_is_one_line_without_a_speaker_nobody_named() -> None:
    hit = replace(HIT, spans=[Span(0, 9, "one\n  two", 0.5)])
    assert repr(Result([hit], 1)).splitlines()[-1] == "       0.500  'one two' [0:9]"


def test_html_marks_the_spans_and_escapes_everything_else() -> None:
    html = replace(RESULT, hits=[replace(HIT, id="<script>")])._repr_html_()
    marked = re.sub(r" style='[^']*'", "", html)
    assert "I want &lt;b&gt;<mark>my money</mark>&lt;/b&gt; back &amp; <mark>soon</mark>" in marked
    assert "<b>&lt;script&gt;</b>" in marked
    assert "<script>" not in html


def test_html_escapes_what_a_span_holds() -> None:
    hit = replace(HIT, text='say "<i>"', spans=[Span(24, 29, '"<i>"', 0.5)])
    html = re.sub(r" style='[^']*'", "", Result([hit], 1)._repr_html_())
    assert "say <mark>&quot;&lt;i&gt;&quot;</mark>" in html


def test_html_blanks_what_would_turn_the_text_around() -> None:
    hit = replace(HIT, id="a\u202eb", text="abc\u2066def", spans=[])
    html = Result([hit], 1)._repr_html_()
    assert "abc def" in html
    assert not re.search("[\u202a-\u202e\u2066-\u2069]", html)


def test_html_of_several_phrases_tells_which_a_hit_fits() -> None:
    phrases = {"phrase": ["refund", "waiting on hold"]}
    html = Result([replace(HIT, phrase="refund")], 1, phrases)._repr_html_()
    assert "1 of 1 hits for &#x27;refund&#x27; or &#x27;waiting on hold&#x27;" in html
    assert "by &#x27;refund&#x27;" in html


@pytest.mark.parametrize(
    ("milliseconds", "text"), [(55_044, "00:55"), (3_599_999, "59:59"), (3_723_000, "1:02:03")]
)
def test_a_time_in_a_call_is_written_as_in_the_inspector(milliseconds: int, text: str) -> None:
    assert format_time(milliseconds) == text


def test_html_loads_nothing_and_runs_nothing() -> None:
    assert not re.search(r"https?:|url\(|src=|href=|<style|\bon\w+=", RESULT._repr_html_())


def test_json_has_exactly_the_documented_keys() -> None:
    json_result = RESULT.to_dict()
    assert set(json_result) == {"hits", "total", "likely", "plan"}
    assert set(json_result["hits"][0]) == HIT_KEYS
    assert all(set(span) == SPAN_KEYS for span in json_result["hits"][0]["spans"])
    assert set(SPANS[0].to_dict()) == SPAN_KEYS


def test_json_has_the_explanation_only_where_it_was_asked_for() -> None:
    explained = replace(HIT, explanation={"alpha": 0.5}).to_dict()
    assert set(explained) == {*HIT_KEYS, "explanation"}
    assert explained["explanation"] == {"alpha": 0.5}


@pytest.mark.parametrize("explain", [False, True])
def test_a_real_result_goes_through_json_unchanged(sample: Client, explain: bool) -> None:
    result = sample.query("locked out of my account", explain=explain)
    json_result = result.to_dict()
    assert json.loads(json.dumps(json_result)) == json_result
    assert len(json_result["hits"]) == 10
    assert all(
        set(hit) == (HIT_KEYS | {"explanation"} if explain else HIT_KEYS)
        for hit in json_result["hits"]
    )
