"""Time queries on ten times the passages, and compare what is found with an exhaustive search.

The index has calls_sgd, and copies of it with words exchanged. In each copy a share of the words
stands for others of about the same frequency, always the same word for the same. So the frequencies
of words, which BM25's cost depends on, stay as they are, and few spans of a copy are those of
another.

``python -m benchmarks.speed.larger``; the index takes 12 GB, and an hour on two cores.
"""

from __future__ import annotations

import argparse
import json
import random
import re
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

from benchmarks import results
from benchmarks.phrases import phrases
from benchmarks.quality import recall
from benchmarks.quality.collection import SHIPPED
from benchmarks.quality.tasks import TASKS, lines
from benchmarks.speed import latency
from hybrid_search import connect
from hybrid_search.ingest.types import SourceLine

INDEX = "larger"

COPIES = 9

SHARE = 0.25
"""Share of the words of four letters or more that a copy exchanges."""

NEIGHBOURS = 40
"""Words of about the same frequency among which they are exchanged."""

WORD = re.compile(r"\b[a-z]{4,}\b")


def copy_calls(calls: Sequence[SourceLine], copies: int) -> Iterator[SourceLine]:
    """Yield all calls, then `copies` copies of each with words exchanged and ids of their own."""
    yield from calls
    documents = [json.loads(line.data) for line in calls]
    frequencies = Counter(word for document in documents for word in _find_words(document))
    for copy in range(1, copies + 1):
        exchanged = exchange_words(frequencies, random.Random(copy))  # noqa: S311 (no secret)
        for line, document in zip(calls, documents, strict=True):
            turns = [
                {**turn, "text": _exchange(turn["text"], exchanged)} for turn in document["turns"]
            ]
            content = {**document, "id": f"{document['id']}~{copy}", "turns": turns}
            yield replace(line, data=json.dumps(content).encode())


def _exchange(text: str, exchanged: Mapping[str, str]) -> str:
    return WORD.sub(lambda word: exchanged.get(word[0], word[0]), text)


def exchange_words(frequencies: Mapping[str, int], chance: random.Random) -> dict[str, str]:
    """Return other words of about the same frequency for a share of the words."""
    by_frequency = sorted(frequencies, key=lambda word: (-frequencies[word], word))
    exchanged: dict[str, str] = {}
    for start in range(0, len(by_frequency), NEIGHBOURS):
        words = [
            word for word in by_frequency[start : start + NEIGHBOURS] if chance.random() < SHARE
        ]
        exchanged |= zip(words, words[1:] + words[:1], strict=True)
    return exchanged


def _find_words(document: Mapping[str, Any]) -> Iterator[str]:
    return (word for turn in document["turns"] for word in WORD.findall(turn["text"]))


def measure(data: Path, phrase_texts: Sequence[str]) -> dict[str, Any]:
    """Return latency and recall on the larger index, ingested as far as it is not there yet."""
    calls = list(lines(TASKS["calls_sgd"], data))
    rejects = results.STORE / f"{INDEX}.rejected.jsonl"
    with connect(f"embedded:{results.STORE}", precision=SHIPPED.precision) as client:
        client.ingest_lines(copy_calls(calls, COPIES), index=INDEX, rejects=rejects)
    with connect(f"embedded:{results.STORE}", precision=SHIPPED.precision) as client:
        # The exhaustive search comes first: it reads all of the files, and then memory has them.
        recalls = recall.compare(client, results.STORE, INDEX, SHIPPED.encoder, phrase_texts)
        return {**recalls, "milliseconds": latency.measure(client, INDEX, phrase_texts)}


def main() -> None:
    """Run the command."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--data", type=Path, default=results.DATA, help="the folder of data sets")
    options = parser.parse_args()
    figures = measure(options.data, phrases(options.data))
    results.write(f"{INDEX}-calls_sgd", figures, results.SPEED)


if __name__ == "__main__":
    main()
