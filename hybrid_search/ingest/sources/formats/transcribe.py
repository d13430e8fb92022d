"""Amazon Transcribe: the output of a job, with speaker labels, with channels, or with neither.

https://docs.aws.amazon.com/transcribe/latest/dg/how-input.html
https://docs.aws.amazon.com/transcribe/latest/dg/diarization-output-batch.html
https://docs.aws.amazon.com/transcribe/latest/dg/channel-id-output-batch.html
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Iterator, Sequence
from itertools import groupby
from operator import itemgetter
from typing import Any, BinaryIO

from pydantic import Field

from hybrid_search.ingest.sources.formats.base import Format
from hybrid_search.ingest.sources.formats.json_records import Record, find_paths, read_records
from hybrid_search.ingest.sources.formats.turns import (
    Turn,
    Word,
    group_words,
    join_cut_sentences,
    keep_known,
    make_turn_of_words,
    sort_by_start,
    to_ms,
)


class _Alternative(Record):
    content: str = ""
    confidence: float | None = None


class _Item(Record):
    type: str = "pronunciation"
    alternatives: list[_Alternative] = Field(min_length=1)
    start_time: float | None = None
    end_time: float | None = None
    speaker_label: str | None = None


class _Segment(Record):
    start_time: float
    speaker_label: str


class _SpeakerLabels(Record):
    segments: tuple[_Segment, ...] = ()


class _Channel(Record):
    channel_label: str
    items: tuple[_Item, ...] = ()


class _ChannelLabels(Record):
    channels: tuple[_Channel, ...] = ()


class _Results(Record):
    items: tuple[_Item, ...] = ()
    speaker_labels: _SpeakerLabels = _SpeakerLabels()
    channel_labels: _ChannelLabels = _ChannelLabels()
    language_code: str | None = None


class _Job(Record):
    job_name: str | None = Field(default=None, alias="jobName")
    results: _Results


def recognise(head: bytes, name: str) -> bool:  # noqa: ARG001
    """Return whether a file is the output of a job; its items may start after `head`."""
    paths = find_paths(head)
    return {"jobName", "results.transcripts"} <= paths or "results.items.alternatives" in paths


def read(file: BinaryIO, id: str) -> Iterator[dict[str, Any]]:
    """Yield the calls; a speaker is a speaker or channel label, e.g. spk_0 or ch_0."""
    for own_id, job in read_records(file, _Job, id):
        fields = {"id": job.job_name or own_id, "language": job.results.language_code}
        yield keep_known(fields) | {"turns": _make_turns(job.results)}


def _make_turns(results: _Results) -> list[Turn]:
    channels = results.channel_labels.channels
    if channels:
        return sort_by_start(
            turn
            for channel in channels
            for turn in _turns_by_silence(channel.items, channel.channel_label)
        )
    segments = sorted(results.speaker_labels.segments, key=lambda segment: segment.start_time)
    if segments:
        return join_cut_sentences(_turns_of_segments(results.items, segments))
    return list(_turns_by_silence(results.items))


def _turns_by_silence(items: Sequence[_Item], speaker: str | None = None) -> Iterator[Turn]:
    for words in group_words(_make_words(items, speaker)):
        yield make_turn_of_words(words)


def _turns_of_segments(items: Sequence[_Item], segments: Sequence[_Segment]) -> Iterator[Turn]:
    """Yield a turn for each segment, with the words that start in it."""
    starts = [segment.start_time for segment in segments]
    place = 0, segments[0].speaker_label
    places = []
    for item in items:
        if item.start_time is not None:  # a punctuation mark belongs to the word before it
            number = max(bisect_right(starts, item.start_time) - 1, 0)
            place = number, item.speaker_label or segments[number].speaker_label
        places.append(place)
    for (_, speaker), group in groupby(zip(places, items, strict=True), key=itemgetter(0)):
        yield make_turn_of_words(_make_words([item for _, item in group], speaker))


def _make_words(items: Sequence[_Item], speaker: str | None = None) -> list[Word]:
    """Return the words of items, each with the punctuation after it."""
    words: list[Word] = []
    for item in items:
        content = item.alternatives[0].content
        if item.type == "punctuation" and words:
            last = words[-1]
            words[-1] = Word(last.text + content, last.start_ms, last.end_ms, last.speaker)
        else:
            times = to_ms(item.start_time), to_ms(item.end_time)
            words.append(Word(content, *times, speaker or item.speaker_label))
    return words


TRANSCRIBE = Format("transcribe", recognise, read)
