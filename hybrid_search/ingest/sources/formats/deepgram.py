"""Deepgram: responses for recorded audio, with utterances or with words only.

https://developers.deepgram.com/reference/speech-to-text/listen-pre-recorded
https://developers.deepgram.com/docs/utterances
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any, BinaryIO

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
    sort_by_start,
    to_ms,
)


class _Word(Record):
    word: str
    punctuated_word: str | None = None
    start: float | None = None
    end: float | None = None
    speaker: str | None = None


class _Utterance(Record):
    transcript: str = ""
    start: float | None = None
    end: float | None = None
    speaker: str | None = None
    channel: int | None = None
    confidence: float | None = None
    words: tuple[_Word, ...] = ()


class _Alternative(Record):
    transcript: str = ""
    words: tuple[_Word, ...] = ()


class _Channel(Record):
    alternatives: tuple[_Alternative, ...] = ()
    detected_language: str | None = None


class _Results(Record):
    channels: tuple[_Channel, ...] = ()
    utterances: list[_Utterance] | None = None


class _Metadata(Record):
    request_id: str | None = None
    created: str | None = None
    duration: float | None = None
    channels: int | None = None


class _Response(Record):
    metadata: _Metadata = _Metadata()
    results: _Results


def recognise(head: bytes, name: str) -> bool:  # noqa: ARG001
    """Return whether a file is a response of Deepgram."""
    paths = find_paths(head)
    return (
        "results.channels.alternatives" in paths
        or {"results.utterances", "metadata.request_id"} <= paths
    )


def read(file: BinaryIO, id: str) -> Iterator[dict[str, Any]]:
    """Yield the calls; speakers have Deepgram's numbers, after the channel if there are several."""
    for own_id, response in read_records(file, _Response, id):
        results, metadata = response.results, response.metadata
        languages = [channel.detected_language for channel in results.channels]
        fields = {
            "id": metadata.request_id or own_id,
            "created": metadata.created,
            "duration_ms": to_ms(metadata.duration),
            "channels": metadata.channels,
            "language": next(filter(None, languages), None),
        }
        turns = _turns_of_utterances(results) if results.utterances else _turns_of_words(results)
        yield keep_known(fields) | {"turns": drop_empty(turns)}


def _turns_of_utterances(results: _Results) -> Iterator[Turn]:
    utterances = results.utterances or []
    has_channels = len({utterance.channel for utterance in utterances}) > 1
    for utterance in utterances:
        speaker = _name_speaker(utterance.speaker, utterance.channel if has_channels else None)
        yield make_turn(
            utterance.transcript,
            speaker,
            (to_ms(utterance.start), to_ms(utterance.end)),
            _make_words(utterance.words, speaker),
            channel=utterance.channel,
            confidence=utterance.confidence,
        )


def _turns_of_words(results: _Results) -> list[Turn]:
    """Return the turns of all channels in order, split by speaker and silence."""
    has_channels = len(results.channels) > 1
    turns: list[Turn] = []
    for number, channel in enumerate(results.channels):
        for alternative in channel.alternatives[:1]:
            words = [
                Word(word.punctuated_word or word.word, to_ms(word.start), to_ms(word.end), speaker)
                for word in alternative.words
                for speaker in [_name_speaker(word.speaker, number if has_channels else None)]
            ]
            turns += (
                [make_turn_of_words(group, channel=number) for group in group_words(words)]
                if words
                else [make_turn(alternative.transcript, channel=number)]
            )
    return sort_by_start(turns)


def _make_words(words: Sequence[_Word], speaker: str | None) -> list[Word]:
    return [
        Word(word.punctuated_word or word.word, to_ms(word.start), to_ms(word.end), speaker)
        for word in words
    ]


def _name_speaker(speaker: str | None, channel: int | None) -> str | None:
    """Return a speaker's number, after the channel's, as each channel numbers its own from 0."""
    parts = [str(part) for part in (channel, speaker) if part is not None]
    return "-".join(parts) or None


DEEPGRAM = Format("deepgram", recognise, read)
