"""Fill a queue of spans to be judged: mine with a low threshold, and draw a sample."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace

from hybrid_search.topics.judging_queue import CandidateSample, JudgingQueue
from hybrid_search.topics.judgments import Judgment
from hybrid_search.topics.match_file import Progress
from hybrid_search.topics.run import MiningSummary, ReportMining
from hybrid_search.topics.topics import Topics
from hybrid_search.topics.types import MinedBlock

LEAST_PROBABILITY = 0.01
"""Less likely spans are not asked about: nearly all of them are no mentions."""


def build_queue(
    open_blocks: Callable[[Topics], Iterator[MinedBlock]],
    topics: Topics,
    judgments: Sequence[Judgment],
    report: ReportMining | None = None,
) -> JudgingQueue:
    """Return the spans to judge, drawn from all with a probability worth asking about.

    Args:
        open_blocks: Mines topics.
        topics: The topics; their own thresholds are ignored.
        judgments: Earlier answers, about these and perhaps other topics.
        report: Called with the progress.
    """
    lowered = [replace(topic, threshold=LEAST_PROBABILITY, precision=None) for topic in topics]
    started_at = time.monotonic()
    sample = CandidateSample(judgment.place for judgment in judgments)
    progress = start = Progress()
    for block in open_blocks(Topics(tuple(lowered), topics.tuning_file)):
        for match in block.matches:
            sample.add(match)
        progress = progress.add(block, start, 0)
        if report:
            report(MiningSummary(progress, 0, time.monotonic() - started_at, topics))
    return JudgingQueue(sample.list_matches(), judgments)
