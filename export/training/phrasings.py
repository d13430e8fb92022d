"""Make triples of phrasings, beside real requests and where somebody says them word for word.

``python -m export.training.phrasings --data DIR --out FOLDER`` writes three files of triples:

- ``requests.jsonl``: a written phrasing of an intent of training (`export/data/written/
  phrasings.jsonl`) with requests of that intent, against requests of others with the same words.
- ``verbatim.jsonl``: a phrasing of a written topic in a turn where somebody says one of the topic's
  phrasings word for word, against a turn that only looks so.
- ``passing.jsonl``: a phrasing of a written topic with a turn that says it, against a turn that
  only looks so, both beside the same turns of other trades: what surrounds the words tells nothing.

Written topics alone teach that shared words are a bad sign: most turns that say a topic share no
word with it, and most that only look so do. In ordinary calls people say what it is called.
"""

from __future__ import annotations

import argparse
import gzip
import json
from collections import Counter, defaultdict
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from random import Random
from typing import Any, TypeVar

from benchmarks.quality.written import DEV_DOMAINS, MORE_TOPICS
from export.training.written import find_place, name_family
from hybrid_search.text.words import distinct_words

PHRASINGS = MORE_TOPICS.with_name("phrasings.jsonl")
PLAIN_MENTIONS = [
    MORE_TOPICS.with_name(f"{name}.jsonl") for name in ("plain_mentions", "more_plain_mentions")
]

LABELLED = ("banking77", "clinc150")
"""Sets whose rows have a label and a part; of the others there are triples with an intent."""

REQUESTS = 60
"""The most requests of an intent beside each of its phrasings."""

VERBATIM = 12
"""The most turns of a topic in which a phrasing is said word for word."""

PASSING = 8
"""Turns of a topic that are put beside turns of other trades."""

CARRIERS = (
    "I'm calling about {}.",
    "It's about {}, please.",
    "so it's {} basically",
    "This is regarding {}.",
    "Can you help me with this, {}?",
    "yeah um {}",
    "The reason I'm calling is {}.",
    "{}, that's what this is about.",
    "What I have here is {}.",
    "okay so {} is my question",
    "{}.",
    "Hello, {}.",
)
"""Sentences in which a phrasing is said."""

RAREST = 6
"""Words of a text by which similar ones are looked for."""

Row = Mapping[str, Any]
Item = TypeVar("Item")


def make_requests(data: Path, phrasings: Sequence[Row], random: Random) -> Iterator[Row]:
    """Yield triples of the phrasings of intents and of people's requests."""
    by_set: dict[str, list[Row]] = defaultdict(list)
    for row in phrasings:
        by_set[row["set"]].append(row)
    for name, rows in by_set.items():
        make = _label_requests if name in LABELLED else _pair_requests
        pairs = make(data, name, sorted({row["intent"] for row in rows}), random)
        for row in rows:
            for phrase in row["phrases"].values():
                for positive, negative in pairs[row["intent"]]:
                    intent = f"{name}.{row['intent']}"
                    yield _make_triple(phrase, positive, negative, intent, _find_domain(name, row))


def _find_domain(name: str, row: Row) -> str | None:
    """Return the domain of an intent whose turns may express another one of it, too."""
    return None if name in LABELLED else f"{name}.{row['intent'].partition('.')[0]}"


def _make_triple(
    query: str, positive: str, negative: str, intent: str, domain: str | None
) -> dict[str, Any]:
    return {
        "query": query,
        "positive": positive,
        "negative": negative,
        "intent": intent,
        **({"domain": domain} if domain else {}),
    }


Place = tuple[int, int]
"""First and last character of a part of a text, the last exclusive."""

Pairs = Mapping[str, Sequence[tuple[str, str]]]
"""For each intent requests of it, each with one of another intent."""


def _label_requests(data: Path, name: str, intents: Sequence[str], random: Random) -> Pairs:
    """Return requests for training, each with the most similar one of another intent."""
    with gzip.open(data / name / f"{name}.jsonl.gz", "rt", encoding="utf-8") as lines:
        rows = [row for row in map(json.loads, lines) if row["part"] == "train"]
    texts = [row["text"] for row in rows]
    similar = _Similar(texts)
    places: dict[str, list[int]] = defaultdict(list)
    for place, row in enumerate(rows):
        places[row["intent"]].append(place)
    return {
        intent: [
            (texts[place], texts[similar.find(place, set(places[intent]))])
            for place in _sample(places[intent], random)
        ]
        for intent in intents
    }


def _pair_requests(data: Path, name: str, intents: Sequence[str], random: Random) -> Pairs:
    """Return the positives of triples with an intent, each with the negative of its triple."""
    pairs: dict[str, list[tuple[str, str]]] = defaultdict(list)
    path = data / "train_triples" / f"{name}.jsonl.gz"
    with gzip.open(path, "rt", encoding="utf-8") as lines:
        for row in map(json.loads, lines):
            pairs[row["intent"]].append((row["positive"], row["negative"]))
    return {intent: _sample(pairs[intent], random) for intent in intents}


def _sample(items: Sequence[Item], random: Random) -> list[Item]:
    return random.sample(items, min(REQUESTS, len(items)))


