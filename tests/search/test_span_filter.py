"""`speaker` and `not_`: which spans count, before the best of a passage is taken."""

from __future__ import annotations

from typing import Any

import pytest

from hybrid_search.client import Client
from hybrid_search.errors import UsageError

PHRASE = "refund request"

CALLS: list[dict[str, Any]] = [
    {
        "id": "agent-says-it",
        "turns": [
            {"speaker": "agent", "text": "Is this a refund request or a question?"},
            {"speaker": "customer", "text": "My parcel has a dent and I am not amused."},
        ],
    },
    {
        "id": "customer-says-it",
        "turns": [
            {"speaker": "agent", "text": "Good morning, what can I do for you?"},
            {"speaker": "customer", "text": "I would like my money back for these shoes."},
        ],
    },
    {
        "id": "no-customer",
        "turns": [{"speaker": "supervisor", "text": "The refund request was filed on Monday."}],
    },
    {"id": "no-turns", "text": "A refund request, written down by nobody."},
]


@pytest.fixture
def calls_client(client: Client) -> Client:
    client.ingest(CALLS)
    return client


@pytest.mark.parametrize("alpha", [0.0, 0.5, 1.0])
@pytest.mark.parametrize("feedback", [0, 2])
def test_spans_of_other_speakers_count_neither_in_the_score_nor_on_the_screen(
    calls_client: Client, alpha: float, feedback: int
) -> None:
    result = calls_client.query(
        PHRASE, speaker="customer", alpha=alpha, feedback=feedback, spans=10
    )
    assert {hit.id for hit in result.hits} <= {"agent-says-it", "customer-says-it"}
    assert {span.speaker for hit in result.hits for span in hit.spans} <= {"customer"}
    for hit in result.hits:
        assert hit.cosine == pytest.approx(max(span.cosine for span in hit.spans), abs=0.3)
    if alpha == 1:
        assert [hit.id for hit in result.hits] == ["customer-says-it", "agent-says-it"]
        assert result.total == 2
        first = result.hits[0]
        assert first.cosine == pytest.approx(first.spans[0].cosine, abs=1e-6)


def test_a_passage_is_scored_by_the_best_span_of_the_speaker(calls_client: Client) -> None:
    every = calls_client.query(PHRASE, alpha=1)
    agents = calls_client.query(PHRASE, alpha=1, speaker="agent")
    by_id = {hit.id: hit for hit in every.hits}
    assert [hit.id for hit in agents.hits] == ["agent-says-it", "customer-says-it"]
    assert agents.hits[0].score == pytest.approx(by_id["agent-says-it"].score, abs=1e-5)
    assert agents.hits[1].score < by_id["customer-says-it"].score


def test_several_speakers_count_together(calls_client: Client) -> None:
    result = calls_client.query(PHRASE, speaker=["customer", "supervisor"], alpha=1)
    assert {hit.id for hit in result.hits} == {"no-customer", "customer-says-it", "agent-says-it"}
    assert result.plan["speaker"] == ["customer", "supervisor"]


def test_speakers_are_compared_exactly_and_an_unknown_one_is_answered_with_those_there_are(
    calls_client: Client,
) -> None:
    result = calls_client.query(PHRASE, speaker="Customer")
    assert (result.hits, result.total) == ([], 0)
    (warning,) = result.plan["warnings"]
    assert "'Customer'" in warning
    assert "'agent', 'customer', 'supervisor'" in warning


def test_where_words_alone_count_the_speakers_are_those_who_say_them(calls_client: Client) -> None:
    """A speaker who says none of them is not said to be missing from the index."""
    result = calls_client.query("xyzzy", speaker="customer", alpha=0)
    assert (result.hits, result.total) == ([], 0)
    (warning,) = result.plan["warnings"]
    assert "no document has a word of 'xyzzy'" in warning
    result = calls_client.query("Monday", speaker="customer", alpha=0)
    (warning,) = result.plan["warnings"]
    assert "no speaker of the nearest passages is called 'customer'" in warning
    assert warning.endswith("their speakers are 'supervisor'")


def test_a_speaker_goes_along_with_conditions_facets_and_several_phrases(
    calls_client: Client,
) -> None:
    result = calls_client.query(
        [PHRASE, "damaged parcel"],
        speaker="customer",
        where={"id": ["agent-says-it", "no-customer"]},
        explain=True,
        min_probability=0.0,
        alpha=1,
    )
    assert [hit.id for hit in result.hits] == ["agent-says-it"]
    hit = result.hits[0]
    assert hit.phrase == "damaged parcel"
    assert hit.explanation
    assert hit.explanation["raw"]["cosine"] == pytest.approx(hit.spans[0].cosine, abs=1e-6)


