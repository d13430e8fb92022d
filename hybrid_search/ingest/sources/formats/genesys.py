"""Genesys Cloud: transcripts of speech and text analytics, and recordings of chats and mails.

https://developer.genesys.cloud/analyticsdatamanagement/speechtextanalytics/transcript-url
https://developer.genesys.cloud/devapps/api-explorer (GET conversations/{id}/recordings)
"""

from __future__ import annotations

from collections.abc import Iterator
from datetime import UTC, datetime
from typing import Any

from hybrid_search.ingest.sources.formats.base import json_format
from hybrid_search.ingest.sources.formats.turns import (
    Times,
    Turn,
    Word,
    make_document,
    make_turn,
    pick,
)

RECORDED = ("transcript", "emailTranscript", "messagingTranscript")
"""The keys of recordings that are text: chats, mails, and messages of other services."""


def build(conversation: Any, id: str) -> Iterator[dict[str, Any]]:
    """Yield the conversation; a speaker is a purpose, e.g. external or agent."""
    own_id, conversation_id = conversation.get("id"), conversation.get("conversationId")
    transcripts = conversation.get("transcripts") or ()
    fields = {
        # a conversation may have several recordings, told apart by their ids
        "id": own_id or conversation_id or id,
        "conversation": conversation_id if own_id else None,
        "communication": conversation.get("communicationId"),
        "channel": _find_first(conversation, "mediaType", "media"),
        "language": next(filter(None, (item.get("language") for item in transcripts)), None),
        "start_time": conversation.get("startTime"),
    }
    if isinstance(fields["start_time"], int):  # milliseconds since 1970
        start = datetime.fromtimestamp(fields["start_time"] / 1000, UTC)
        fields["start_time"] = start.isoformat(timespec="seconds")
    phrases = (phrase for item in transcripts for phrase in item.get("phrases") or ())
    messages = (message for key in RECORDED for message in conversation.get(key) or ())
    turns = [*map(_build_phrase, phrases), *map(_build_message, messages)]
    yield make_document(fields, turns)


def _build_phrase(phrase: Any) -> Turn:
    words = [Word(word["word"], _times(word)) for word in phrase.get("words") or ()]
    facts = pick(phrase, speaker="participantPurpose", confidence="confidence")
    text = _find_first(phrase, "decoratedText", "text")
    return make_turn(text, times=_times(phrase), words=words, **facts)


def _build_message(message: Any) -> Turn:
    sender = message.get("from")
    if isinstance(sender, dict):
        sender = _find_first(sender, "name", "email")
    return make_turn(
        _find_first(message, "body", "textBody", "htmlBody", "messageText"),
        _find_first(message, "participantPurpose", "purpose") or sender,
        subject=message.get("subject"),
        time=_find_first(message, "utc", "timestamp", "time"),
    )


def _find_first(fields: Any, *keys: str) -> Any:
    return next(filter(None, map(fields.get, keys)), None)


def _times(part: Any) -> Times:
    """Return start and end relative to the start of the call."""
    offset, duration = part.get("offset"), part.get("duration")
    if offset is None:
        return None, None
    start = max(0, offset.get("milliseconds", 0))
    return round(start), round(start + duration.get("milliseconds", 0)) if duration else None


GENESYS = json_format(
    "genesys",
    build,
    {"conversationId", "transcripts.phrases"},
    {"conversationId", "communicationId", "mediaType", "transcripts"},
    *(
        {"conversationId", recorded, proof}
        for recorded in RECORDED
        for proof in ("fileState", "mediaUris", "media")
    ),
)
