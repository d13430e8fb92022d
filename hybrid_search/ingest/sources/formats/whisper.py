"""Whisper, WhisperX, OpenAI's verbose_json, and whisper.cpp: segments, words, speakers.

https://github.com/openai/whisper and https://github.com/m-bain/whisperX
https://platform.openai.com/docs/api-reference/audio/verbose-json-object
https://github.com/ggml-org/whisper.cpp (its option --output-json)
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Iterator
from typing import Any

from hybrid_search.ingest.sources.formats.base import json_format
from hybrid_search.ingest.sources.formats.turns import (
    Turn,
    Word,
    join_cut_sentences,
    make_document,
    make_turn,
    pick,
    read_times,
    to_ms,
)


def build(transcript: Any, id: str) -> Iterator[dict[str, Any]]:
    """Yield the transcript; only WhisperX knows speakers."""
    result = transcript.get("result") or {}
    fields = {
        "id": id,
        "language": transcript.get("language") or result.get("language"),
        "duration_ms": to_ms(transcript.get("duration")),
    }
    yield make_document(fields, join_cut_sentences(_iterate_segments(transcript)))


def _iterate_segments(transcript: Any) -> Iterator[Turn]:
    words = transcript.get("words") or ()  # verbose_json has them beside the segments
    starts = [word.get("start") or 0.0 for word in words]
    for segment in transcript.get("segments") or ():
        times = segment.get("start"), segment.get("end")
        first, last = (bisect_left(starts, time or 0.0) for time in times)
        inner = segment.get("words") or words[first:last]
        yield make_turn(
            times=read_times(segment),
            words=[Word(word["word"], read_times(word)) for word in inner],
            **pick(segment, text="text", speaker="speaker", avg_logprob="avg_logprob"),
            no_speech_prob=segment.get("no_speech_prob"),
        )
    for segment in transcript.get("transcription") or ():  # of whisper.cpp
        offsets = segment["offsets"]
        yield make_turn(segment.get("text"), times=(offsets["from"], offsets["to"]))


WHISPER = json_format(
    "whisper",
    build,
    {"segments.start", "segments.end", "segments.text"},
    {"transcription.offsets.from"},
    without="id",
)
