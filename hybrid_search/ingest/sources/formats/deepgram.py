"""Deepgram: responses for recorded audio, with utterances or with words only.

https://developers.deepgram.com/reference/speech-to-text/listen-pre-recorded
https://developers.deepgram.com/docs/utterances
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from hybrid_search.ingest.sources.formats.base import json_format
from hybrid_search.ingest.sources.formats.turns import (
    Turn,
    Word,
    iterate_turns,
    make_document,
    make_turn,
    pick,
    read_times,
    sort_by_start,
    to_ms,
)


def build(response: Any, id: str) -> Iterator[dict[str, Any]]:
    """Yield the call; speakers have Deepgram's numbers, after the channel if there are several."""
    results, metadata = response["results"], response.get("metadata") or {}
    channels, utterances = results.get("channels") or [], results.get("utterances")
    fields = {
        "id": metadata.get("request_id") or id,
        "duration_ms": to_ms(metadata.get("duration")),
        **pick(metadata, created="created", channels="channels"),
        "language": next(filter(None, (item.get("detected_language") for item in channels)), None),
    }
    turns = _turns_of_utterances(utterances) if utterances else _turns_of_words(channels)
    yield make_document(fields, turns)


def _turns_of_utterances(utterances: Any) -> Iterator[Turn]:
    has_channels = len({utterance.get("channel") for utterance in utterances}) > 1
    for utterance in utterances:
        channel = utterance.get("channel")
        yield make_turn(
            utterance.get("transcript"),
            _name_speaker(utterance, channel if has_channels else None),
            read_times(utterance),
            _make_words(utterance, None),
            **pick(utterance, channel="channel", confidence="confidence"),
        )


def _turns_of_words(channels: Any) -> list[Turn]:
    """Return the turns of all channels in order, split by speaker and silence."""
    turns: list[Turn] = []
    for number, channel in enumerate(channels):
        for alternative in (channel.get("alternatives") or ())[:1]:
            words = _make_words(alternative, number if len(channels) > 1 else None)
            turns += iterate_turns(words, channel=number)
            if not words:
                turns.append(make_turn(alternative.get("transcript"), channel=number))
    return sort_by_start(turns)


def _make_words(part: Any, channel: int | None) -> list[Word]:
    words = []
    for word in part.get("words") or ():
        text = word.get("punctuated_word") or word["word"]
        words.append(Word(text, read_times(word), _name_speaker(word, channel)))
    return words


def _name_speaker(part: Any, channel: int | None) -> str | None:
    """Return a speaker's number, after the channel's, as each channel numbers its own from 0."""
    numbers = [str(number) for number in (channel, part.get("speaker")) if number is not None]
    return "-".join(numbers) or None


DEEPGRAM = json_format(
    "deepgram",
    build,
    {"results.channels.alternatives"},
    {"results.utterances", "metadata.request_id"},
)
