"""Time mining: fifty topics of three phrases each over all of calls_sgd.

python -m benchmarks.speed.mining --url embedded:FOLDER --index calls_sgd
"""

from __future__ import annotations

import argparse
import itertools
import json
import time
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from benchmarks import results
from benchmarks.phrases import phrases
from benchmarks.quality.intent_topics import build_topics
from hybrid_search import connect

TOPICS, PHRASES = 50, 3
THRESHOLD = 0.5


def make_topics(
    queries: Sequence[Mapping[str, Any]], more_phrases: Sequence[str]
) -> list[dict[str, Any]]:
    """Return `TOPICS` topics: the intents of calls_sgd, and others of three phrases in a row."""
    return list(itertools.islice(_list_topics(queries, more_phrases), TOPICS))


def _list_topics(
    queries: Sequence[Mapping[str, Any]], more_phrases: Sequence[str]
) -> Iterator[dict[str, Any]]:
    yield from build_topics(queries, THRESHOLD)
    for number in range(0, len(more_phrases) - PHRASES + 1, PHRASES):
        own_phrases = list(more_phrases[number : number + PHRASES])
        yield {"name": f"topic {number}", "phrases": own_phrases, "threshold": THRESHOLD}


def measure(url: str, index: str, topics: Sequence[Mapping[str, Any]]) -> dict[str, Any]:
    """Return the seconds of one run, the loading of the model included."""
    with connect(url) as client:
        info = client.describe(index)
        started_at, cpu_started_at = time.perf_counter(), time.process_time()
        matches = sum(1 for _ in client.mine(topics, index=index))
        return {
            "topics": len(topics),
            "passages": info.passages,
            "matches": matches,
            "seconds": round(time.perf_counter() - started_at, 2),
            "CPU seconds": round(time.process_time() - cpu_started_at, 2),
        }


def main() -> None:
    """Run the command."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--url", default=f"embedded:{results.STORE}", help="where the index is")
    parser.add_argument("--index", default="calls_sgd", help="an index of all of calls_sgd")
    parser.add_argument("--data", type=Path, default=results.DATA, help="the folder of data sets")
    options = parser.parse_args()
    lines = (options.data / "calls_sgd" / "queries.jsonl").read_text(encoding="utf-8").splitlines()
    topics = make_topics([json.loads(line) for line in lines], phrases(options.data))
    figures = measure(options.url, options.index, topics)
    results.write("mining-calls_sgd", figures, results.SPEED)


if __name__ == "__main__":
    main()
