"""Groups of phrases with gold clusters: a reader of the paper's form, and groups of other data.

Section 4 of the paper. Its groups have 25 noun phrases of product reviews in 17 clusters, of which
3.5 have more than one phrase, and those 3.2 on average; the groups made here are roughly like that.
Each is made from a seed alone.
"""

from __future__ import annotations

import json
from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from random import Random

from benchmarks.quality.tasks import rows
from papers.mcphrasy.files import require_file
from papers.mcphrasy.wordnet import Synonyms

SIZES = (4, 3, 3, 2) + (1,) * 13
"""Phrases of each cluster: 25 in 17."""

COUNT = 25
"""Groups of a data set."""

SEED = 11
PUBLISHED = "mcphrasy/groups.jsonl"


@dataclass(frozen=True, slots=True)
class Group:
    """Phrases, and the name of each phrase's cluster, in the same order."""

    name: str
    phrases: tuple[str, ...]
    clusters: tuple[str, ...]


def read(path: Path) -> list[Group]:
    """Return the groups of a file.

    JSON lines of ``{"group": id, "phrases": [...], "clusters": [...]}``; clusters are those of the
    phrases, in their order. Raises SystemExit if the file is missing, or for a line whose two lists
    differ in length.
    """
    read = rows(
        require_file(
            path,
            "the paper says that its 106 groups will be available online;"
            " put them there, a JSON object a line",
        )
    )
    return [
        _group(row["group"], row["phrases"], row["clusters"], f"{path}, group {row['group']}")
        for row in read
    ]


def _group(name: object, phrases: Sequence[str], clusters: Sequence[object], where: str) -> Group:
    if len(phrases) != len(clusters):
        raise SystemExit(
            f"{where}: {len(phrases)} phrases and {len(clusters)} clusters:"
            " give the cluster of each phrase"
        )
    return Group(str(name), tuple(phrases), tuple(json.dumps(cluster) for cluster in clusters))


def read_intent_groups(path: Path, count: int = COUNT) -> list[Group]:
    """Return groups of requests by intent, from rows of `path` whose `part` is dev.

    These are sentences of about ten words, not noun phrases.
    """
    texts: dict[str, list[str]] = defaultdict(list)
    for row in rows(require_file(path, "give --data, the folder of data sets")):
        if row.get("part") == "dev":
            texts[row["intent"]].append(row["text"])
    return draw_groups(
        {intent: list(dict.fromkeys(intent_texts)) for intent, intent_texts in texts.items()},
        SIZES,
        count,
    )


PAIRED = (2,) * 8 + (1,) * 9
"""Sizes for synonyms, of which few clusters have more than two: 25 in 17."""


def group_synonyms(pairs: Iterable[Synonyms], count: int = COUNT) -> list[Group]:
    """Return groups of expressions that mean the same by WordNet.

    An expression appears in the first of its meanings only.
    """
    meanings: dict[str, list[str]] = defaultdict(list)
    seen: set[str] = set()
    for pair in pairs:
        for phrase in (pair.first, pair.second):
            if phrase.lower() not in seen:
                seen.add(phrase.lower())
                meanings[pair.definition].append(phrase)
    return draw_groups(meanings, PAIRED, count)


def draw_groups(
    phrases: Mapping[str, Sequence[str]], sizes: Sequence[int], count: int
) -> list[Group]:
    """Return `count` groups with clusters of these sizes, each of another meaning.

    Meanings are drawn at random among those that have enough phrases.

    Raises:
        SystemExit: If too few meanings have enough phrases.
    """
    groups = []
    for number in range(count):
        random = Random(f"{SEED}/{number}")  # noqa: S311 (no secret)
        names = random.sample(sorted(phrases), len(phrases))
        drawn: list[tuple[str, str]] = []
        for size in sizes:
            name = next((meaning for meaning in names if len(phrases[meaning]) >= size), None)
            if name is None:
                raise SystemExit(
                    f"{len(phrases)} clusters are too few for a group of {len(sizes)}"
                    f" with {list(sizes)} phrases"
                )
            names.remove(name)
            drawn += [(phrase, name) for phrase in random.sample(list(phrases[name]), size)]
        groups.append(
            Group(str(number), *map(tuple, zip(*random.sample(drawn, len(drawn)), strict=True)))
        )
    return groups
