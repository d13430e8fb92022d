"""Written topics as triples, and the losses that learn from them, against written-out numbers."""

from __future__ import annotations

import json
import math
from pathlib import Path
from random import Random
from typing import Any

import pytest

pytestmark = pytest.mark.export

torch = pytest.importorskip("torch", reason="the extra [export] is not installed: make test-export")

from export.training import corpora, data, losses  # noqa: E402 (after torch)
from export.training.batch import _allowed_mask, _relation_masks  # noqa: E402

TOPIC: dict[str, Any] = {
    "topic": "gym-01",
    "domain": "gym",
    "phrases": {"name": "freeze membership", "said": "can I pause it"},
    "says": [
        {"text": "Well, please stop it for May.", "span": "please stop it", "core": "stop it"},
        {"text": "Put it on hold.", "span": "Put it on hold", "core": "on hold"},
    ],
    "near": [{"text": "I do not want to pause."}, {"text": "He paused."}],
}


def read_topics(folder: Path, *topics: object) -> data.Corpus:
    path = folder / "topics.jsonl"
    path.write_text("".join(json.dumps(topic) + "\n" for topic in topics), encoding="utf-8")
    (corpus,) = corpora.read([path])
    return corpus


def test_every_phrasing_meets_every_turn_and_no_dev_trade_is_read(tmp_path: Path) -> None:
    corpus = read_topics(tmp_path, TOPIC, {**TOPIC, "topic": "vet-01", "domain": "vet"})
    assert [(triple.query, triple.positive) for triple in corpus.triples] == [
        (phrase, turn["text"]) for phrase in TOPIC["phrases"].values() for turn in TOPIC["says"]
    ]
    first = corpus.triples[0]
    assert first.span is not None and first.core is not None
    assert first.positive[slice(*first.span)] == "please stop it"
    assert first.positive[slice(*first.core)] == "stop it"
    assert {triple.negative for triple in corpus.triples} == {
        near["text"] for near in TOPIC["near"]
    }
    assert {triple.intent for triple in corpus.triples} == {"gym-01"}


def test_triples_of_an_intent_are_drawn_together(tmp_path: Path) -> None:
    others = [{**TOPIC, "topic": f"gym-{number:02}"} for number in range(2, 9)]
    corpus = read_topics(tmp_path, TOPIC, *others)
    random = Random(3)  # noqa: S311 (no secret)
    triples = data.Sampler([corpus], {}, 1.0).batch(random, 12, 0.0, together=3)
    intents = [triple.intent for triple in triples]
    assert len(intents) == 12
    assert [len(set(intents[first : first + 3])) for first in range(0, 12, 3)] == [1] * 4


def test_other_topics_of_a_group_are_drawn_beside_a_topic(tmp_path: Path) -> None:
    topics = [
        {**TOPIC, "topic": f"{trade}-{number:02}", "domain": trade}
        for trade in ("gym", "tax", "post")
        for number in range(8)
    ]
    corpus = read_topics(tmp_path, *topics)
    random = Random(3)  # noqa: S311 (no secret)
    triples = data.Sampler([corpus], {}, 1.0).batch(random, 18, 0.0, together=2, sisters=2)
    drawn = [triples[first : first + 6] for first in range(0, 18, 6)]
    assert [len({triple.group for triple in part}) for part in drawn] == [1, 1, 1]
    assert [len({triple.intent for triple in part}) for part in drawn] == [3, 3, 3]


def test_a_sister_topic_is_neither_right_nor_wrong() -> None:
    triples = [
        data.Triple("a", "p1", "n1", intent="gym-01", domain="gym"),
        data.Triple("b", "p2", "n2", intent="gym-01", domain="gym"),
        data.Triple("c", "p3", "n3", intent="gym-02", domain="gym"),
        data.Triple("d", "p4", "n4", intent="tax-01", domain="tax"),
    ]
    right, same, apart = _relation_masks(triples)
    negative = _allowed_mask(triples) & ~right
    assert right[0].tolist() == [True, True, *[False] * 6]
    # of the first topic's own near turns both are wrong, of the sister's neither
    assert negative[0].tolist() == [False, False, False, True, True, True, False, True]
    assert same[0].tolist() == [False, True, False, False]
    assert apart[0].tolist() == [False, False, False, True]


def test_what_says_another_topic_of_a_group_is_wrong() -> None:
    triples = [
        data.Triple("a", "p1", "n1", intent="any_money-01", domain="any", group="any_money"),
        data.Triple("b", "p2", "n2", intent="any_money-02", domain="any", group="any_money"),
        data.Triple("c", "p3", "n3", intent="any_anger-01", domain="any", group="any_anger"),
    ]
    right, _, apart = _relation_masks(triples)
    negative = _allowed_mask(triples) & ~right
    # what only looks like the second topic may say the first, and the third may be much the same
    assert negative[0].tolist() == [False, True, False, True, False, False]
    assert apart[0].tolist() == [False, True, False]


def test_with_several_right_passages_each_is_held_against_the_wrong_ones_alone() -> None:
    scores = torch.tensor([[0.6, 0.4, 0.2, 0.9], [0.1, 0.2, 0.3, 0.4]])
    is_right = torch.tensor([[True, True, False, False], [False] * 4])
    is_negative = torch.tensor([[False, False, True, False], [True] * 4])
    # on [0, 1] and times 30 a difference of cosines counts 15-fold: .6 is 6 above .2, .4 is 3; the
    # last passage is neither, and the second query has nothing right
    by_hand = (math.log(1 + math.exp(-6)) + math.log(1 + math.exp(-3))) / 2
    loss = losses.multi_positive(scores, is_right, is_negative)
    assert loss.item() == pytest.approx(by_hand, rel=1e-5)


def test_the_marked_span_is_held_against_all_others_of_its_passage() -> None:
    query = torch.tensor([[1.0, 0.0]])
    tokens = torch.tensor([[[1.0, 0.0], [0.0, 1.0], [9.0, 9.0]]])
    mask = torch.tensor([[True, True, False]])
    # spans: token 0 (cosine 1), token 1 (cosine 0), both (cosine 1 / sqrt 2); right are those that
    # hold token 0 and lie inside both: the first and the last
    logits = [15 * (1 + cosine) for cosine in (1.0, 0.0, 1 / math.sqrt(2))]
    total = sum(map(math.exp, logits))
    by_hand = -math.log((math.exp(logits[0]) + math.exp(logits[2])) / total)
    loss = losses.measure_marking(
        query, tokens, mask, torch.tensor([[0, 2]]), torch.tensor([[0, 1]]), longest=3
    )
    assert loss.item() == pytest.approx(by_hand, abs=1e-6)


def test_a_mark_longer_than_the_longest_span_costs_nothing() -> None:
    tokens = torch.ones(1, 3, 2, requires_grad=True)
    mask = torch.ones(1, 3, dtype=torch.bool)
    ends = torch.tensor([[0, 3]])
    loss = losses.measure_marking(torch.ones(1, 2), tokens, mask, ends, ends, longest=2)
    loss.backward()
    assert loss.item() == 0.0
    assert tokens.grad is not None and not tokens.grad.any()