RECEIVED = [
    {"id": "came", "text": "Thank you, the refund has arrived."},
    {"id": "missing", "text": "I have not received my refund."},
    {"id": "both", "text": "I have not received my refund. My sister received a refund at once."},
]


def test_a_span_that_is_nearer_to_what_is_not_meant_does_not_count(client: Client) -> None:
    client.ingest(RECEIVED)
    every = client.query("received refund", alpha=1)
    assert every.hits[0].cosine > 0.8
    assert {hit.id: hit.cosine > 0.7 for hit in every.hits}["missing"]
    result = client.query("received refund", not_="have not received refund", alpha=1, spans=5)
    assert {hit.id for hit in result.hits[:2]} == {"came", "both"}
    by_id = {hit.id: hit for hit in result.hits}
    assert "received a refund" in by_id["both"].spans[0].text
    if "missing" in by_id:  # by a word that is not negated
        assert by_id["missing"].cosine < 0.7
    for hit in result.hits:
        assert not any("not received my refund" in span.text for span in hit.spans)


def test_what_is_not_meant_may_be_several_phrases_and_is_in_the_plan(client: Client) -> None:
    client.ingest(RECEIVED)
    phrases = ["have not received refund", "refund has arrived"]
    result = client.query("received refund", not_=phrases, alpha=1)
    assert result.plan["not"] == phrases
    by_id = {hit.id: hit.spans[0].text for hit in result.hits}
    assert "received a refund" in by_id["both"]
    assert "arrived" not in by_id.get("came", "")


def test_both_together_and_at_every_weight(client: Client) -> None:
    client.ingest(CALLS)
    for alpha in (0.0, 0.5, 1.0):
        result = client.query(PHRASE, speaker="customer", not_="damaged parcel", alpha=alpha)
        assert {span.speaker for hit in result.hits for span in hit.spans} <= {"customer"}
        assert not any("dent" in span.text for hit in result.hits for span in hit.spans)


@pytest.mark.parametrize("options", [{"speaker": ""}, {"speaker": 7}, {"not_": " "}, {"not_": [1]}])
def test_a_value_that_is_no_name_or_phrase_is_refused(options: dict[str, Any]) -> None:
    from hybrid_search.search.query import Query

    with pytest.raises(UsageError):
        Query("refund", **options)


TURNS = [
    {"speaker": "agent", "text": "Is this a refund request?"},
    {"speaker": "customer", "text": "I have not received my refund. Give me my money back."},
]


def test_best_spans_of_turns_are_those_of_a_speaker_and_none_of_what_is_not_meant(
    client: Client,
) -> None:
    (every,) = client.best_spans(PHRASE, TURNS, spans_by="cosine")
    assert (every.speaker, every.turn) == ("agent", 0)
    (span,) = client.best_spans(PHRASE, TURNS, speaker="customer")
    text = "\n".join(turn["text"] for turn in TURNS)
    assert (span.speaker, span.turn, span.text) == ("customer", 1, text[span.start : span.end])
    assert span.turn_start == span.start - 26
    spans = client.best_spans("received refund", TURNS, k=3, not_=["have not received refund"])
    assert not any("not received my refund" in span.text for span in spans)


def test_best_spans_of_a_text_have_no_speaker(client: Client) -> None:
    with pytest.raises(UsageError, match=r"speaker is 'agent', but the text has no speakers"):
        client.best_spans(PHRASE, "A refund request", speaker="agent")


@pytest.mark.usefixtures("_remembered_batches")
def test_a_speaker_is_not_lost_behind_others_who_say_it_better(client: Client) -> None:
    """Agents say it word for word in 700 calls, more than the passages that are proposed."""
    small_talk = {"speaker": "customer", "text": "The weather is nice today."}
    agent_calls: list[dict[str, Any]] = []
    for number in range(700):
        asked = {"speaker": "agent", "text": f"A refund request {number}."}
        agent_calls.append({"id": f"a{number}", "turns": [asked, small_talk]})
    said = {"speaker": "customer", "text": "Please return my payment for this order."}
    client.ingest([*agent_calls, {"id": "c", "turns": [said]}])
    result = client.query(PHRASE, speaker="customer", alpha=1, size=1)
    assert result.hits[0].id == "c"
