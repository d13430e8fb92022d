"""Judged mentions of intents, what judging them buys, and other ways to rank turns."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from benchmarks.quality import judging, mining_rivals
from benchmarks.quality.discover import Turns
from benchmarks.quality.intent_labels import JudgedMentions, Labels, find_best_mentions
from benchmarks.speed import mining as mining_speed
from hybrid_search import Topics, connect
from hybrid_search.search.calibration import Calibration
from hybrid_search.topics.match import Match
from hybrid_search.topics.topic import Topic
from tests.helpers.tiny_encoder import TinyEncoder

MODEL = "0123456789abcdef-288"
MAP = Calibration(midpoint=1.0, slope=17.0)


def make_match(call: str, turn: int, probability: float) -> Match:
    return Match(
        topic="refund",
        phrase="refund",
        id=call,
        turn=turn,
        speaker="customer",
        start=0,
        end=6,
        text="refund",
        cosine=0.5,
        probability=probability,
        start_ms=None,
        end_ms=None,
        metadata={},
        model=MODEL,
    )


def make_labels(*stated: tuple[str, int]) -> Labels:
    turns = frozenset(("refund", call, turn) for call, turn in stated)
    return Labels({"refund": "dev"}, turns, frozenset(turn[:2] for turn in turns))


def test_a_turn_counts_by_its_most_probable_mention() -> None:
    matches = [make_match("a", 0, 0.2), make_match("a", 0, 0.7), make_match("a", 1, 0.1)]
    best = find_best_mentions(matches)
    assert {turn[1:]: match.probability for turn, match in best.items()} == {
        ("a", 0): 0.7,
        ("a", 1): 0.1,
    }


def test_later_turns_of_a_call_that_states_the_intent_are_not_judged() -> None:
    best = find_best_mentions(
        [make_match("a", 0, 0.9), make_match("a", 4, 0.8), make_match("b", 0, 0.3)]
    )
    judged = JudgedMentions.judge(best, make_labels(("a", 0)), MAP)
    assert [(match.id, match.turn) for match in judged.matches] == [("a", 0), ("b", 0)]
    assert judged.labels.tolist() == [True, False]
    assert judged.scores[0] > judged.scores[1]


def make_mentions(count: int) -> JudgedMentions:
    """Mentions whose probabilities are spread evenly; those above a half are right."""
    probabilities = np.linspace(0.02, 0.98, count)
    matches = [make_match(f"call-{n:03}", 0, value) for n, value in enumerate(probabilities)]
    scores = np.log(probabilities / (1 - probabilities)) / 10
    return JudgedMentions(matches, scores, probabilities > 0.5)


def test_judge_asks_where_an_answer_tells_most() -> None:
    mentions = make_mentions(200)
    rows = judging.choose_as_judge(mentions)
    assert len(set(rows)) == judging.JUDGMENTS
    distance = np.abs(np.array(rows) - 100).mean()
    random_rows = judging.choose_at_random(mentions, np.random.default_rng(0))
    assert len(set(random_rows)) == judging.JUDGMENTS
    assert distance < np.abs(np.array(random_rows) - 100).mean()


def test_judgments_mend_a_map_that_is_wrong(monkeypatch: pytest.MonkeyPatch) -> None:
    """All probabilities of the map that ships are under .5 here, and half of the mentions right."""
    monkeypatch.setattr(judging, "DRAWS", 2)
    mentions = make_mentions(200)
    topic, wrong = Topic("refund", ("refund",), precision=0.9), Calibration(midpoint=0.9, slope=3.0)
    figures = judging.compare([topic], mentions, wrong, MODEL)
    losses = {way: values["log loss"] for way, values in figures.items()}
    assert losses["20 as judge asks"] < losses["20 at random"] < losses["no judgment"]
    assert figures["20 as judge asks"]["topics with a map of their own"] == 1
    assert figures["20 as judge asks"]["precision at the threshold"] >= 0.9


def make_turns(*texts: str) -> Turns:
    vectors = np.stack([TinyEncoder().encode([text])[0].vectors.mean(0) for text in texts])
    return Turns([(f"call-{n}", 0) for n in range(len(texts))], texts, vectors)


def test_each_way_ranks_every_turn(monkeypatch: pytest.MonkeyPatch) -> None:
    """The second of four turns is right: mining has it second, so its average precision is 1/2."""
    monkeypatch.setattr(mining_rivals, "KEYWORDS", {"refund": "money back"})
    turns = make_turns("the car", "money back please", "refund policy", "a table")
    topic = Topic("refund", ("refund", "pay me back"))
    intent = mining_rivals.label_turns(topic, turns, make_labels(("call-1", 0)))
    mined = find_best_mentions([make_match("call-2", 0, 0.9), make_match("call-1", 0, 0.4)])
    ways = mining_rivals.compare([intent], turns, mined, TinyEncoder())
    means = {way: figures["mean"] for way, figures in ways.items()}
    assert means["mining"] == 0.5
    assert means["BM25, ten keywords"] == 1.0
    assert means["BM25, the name"] < 1.0
    assert set(ways) == {
        "mining",
        "one vector a turn, the same phrases",
        "BM25, the same phrases",
        "BM25, the name",
        "BM25, ten keywords",
    }


@pytest.mark.usefixtures("tiny_encoder")
def test_fifty_topics_are_mined_and_counted(tmp_path: Path) -> None:
    topics = mining_speed.make_topics([], [f"word{number} refund" for number in range(160)])
    assert len(Topics.load(topics)) == 50
    assert all(len(topic["phrases"]) == 3 for topic in topics)
    url = f"embedded:{tmp_path}"
    with connect(url) as client:
        client.ingest([{"id": "a", "text": "word1 refund please"}])
    figures = mining_speed.measure(url, "calls", topics)
    assert (figures["topics"], figures["passages"]) == (50, 1)
    assert figures["matches"] >= 1
