"""Labelled turns for the probabilities of mentions: which phrase is said in which turn.

Written topics (a turn that says it is right; one that looks so, or says another topic, is wrong),
intents of calls_sgd and of calls_multidogo, and requests of natcs_utterances. Nobody labelled a
sister topic of the same trade, nor other turns of a call that states the intent: these are unknown.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from itertools import islice
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from benchmarks.quality import intents
from benchmarks.quality.intent_topics import build_topics
from benchmarks.quality.tasks import rows
from benchmarks.quality.written import DEV_DOMAINS, FILE, MORE_TOPICS, STYLES

WRONG, RIGHT, NEAR, UNKNOWN = range(4)
"""Labels of a turn under a phrase; `NEAR` is wrong and was written to look right."""

TOPIC_STEP = 6
"""Every sixth of the written topics is fitted on: one or two of a trade."""

SGD_STEP, DOGO_STEP = 8, 7
"""Every eighth call of calls_sgd is read, and every seventh of calls_multidogo."""

DOGO_INTENTS = {
    "bookflight": "book a flight",
    "changeseatassignment": "change seat assignment",
    "checkbalance": "check balance",
    "checkclaimstatus": "check claim status",
    "closeaccount": "close account",
    "disputecharge": "dispute a charge",
    "expensereport": "expense report",
    "getboardingpass": "get boarding pass",
    "getproofofinsurance": "get proof of insurance",
    "getroutingnumber": "get routing number",
    "orderburgerintent": "order a burger",
    "orderdessertintent": "order dessert",
    "orderdrinkintent": "order a drink",
    "orderpizzaintent": "order a pizza",
    "ordersaladintent": "order a salad",
    "replacecard": "replace card",
    "reportbrokenphone": "report a broken phone",
    "reportbrokensoftware": "report broken software",
    "reportlostcard": "report a lost card",
    "transfermoney": "transfer money",
    "updateaddress": "update address",
    "viewbillsintent": "view bills",
}
"""Intents of calls_multidogo that name a wish, as words."""

Labels = NDArray[np.int8]


@dataclass(frozen=True, slots=True, eq=False)
class MentionSet:
    """Turns, phrases, and the label of each turn under each phrase, int8 ``[texts, phrases]``.

    `groups` has the number of each phrase's topic.
    """

    texts: Sequence[str]
    phrases: Sequence[str]
    groups: NDArray[np.int64]
    labels: Labels

    def select(self, columns: NDArray[np.bool_]) -> MentionSet:
        """Return the set with some of its phrases."""
        phrases = [phrase for phrase, is_own in zip(self.phrases, columns, strict=True) if is_own]
        return MentionSet(self.texts, phrases, self.groups[columns], self.labels[:, columns])


def read_written(data: Path, *, is_dev: bool) -> MentionSet:
    """Return the written topics of kept-out trades, or some of all others; a phrase a style."""
    topics = [*rows(data / FILE), *(() if is_dev else rows(MORE_TOPICS))]
    topics = [topic for topic in topics if (topic["domain"] in DEV_DOMAINS) == is_dev]
    topics = topics if is_dev else topics[::TOPIC_STEP]
    domains = [_name_domain(topic) for topic in topics]
    owners = [(number, kind) for number, topic in enumerate(topics) for kind in _list_kinds(topic)]
    labels = np.full((len(owners), len(topics)), WRONG, dtype=np.int8)
    for row, (owner, kind) in enumerate(owners):
        labels[row, np.array(domains) == domains[owner]] = UNKNOWN
        labels[row, owner] = kind
    texts = [turn["text"] for topic in topics for turn in (*topic["says"], *topic["near"])]
    phrases = [topic["phrases"][style] for topic in topics for style in STYLES]
    groups = np.repeat(np.arange(len(topics)), len(STYLES))
    return MentionSet(texts, phrases, groups, labels[:, groups])


def _name_domain(topic: Mapping[str, Any]) -> str:
    """Return the trade of a topic; topics of any call have one of their own."""
    domain: str = topic["domain"]
    return domain.partition("_")[0] if domain.startswith(("any_", "fine_")) else domain


def _list_kinds(topic: Mapping[str, Any]) -> list[int]:
    return [RIGHT] * len(topic["says"]) + [NEAR] * len(topic["near"])


def read_absent_phrases(data: Path) -> list[str]:
    """Return the names of kept-out topics, of which calls_multidogo has none."""
    return [row["phrases"]["name"] for row in rows(data / FILE) if row["domain"] in DEV_DOMAINS]


def read_sgd(data: Path) -> tuple[MentionSet, NDArray[np.bool_]]:
    """Return the turns of some calls with three phrases for each intent, and which are to train."""
    queries = list(rows(data / "calls_sgd" / "queries.jsonl"))
    phrases = {topic["name"]: topic["phrases"] for topic in build_topics(queries, 0.5)}
    labelled = _label_calls(rows(data / "calls_sgd" / "calls.jsonl.gz"), SGD_STEP, phrases)
    are_train = np.array([query["part"] == "train" for query in queries])
    return labelled, are_train[labelled.groups]


def read_multidogo(data: Path) -> MentionSet:
    """Return the turns of some calls, and a phrase for each intent."""
    phrases = {intent: [words] for intent, words in DOGO_INTENTS.items()}
    return _label_calls(rows(data / "calls_multidogo" / "calls.jsonl.gz"), DOGO_STEP, phrases)


def _label_calls(
    calls: Iterable[Mapping[str, Any]], step: int, phrases: Mapping[str, Sequence[str]]
) -> MentionSet:
    """Return the customers' turns of every `step`-th call; other turns may repeat an intent."""
    texts, rows_of_labels = [], []
    for call in islice(calls, 0, None, step):
        stated = {intent for turn in call["turns"] for intent in turn.get("intents", ())}
        for turn in call["turns"]:
            if turn["speaker"] == "customer" and turn["text"].strip():
                own = turn.get("intents", ())
                texts.append(turn["text"])
                rows_of_labels.append(
                    [
                        RIGHT if intent in own else UNKNOWN if intent in stated else WRONG
                        for intent in phrases
                    ]
                )
    groups = np.repeat(np.arange(len(phrases)), [len(words) for words in phrases.values()])
    labels = np.array(rows_of_labels, dtype=np.int8)[:, groups]
    return MentionSet(texts, [text for words in phrases.values() for text in words], groups, labels)


def read_natcs(data: Path) -> MentionSet:
    """Return spoken requests, and the name of each intent; a request has one intent."""
    requests = intents.read(data, "natcs_utterances")
    names = sorted({request.intent for request in requests})
    labels = [
        [RIGHT if name == request.intent else WRONG for name in names] for request in requests
    ]
    return MentionSet(
        [request.text for request in requests],
        [intents.spell_name(name) for name in names],
        np.arange(len(names)),
        np.array(labels, dtype=np.int8),
    )
