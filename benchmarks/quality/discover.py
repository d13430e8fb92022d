"""How many intents that nobody named `discover` brings to light, beside what else one might try.

Half of the 32 intents of calls_sgd are known topics, the other half is hidden; then the halves
change places. Each way makes groups of what customers say and no known topic covers, and is judged
by its first 30 groups:

- *found*: a hidden intent is found if one group has at least a tenth of the turns in which it is
  stated, and they are at least half of all turns of the group in which any intent is stated.
- V-measure and adjusted mutual information by scikit-learn, over the turns that state a hidden
  intent: the intent beside the group. Turns outside the first 30 groups are one more group.

The rivals are k-means of turn vectors, which are means of the same word codes, and the keyphrases
of YAKE, whose groups are the turns that have them. Turns with a mention of a known topic are left
out for them as well.

    python -m benchmarks.quality.discover --url embedded:FOLDER --index calls
"""

from __future__ import annotations

import json
import resource
import time
from collections import Counter, defaultdict
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from benchmarks import results
from benchmarks.libraries import import_library
from benchmarks.quality.intent_labels import make_parser, read_statements
from benchmarks.quality.intent_topics import build_topics
from hybrid_search import Topics, connect
from hybrid_search.client import Client
from hybrid_search.discover.clauses import normalize_rows
from hybrid_search.discover.cluster import pool_words, read_contexts
from hybrid_search.discover.discover import rank_groups, scan_clauses
from hybrid_search.discover.groups import group_phrases
from hybrid_search.discover.options import DiscoverOptions
from hybrid_search.parameters import read_table
from hybrid_search.search.span_content import parse_layout, read_turns

DATA = results.DATA / "calls_sgd"
FIRST = 30
"""Groups that a person would read."""

LEAST_SHARE, LEAST_PURITY = 0.1, 0.5
SPEAKER = "customer"
THRESHOLD = 0.5
SEED = 0

Place = tuple[str, int]
"""A call, and the number of a turn."""

Groups = Mapping[Place, int]
"""The group of each turn, by its rank from 0."""


@dataclass(frozen=True, slots=True, eq=False)
class Turns:
    """What the customers say: one row for each turn."""

    places: Sequence[Place]
    texts: Sequence[str]
    vectors: NDArray[np.float32]

    def select(self, rows: NDArray[np.intp]) -> Turns:
        """Return some of the turns."""
        return Turns(
            [self.places[row] for row in rows],
            [self.texts[row] for row in rows],
            self.vectors[rows],
        )


def read_labels(folder: Path) -> dict[Place, str]:
    """Return the intent that is stated in each turn."""
    return {(call, turn): intent for intent, call, turn in read_statements(folder)}


def read_customer_turns(client: Client, index: str) -> Turns:
    """Return the turns of all customers, each with the mean of its tokens."""
    sums: dict[Place, NDArray[np.float32]] = {}
    texts: defaultdict[Place, str] = defaultdict(str)
    dimension = client.describe(index).spec.dimension
    for passage, content in read_contexts(client.backend, index, dimension):
        for turn in read_turns(parse_layout(content)):
            start = max(turn.start, content.start)
            end = min(turn.end, content.start + len(content.text))
            text = content.text[start - content.start : end - content.start]
            if turn.speaker == SPEAKER and any(map(str.isalnum, text)):
                place = (passage.document_id, turn.turn)
                sums[place] = sums.get(place, np.float32(0)) + pool_words(passage, start, end)
                texts[place] += text
    places = list(sums)
    vectors = normalize_rows(np.stack([sums[place] for place in places]))
    return Turns(places, [texts[place] for place in places], vectors)


def group_by_discover(client: Client, index: str, topics: Topics) -> Groups:
    """Return the groups of `hybrid-search discover`; a turn is in that of its longest clause."""
    options = DiscoverOptions(speakers=(SPEAKER,), seed=SEED)
    encoders = client._encoders
    store, known, _ = scan_clauses(
        client.backend, encoders.full, encoders.load_calibration, index, topics, options
    )
    distance = read_table(DiscoverOptions)["distance"].default
    grouping = group_phrases(store.fold(), distance, SEED)
    order = rank_groups(grouping, known)
    ranks = {number: rank for rank, number in enumerate(order[:FIRST])}
    groups: dict[Place, int] = {}
    by_length = sorted(
        zip(store.places, grouping.place_labels.tolist(), strict=True),
        key=lambda pair: pair[0].end - pair[0].start,
    )
    for place, label in by_length:
        if label in ranks:
            groups[place.id, place.turn] = ranks[label]
    return groups


def group_by_k_means(turns: Turns, clusters: int) -> Groups:
    """Return the largest clusters of turn vectors."""
    model = import_library("sklearn.cluster", "scikit-learn").KMeans(
        clusters, n_init=1, random_state=SEED
    )
    labels = model.fit_predict(turns.vectors)
    ranks = {label: rank for rank, (label, _) in enumerate(Counter(labels).most_common(FIRST))}
    pairs = zip(turns.places, labels, strict=True)
    return {place: ranks[label] for place, label in pairs if label in ranks}