class _Similar:
    """Finds the text that shares the rarest words with another one."""

    def __init__(self, texts: Sequence[str]) -> None:
        self._words = [set(distinct_words(text.lower())) for text in texts]
        self._counts = Counter(word for words in self._words for word in words)
        self._holders: dict[str, list[int]] = defaultdict(list)
        for place, words in enumerate(self._words):
            for word in words:
                self._holders[word].append(place)

    def find(self, place: int, left_out: set[int]) -> int:
        """Return the place of the text nearest to that at `place`; none of `left_out`."""
        overlaps: Counter[int] = Counter()
        by_rarity = sorted(self._words[place], key=lambda word: (self._counts[word], word))
        for word in by_rarity[:RAREST]:
            for holder in self._holders[word]:
                overlaps[holder] += 1000 // self._counts[word] + 1
        others = [item for item in overlaps.most_common() if item[0] not in left_out]
        if others:
            return others[0][0]
        return next(text for text in range(len(self._words)) if text not in left_out)


def make_verbatim(topics: Sequence[Row], random: Random) -> Iterator[Row]:
    """Yield triples in which a phrasing of a topic is said word for word."""
    turns = _list_turns(topics)
    for topic in topics:
        phrases = list(topic["phrases"].values())
        for number in range(VERBATIM):
            said = phrases[number % len(phrases)]
            query = said if number < len(phrases) else random.choice(phrases)
            domain, turn = random.choice(turns)
            if domain == topic["domain"]:
                continue
            text, start = say_in_turn(said, turn, random)
            negative = random.choice(topic["near"])["text"]
            span = (start, start + len(said))
            yield _make_topic_triple(topic, query, text, negative, span, span)


def make_passing(topics: Sequence[Row], random: Random) -> Iterator[Row]:
    """Yield triples in which turns of a topic stand beside turns of other trades."""
    turns = _list_turns(topics)
    for topic in topics:
        for says in random.sample(topic["says"], min(PASSING, len(topic["says"]))):
            others = [
                text
                for domain, text in random.sample(turns, random.choice((1, 1, 2)))
                if domain != topic["domain"]
            ]
            place = random.randint(0, len(others))
            near = random.choice(topic["near"])["text"]
            text, negative = (
                " ".join([*others[:place], turn, *others[place:]]) for turn in (says["text"], near)
            )
            start = sum(len(turn) + 1 for turn in others[:place])
            span = find_place(text, says["span"], start)
            core = find_place(text, says["core"], span[0])
            query = random.choice(list(topic["phrases"].values()))
            yield _make_topic_triple(topic, query, text, negative, span, core)


def _list_turns(topics: Sequence[Row]) -> list[tuple[str, str]]:
    """Return the domain and text of each turn that says a topic."""
    return [(topic["domain"], turn["text"]) for topic in topics for turn in topic["says"]]


def _make_topic_triple(
    topic: Row, query: str, positive: str, negative: str, span: Place, core: Place
) -> dict[str, Any]:
    """Return a triple of a topic; `span` and `core` are places in the positive."""
    return {
        "query": query,
        "positive": positive,
        "negative": negative,
        "span": span,
        "core": core,
        "intent": topic["topic"],
        "domain": name_family(topic["domain"]),
        "group": topic["domain"],
    }


def say_in_turn(phrase: str, turn: str, random: Random) -> tuple[str, int]:
    """Return a turn in which somebody says the phrase, too, and where that begins."""
    carrier = random.choice(CARRIERS)
    said, start = carrier.format(phrase), carrier.index("{}")
    if random.random() < 0.5:
        return f"{said} {turn}", start
    return f"{turn} {said}", len(turn) + 1 + start


def read_topics(data: Path) -> list[Row]:
    """Return the written topics for training."""
    files = (data / "written" / "topics.jsonl", MORE_TOPICS, *PLAIN_MENTIONS)
    topics = [json.loads(line) for path in files for line in path.read_text("utf-8").splitlines()]
    return [topic for topic in topics if topic["domain"] not in DEV_DOMAINS]


def read_phrasings() -> list[Row]:
    """Return the written phrasings of intents."""
    return [json.loads(line) for line in PHRASINGS.read_text("utf-8").splitlines()]


def main() -> None:
    """Run the command."""
    parser = argparse.ArgumentParser(prog="python -m export.training.phrasings")
    parser.add_argument("--data", type=Path, required=True, help="the folder of the data sets")
    parser.add_argument("--out", type=Path, required=True, help="the folder to write into")
    options = parser.parse_args()
    options.out.mkdir(parents=True, exist_ok=True)
    random, topics = Random(1), read_topics(options.data)  # noqa: S311 (no secret)
    for name, rows in (
        ("requests", make_requests(options.data, read_phrasings(), random)),
        ("verbatim", make_verbatim(topics, random)),
        ("passing", make_passing(topics, random)),
    ):
        lines = [json.dumps(row, ensure_ascii=False) + "\n" for row in rows]
        (options.out / f"{name}.jsonl").write_text("".join(lines), encoding="utf-8")
        print(f"{options.out / name}.jsonl: {len(lines)} triples")


if __name__ == "__main__":
    main()
