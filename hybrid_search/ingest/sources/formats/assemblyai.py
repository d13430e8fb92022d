"""AssemblyAI: transcripts with utterances, or with words only. Times are milliseconds.

https://www.assemblyai.com/docs/api-reference/transcripts/get
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from hybrid_search.errors import InputError
from hybrid_search.ingest.sources.formats.base import json_format
from hybrid_search.ingest.sources.formats.turns import (
    Turn,
    Word,
    iterate_turns,
    make_document,
    make_turn,
    pick,
    to_ms,
)

MODELS = ("acoustic_model", "language_model", "speech_model", "speech_models", "speech_model_used")


def build(transcript: Any, id: str) -> Iterator[dict[str, Any]]:
    """Yield the call; speakers have AssemblyAI's letters. It must be completed."""
    status = transcript.get("status", "completed")
    if status != "completed":
        raise InputError("a transcript is not completed: fetch it again", f"it is {status!r}")
    fields = {
        "id": transcript.get("id") or id,
        "duration_ms": to_ms(transcript.get("audio_duration")),
        **pick(transcript, language="language_code", confidence="confidence"),
    }
    yield make_document(fields, _iterate_turns(transcript))


def _iterate_turns(transcript: Any) -> Iterator[Turn]:
    utterances = transcript.get("utterances") or ()
    words = [] if utterances else [_make_word(word) for word in transcript.get("words") or ()]
    for utterance in utterances:
        yield make_turn(
            utterance["text"],
            utterance.get("speaker"),
            (utterance.get("start"), utterance.get("end")),
            map(_make_word, utterance.get("words") or ()),
            **pick(utterance, channel="channel", confidence="confidence"),
        )
    yield from iterate_turns(words)
    if not (utterances or words):
        yield make_turn(transcript.get("text"))


def _make_word(word: Any) -> Word:
    return Word(word["text"], (word.get("start"), word.get("end")), word.get("speaker"))


ASSEMBLYAI = json_format(
    "assemblyai",
    build,
    *({"id", "audio_url", "status", key} for key in (*MODELS, "words.start", "utterances.start")),
)