def group_by_keyphrases(turns: Turns) -> Groups:
    """Return the turns that have one of the most frequent keyphrases, by the first of them.

    YAKE takes three from each turn. From all turns at once it took names of towns and films.
    """
    extractor = import_library("yake", "yake").KeywordExtractor(lan="en", n=3, top=3)
    counts: Counter[str] = Counter()
    for text in turns.texts:
        counts.update({phrase.lower() for phrase, _ in extractor.extract_keywords(text)})
    phrases = [phrase for phrase, _ in counts.most_common(FIRST)]
    groups = {}
    for place, text in zip(turns.places, turns.texts, strict=True):
        rank = next((rank for rank, phrase in enumerate(phrases) if phrase in text.lower()), None)
        if rank is not None:
            groups[place] = rank
    return groups


def judge(groups: Groups, labels: Mapping[Place, str], hidden: set[str]) -> dict[str, Any]:
    """Return the figures of one way of grouping; `labels` are those of all intents."""
    metrics = import_library("sklearn.metrics", "scikit-learn")
    places = [place for place, intent in labels.items() if intent in hidden]
    intents = [labels[place] for place in places]
    ranks = [groups.get(place, FIRST) for place in places]
    discovered = find_intents(groups, labels) & hidden
    return {
        "found": len(discovered),
        "intents": sorted(discovered),
        "V": round(float(metrics.v_measure_score(intents, ranks)), 4),
        "AMI": round(float(metrics.adjusted_mutual_info_score(intents, ranks)), 4),
    }


def find_intents(groups: Groups, labels: Mapping[Place, str]) -> set[str]:
    """Return the intents that have a group."""
    totals = Counter(labels.values())
    counts: defaultdict[int, Counter[str]] = defaultdict(Counter)
    for place, intent in labels.items():
        if place in groups:
            counts[groups[place]][intent] += 1
    intents = set()
    for group_counts in counts.values():
        intent, count = group_counts.most_common(1)[0]
        is_pure = count >= LEAST_PURITY * group_counts.total()
        if is_pure and count >= LEAST_SHARE * totals[intent]:
            intents.add(intent)
    return intents


def measure(
    client: Client,
    index: str,
    queries: Sequence[Mapping[str, Any]],
    labels: Mapping[Place, str],
    names: Sequence[str] = (),
) -> dict[str, Any]:
    """Return the figures of each way, or of those of these names, with each half hidden."""
    turns = read_customer_turns(client, index)
    here = set(turns.places)
    labels = {place: intent for place, intent in labels.items() if place in here}
    halves = {}
    for name, covered_queries in (
        ("second half hidden", queries[::2]),
        ("first half hidden", queries[1::2]),
    ):
        topics = Topics.load(build_topics(covered_queries, THRESHOLD))
        hidden = {query["id"] for query in queries} - {query["id"] for query in covered_queries}
        covered = {(match.id, match.turn) for match in client.mine(topics, index=index)}
        rows = [row for row, place in enumerate(turns.places) if place not in covered]
        rest = turns.select(np.array(rows))
        ways: dict[str, Callable[[], Groups]] = {
            "discover": partial(group_by_discover, client, index, topics),
            "k-means of turns, 30": partial(group_by_k_means, rest, FIRST),
            "k-means of turns, 100": partial(group_by_k_means, rest, 100),
            "keyphrases by YAKE": partial(group_by_keyphrases, rest),
        }
        halves[name] = {
            "hidden": len(hidden),
            "turns that state them": sum(intent in hidden for intent in labels.values()),
            "ways": {
                way: _time(group, labels, hidden)
                for way, group in ways.items()
                if way in (names or ways)
            },
        }
    return {"calls": client.describe(index).documents, "turns": len(turns.places), "halves": halves}


def _time(
    group: Callable[[], Groups], labels: Mapping[Place, str], hidden: set[str]
) -> dict[str, Any]:
    started_at = time.monotonic()
    groups = group()
    seconds = time.monotonic() - started_at
    return {**judge(groups, labels, hidden), "seconds": round(seconds, 1)}


def sort_queries(lines: Iterable[str]) -> list[dict[str, Any]]:
    """Return the intents by name, so that each half has some of every domain."""
    return sorted(map(json.loads, lines), key=lambda query: str(query["id"]))


def main() -> None:
    """Run the command."""
    parser = make_parser(__doc__)
    parser.add_argument("--data", type=Path, default=DATA, help="the folder of calls_sgd")
    parser.add_argument("--out", type=Path, default=results.QUALITY)
    parser.add_argument(
        "--way", action="append", default=[], help="only this way; the other figures stay"
    )
    options = parser.parse_args()
    queries = sort_queries((options.data / "queries.jsonl").read_text("utf-8").splitlines())
    with connect(options.url) as client:
        model = client.describe(options.index).spec.model
        labels = read_labels(options.data)
        figures = measure(client, options.index, queries, labels, options.way)
    if options.way:
        before = results.read_result("discover", options.out)
        for name, half in figures["halves"].items():
            half["ways"] = {**before["halves"][name]["ways"], **half["ways"]}
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1e6
    payload = {"model": model, "gigabytes": round(peak, 2), **figures}
    results.write("discover", payload, options.out)


if __name__ == "__main__":
    main()
