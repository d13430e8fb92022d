"""AssemblyAI: transcripts with utterances, or with words only. Times are milliseconds.

https://www.assemblyai.com/docs/api-reference/transcripts/get
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, BinaryIO

from hybrid_search.errors import InputError
from hybrid_search.ingest.sources.formats.base import Format
from hybrid_search.ingest.sources.formats.json_records import Record, find_paths, read_records
from hybrid_search.ingest.sources.formats.turns import (
    Turn,
    Word,
    drop_empty,
    group_words,
    keep_known,
    make_turn,
    make_turn_of_words,
    to_ms,
)

MODELS = {"acoustic_model", "language_model", "speech_model", "speech_models", "speech_model_used"}


class _Word(Record):
    text: str
    start: int | None = None
    end: int | None = None
    speaker: str | None = None


class _Utterance(_Word):
    confidence: float | None = None
    channel: str | None = None
    words: tuple[_Word, ...] = ()


class _Transcript(Record):
    id: str | None = None
    status: str = "completed"
    text: str | None = None
    language_code: str | None = None
    audio_duration: float | None = None
    confidence: float | None = None
    words: list[_Word] | None = None
    utterances: list[_Utterance] | None = None


def recognise(head: bytes, name: str) -> bool:  # noqa: ARG001
    """Return whether a file is a transcript of AssemblyAI, which also has an id and a text."""
    paths = find_paths(head)
    return {"id", "audio_url", "status"} <= paths and bool(
        paths & (MODELS | {"words.start", "utterances.start"})
    )


def read(file: BinaryIO, id: str) -> Iterator[dict[str, Any]]:
    """Yield the calls; speakers have AssemblyAI's letters.

    Raises:
        InputError: If a transcript is not completed.
    """
    for own_id, transcript in read_records(file, _Transcript, id):
        if transcript.status != "completed":
            raise InputError(
                "a transcript is not completed: fetch it again", f"it is {transcript.status!r}"
            )
        fields = {
            "id": transcript.id or own_id,
            "language": transcript.language_code,
            "duration_ms": to_ms(transcript.audio_duration),
            "confidence": transcript.confidence,
        }
        yield keep_known(fields) | {"turns": drop_empty(_iterate_turns(transcript))}


def _iterate_turns(transcript: _Transcript) -> Iterator[Turn]:
    if transcript.utterances:
        for utterance in transcript.utterances:
            yield make_turn(
                utterance.text,
                utterance.speaker,
                (utterance.start, utterance.end),
                map(_make_word, utterance.words),
                channel=utterance.channel,
                confidence=utterance.confidence,
            )
    elif transcript.words:
        for group in group_words([_make_word(word) for word in transcript.words]):
            yield make_turn_of_words(group)
    else:
        yield make_turn(transcript.text or "")


def _make_word(word: _Word) -> Word:
    return Word(word.text, word.start, word.end, word.speaker)


ASSEMBLYAI = Format("assemblyai", recognise, read)
