"""Phrases that people would ask.

The hard sample's topics, descriptions of intents, and requests in customers' own words.
"""

from __future__ import annotations

from pathlib import Path

from benchmarks.quality import hard_sample
from benchmarks.quality.tasks import TASKS, rows


def phrases(data: Path) -> list[str]:
    """Return about 130 phrases and questions of 1 to 20 words."""
    topics = hard_sample.read_phrases()
    intents = [query.text for query in TASKS["calls_sgd"].queries(data, "dev")]
    requests = [
        row["text"] for row in rows(data / "banking77/banking77.jsonl.gz") if row["part"] == "dev"
    ][::150]
    requests += [
        row["text"] for row in rows(data / "clinc150/clinc150.jsonl.gz") if row.get("part") == "dev"
    ][::300]
    return list(dict.fromkeys([*topics, *intents, *requests]))
