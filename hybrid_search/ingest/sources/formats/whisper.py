"""Whisper, WhisperX, OpenAI's verbose_json, and whisper.cpp: segments, words, speakers.

https://github.com/openai/whisper and https://github.com/m-bain/whisperX
https://platform.openai.com/docs/api-reference/audio/verbose-json-object
https://github.com/ggml-org/whisper.cpp (its option --output-json)
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Iterator
from typing import Any, BinaryIO

from pydantic import Field

from hybrid_search.ingest.sources.formats.base import Format
from hybrid_search.ingest.sources.formats.json_records import Record, find_paths, read_records
from hybrid_search.ingest.sources.formats.turns import (
    Turn,
    Word,
    join_cut_sentences,
    keep_known,
    make_turn,
    to_ms,
)


class _Word(Record):
    word: str
    start: float | None = None
    end: float | None = None


class _Segment(Record):
    text: str = ""
    start: float | None = None
    end: float | None = None
    speaker: str | None = None
    avg_logprob: float | None = None
    no_speech_prob: float | None = None
    words: tuple[_Word, ...] = ()


class _Offsets(Record):
    start: int = Field(alias="from")
    end: int = Field(alias="to")


class _CppSegment(Record):
    text: str = ""
    offsets: _Offsets


class _CppResult(Record):
    language: str | None = None


class _Transcript(Record):
    language: str | None = None
    duration: float | None = None
    segments: tuple[_Segment, ...] = ()
    words: tuple[_Word, ...] = ()
    transcription: tuple[_CppSegment, ...] = ()
    result: _CppResult = _CppResult()


def recognise(head: bytes, name: str) -> bool:  # noqa: ARG001
    """Return whether a file is a transcript of one of these programs; it must not have an id."""
    paths = find_paths(head)
    return "id" not in paths and (
        {"segments.start", "segments.end", "segments.text"} <= paths
        or "transcription.offsets.from" in paths
    )


def read(file: BinaryIO, id: str) -> Iterator[dict[str, Any]]:
    """Yield the transcripts; only WhisperX knows speakers."""
    for own_id, transcript in read_records(file, _Transcript, id):
        fields = {
            "id": own_id,
            "language": transcript.language or transcript.result.language,
            "duration_ms": to_ms(transcript.duration),
        }
        yield keep_known(fields) | {"turns": join_cut_sentences(_iterate_segments(transcript))}


def _iterate_segments(transcript: _Transcript) -> Iterator[Turn]:
    starts = [word.start or 0.0 for word in transcript.words]  # verbose_json has them beside
    for segment in transcript.segments:
        first, last = (bisect_left(starts, time or 0.0) for time in (segment.start, segment.end))
        words = segment.words or transcript.words[first:last]
        yield make_turn(
            segment.text,
            segment.speaker,
            (to_ms(segment.start), to_ms(segment.end)),
            [Word(word.word, to_ms(word.start), to_ms(word.end)) for word in words],
            avg_logprob=segment.avg_logprob,
            no_speech_prob=segment.no_speech_prob,
        )
    for cpp_segment in transcript.transcription:
        offsets = cpp_segment.offsets
        yield make_turn(cpp_segment.text, times=(offsets.start, offsets.end))


WHISPER = Format("whisper", recognise, read)
