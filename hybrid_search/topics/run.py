"""A run of `hybrid-search mine`: the matches of an index, written as they are found."""

from __future__ import annotations

import hashlib
import math
import time
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, replace
from typing import Any, cast

from hybrid_search.backends.types import Position
from hybrid_search.parameters import complete
from hybrid_search.topics.call_counts import open_groups
from hybrid_search.topics.match_file import ENCODERS, MatchFile, Progress
from hybrid_search.topics.mention_calibration import MentionMaps
from hybrid_search.topics.missed_mentions import MissedMentions, estimate_missed
from hybrid_search.topics.share_options import ShareOptions
from hybrid_search.topics.topic_matrix import least_probability
from hybrid_search.topics.topic_shares import CheckedSpans, TopicShare, estimate_topic
from hybrid_search.topics.topics import Topics
from hybrid_search.topics.types import MinedBlock, UnlikelySpans

OpenBlocks = Callable[[Position], Iterator[MinedBlock]]
"""Yields the blocks behind a position, all for None."""
ReportMining = Callable[["MiningSummary"], None]


@dataclass(frozen=True, slots=True)
class MiningSummary:
    """The progress and the counts of a run.

    Attributes:
        progress: What was read and written, also by an earlier run that was killed.
        resumed: The number of documents of that earlier run.
        seconds: How long this run took.
        topics: The topics.
        maps: The maps that gave the probabilities; None before the first block.
    """

    progress: Progress
    resumed: int
    seconds: float
    topics: Topics
    maps: MentionMaps | None = None

    def estimate_missed(self) -> dict[str, MissedMentions | None]:
        """Return how many mentions of each topic are missed; None where that is not known."""
        if self.maps is None:
            return {topic.name: None for topic in self.topics}
        find_map, unlikely = self.maps.find, self.progress.unlikely
        return {
            topic.name: estimate_missed(unlikely.get(topic.name, UnlikelySpans()), find_map(topic))
            for topic in self.topics
        }

    def estimate_shares(self) -> dict[str, TopicShare | None]:
        """Return the share of calls that have each topic; None where that is not known."""
        shares: dict[str, TopicShare | None] = {}
        for number, topic in enumerate(self.topics):
            if self.maps is None:
                shares[topic.name] = None
                continue
            used_map = self.maps.find(topic)
            least = least_probability(topic, used_map)
            spans = self.progress.unlikely.get(topic.name, UnlikelySpans())
            checked = CheckedSpans(spans.share, math.log(least / (1 - least)))
            shares[topic.name] = estimate_topic(self.progress.calls, number, used_map, checked)
        return shares

    def to_dict(self) -> dict[str, Any]:
        """Return the counts, what is missed and the origin of probabilities, as a JSON object.

        A topic without a match has 0.
        """
        matches, missed = self.progress.matches, self.estimate_missed()
        shares = self.estimate_shares()
        return {
            "documents": self.progress.documents,
            "passages": self.progress.passages,
            "damaged": self.progress.damaged,
            "matches": sum(matches.values()),
            "topics": {topic.name: matches.get(topic.name, 0) for topic in self.topics},
            "resumed": self.resumed,
            "seconds": round(self.seconds, 3),
            "missed": {name: estimate and estimate.to_dict() for name, estimate in missed.items()},
            "shares": {name: share and share.to_dict() for name, share in shares.items()},
            "probabilities": self.maps.to_dict(self.topics) if self.maps else None,
        }


def format_summary(summary: MiningSummary) -> str:
    """Return a summary as one line for people."""
    progress = summary.progress
    rate = (progress.documents - summary.resumed) / max(summary.seconds, 1e-9)
    damaged = f", {progress.damaged:,} damaged passages left out" if progress.damaged else ""
    return (
        f"{progress.documents:,} documents ({rate:,.0f}/s), {progress.passages:,} passages, "
        f"{sum(progress.matches.values()):,} matches{damaged}"
    )


def format_topics(summary: MiningSummary) -> Iterator[str]:
    """Yield lines for people: where the probabilities come from, and what each topic has."""
    if summary.maps:
        yield f"probabilities: {summary.maps.describe(summary.topics)}"
    shares = summary.estimate_shares()
    for name, missed in summary.estimate_missed().items():
        count = summary.progress.matches.get(name, 0)
        estimate = f", and probably {missed} more below the threshold" if missed else ""
        share = f"; {shares[name]}" if shares[name] else ""
        yield f"{name}: {count:,}{estimate}{share}"


def make_run_key(topics: Topics, *place: object) -> str:
    """Return a digest of all that decides which matches a run writes, and in which form."""
    return hashlib.sha256(repr((topics, *place)).encode("utf-8", "replace")).hexdigest()


def write_file(
    open_blocks: OpenBlocks, file: MatchFile, topics: Topics, report: ReportMining
) -> MiningSummary:
    """Mine into a file, behind what it already holds, and return what was done."""
    blocks = open_blocks(file.start.position)
    summary = _write(blocks, file.write, file.start, topics, report)
    file.finish()
    return summary


def write_stream(
    open_blocks: OpenBlocks,
    write: Callable[[bytes], object],
    format_name: str,
    topics: Topics,
    report: ReportMining,
) -> MiningSummary:
    """Mine into a stream, from the beginning, and return what was done."""
    header, encode_rows = ENCODERS[format_name]
    write(header)
    progress = start = Progress()

    def write_block(block: MinedBlock) -> Progress:
        nonlocal progress
        data = encode_rows(block.matches)
        write(data)
        progress = progress.add(block, start, len(data))
        return progress

    return _write(open_blocks(None), write_block, start, topics, report)


def estimate_shares(
    open_blocks: Callable[..., Iterator[MinedBlock]],
    topics: Topics,
    options: ShareOptions,
    fields: Mapping[str, str],
) -> dict[str, TopicShare | None]:
    """Return the share of each topic in an index, mined without writing matches.

    `open_blocks` mines topics with `groups`, and `fields` are those of the index.
    """
    chosen = cast("ShareOptions", complete(ShareOptions, options, "estimate_shares"))
    progress = start = Progress()

    def add(block: MinedBlock) -> Progress:
        nonlocal progress
        progress = progress.add(block, start, 0)
        return progress

    blocks = open_blocks(topics, groups=open_groups(chosen, fields))
    return _write(blocks, add, start, topics, lambda _: None).estimate_shares()


def _write(
    blocks: Iterator[MinedBlock],
    write: Callable[[MinedBlock], Progress],
    start: Progress,
    topics: Topics,
    report: ReportMining,
) -> MiningSummary:
    started_at = time.monotonic()
    summary = MiningSummary(start, start.documents, 0.0, topics)
    for block in blocks:
        progress, seconds = write(block), time.monotonic() - started_at
        summary = MiningSummary(progress, start.documents, seconds, topics, block.maps)
        report(summary)
    return replace(summary, seconds=time.monotonic() - started_at)
