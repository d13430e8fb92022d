"""Topics: how well the 46 freely phrased topics of the hard sample find turns and calls.

A turn is right if a person marked a span in it. A call is right if it has the topic; calls stand
where their best turn stands. A topic names what is meant, in words that the callers seldom use.
"""

from __future__ import annotations

from typing import Any

from benchmarks.quality import hard_sample
from benchmarks.quality.measures import NDCG
from benchmarks.quality.text_ranking import rank_texts, summarise
from hybrid_search.encoder import Encoder

MEASURES = (NDCG, "recall@50")


def measure(encoder: Encoder) -> dict[str, Any]:
    """Return figures of turns and calls by every system; intervals are of resampled topics."""
    turns, topics = hard_sample.read_turns(), hard_sample.read_topics()
    keys = list(turns)
    systems: dict[str, Any] = {}
    for name, rankings in rank_texts(
        encoder, list(turns.values()), [topic.phrase for topic in topics]
    ).items():
        ranked_turns = [[keys[number] for number in ranking] for ranking in rankings]
        ranked_calls = [[call for call, _ in ranking] for ranking in ranked_turns]
        systems[name] = {
            "turns": summarise(ranked_turns, [topic.turns for topic in topics], MEASURES),
            "calls": summarise(
                [list(dict.fromkeys(calls)) for calls in ranked_calls],
                [topic.calls for topic in topics],
                MEASURES,
            ),
        }
    return {
        "topics": len(topics),
        "turns": len(turns),
        "calls": len({call for call, _ in turns}),
        "systems": systems,
    }
