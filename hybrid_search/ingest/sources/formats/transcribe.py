"""Amazon Transcribe: the output of a job, with speaker labels, with channels, or with neither.

https://docs.aws.amazon.com/transcribe/latest/dg/how-input.html
https://docs.aws.amazon.com/transcribe/latest/dg/diarization-output-batch.html
https://docs.aws.amazon.com/transcribe/latest/dg/channel-id-output-batch.html
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Iterator, Sequence
from dataclasses import replace
from itertools import groupby
from operator import itemgetter
from typing import Any

from hybrid_search.ingest.sources.formats.base import json_format
from hybrid_search.ingest.sources.formats.turns import (
    Turn,
    Word,
    iterate_turns,
    join_cut_sentences,
    join_words,
    make_document,
    sort_by_start,
    to_ms,
)


def build(job: Any, id: str) -> Iterator[dict[str, Any]]:
    """Yield the call; a speaker is a speaker or channel label, e.g. spk_0 or ch_0."""
    results = job["results"]
    fields = {"id": job.get("jobName") or id, "language": results.get("language_code")}
    yield make_document(fields, _make_turns(results))


def _make_turns(results: Any) -> list[Turn]:
    channels = (results.get("channel_labels") or {}).get("channels") or ()
    segments = (results.get("speaker_labels") or {}).get("segments") or ()
    items = results.get("items") or ()
    if segments and not channels:
        return join_cut_sentences(_turns_of_segments(items, segments))
    turns: list[Turn] = []
    for channel in channels or [{"items": items, "channel_label": None}]:
        words = _make_words(channel.get("items") or (), channel["channel_label"])
        turns += iterate_turns(words)
    return sort_by_start(turns)


def _turns_of_segments(items: Sequence[Any], segments: Sequence[Any]) -> Iterator[Turn]:
    """Yield a turn for each segment, with the words that start in it."""
    begun = sorted((float(segment["start_time"]), segment["speaker_label"]) for segment in segments)
    place = 0, begun[0][1]
    places = []
    for item in items:
        if item.get("start_time") is not None:  # a punctuation mark belongs to the word before it
            number = max(bisect_right(begun, float(item["start_time"]), key=itemgetter(0)) - 1, 0)
            place = number, item.get("speaker_label") or begun[number][1]
        places.append(place)
    for (_, speaker), group in groupby(zip(places, items, strict=True), key=itemgetter(0)):
        yield join_words(_make_words([item for _, item in group], speaker))


def _make_words(items: Sequence[Any], speaker: str | None = None) -> list[Word]:
    """Return the words of items, each with the punctuation after it."""
    words: list[Word] = []
    for item in items:
        content = item["alternatives"][0].get("content", "")
        if item.get("type") == "punctuation" and words:
            words[-1] = replace(words[-1], text=words[-1].text + content)
        else:
            times = to_ms(item.get("start_time")), to_ms(item.get("end_time"))
            words.append(Word(content, times, speaker or item.get("speaker_label")))
    return words


TRANSCRIBE = json_format(
    # the items may start behind the bytes that are looked at
    "transcribe",
    build,
    {"jobName", "results.transcripts"},
    {"results.items.alternatives"},
)
