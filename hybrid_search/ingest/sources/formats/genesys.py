"""Genesys Cloud: transcripts of speech and text analytics, and recordings of chats and mails.

https://developer.genesys.cloud/analyticsdatamanagement/speechtextanalytics/transcript-url
https://developer.genesys.cloud/devapps/api-explorer (GET conversations/{id}/recordings)
"""

from __future__ import annotations

from collections.abc import Iterator
from datetime import UTC, datetime
from typing import Any, BinaryIO

from pydantic import Field

from hybrid_search.ingest.sources.formats.base import Format
from hybrid_search.ingest.sources.formats.json_records import Record, find_paths, read_records
from hybrid_search.ingest.sources.formats.turns import (
    Turn,
    Word,
    drop_empty,
    keep_known,
    make_turn,
)

RECORDED = {"transcript", "emailTranscript", "messagingTranscript"}
"""The keys of recordings that are text."""


class _Period(Record):
    milliseconds: float = 0


class _Timed(Record):
    offset: _Period | None = None
    duration: _Period | None = None
    confidence: float | None = None

    @property
    def times(self) -> tuple[int | None, int | None]:
        """Start and end relative to the start of the call."""
        if self.offset is None:
            return None, None
        start = max(0, self.offset.milliseconds)
        end = start + self.duration.milliseconds if self.duration else None
        return round(start), None if end is None else round(end)


class _Word(_Timed):
    word: str


class _Phrase(_Timed):
    text: str = ""
    decorated_text: str | None = Field(default=None, alias="decoratedText")
    purpose: str | None = Field(default=None, alias="participantPurpose")
    words: tuple[_Word, ...] = ()


class _Transcript(Record):
    language: str | None = None
    phrases: tuple[_Phrase, ...] = ()


class _Address(Record):
    email: str | None = None
    name: str | None = None


class _Message(Record):
    """A message of a chat, a mail, or a message of another service."""

    body: str | None = None
    text_body: str | None = Field(default=None, alias="textBody")
    html_body: str | None = Field(default=None, alias="htmlBody")
    message_text: str | None = Field(default=None, alias="messageText")
    participant_purpose: str | None = Field(default=None, alias="participantPurpose")
    purpose: str | None = None
    sender: str | _Address | None = Field(default=None, alias="from")
    subject: str | None = None
    utc: str | None = None
    timestamp: str | None = None
    time: str | None = None


class _Conversation(Record):
    id: str | None = None
    conversation_id: str | None = Field(default=None, alias="conversationId")
    communication_id: str | None = Field(default=None, alias="communicationId")
    media_type: str | None = Field(default=None, alias="mediaType")
    media: str | None = None
    start_time: int | str | None = Field(default=None, alias="startTime")
    transcripts: tuple[_Transcript, ...] = ()
    chat: list[_Message] | None = Field(default=None, alias="transcript")
    mails: list[_Message] | None = Field(default=None, alias="emailTranscript")
    messages: list[_Message] | None = Field(default=None, alias="messagingTranscript")


def recognise(head: bytes, name: str) -> bool:  # noqa: ARG001
    """Return whether a file is a transcript or a recording of a conversation."""
    paths = find_paths(head)
    if "conversationId" not in paths:
        return False
    is_transcript = {"communicationId", "mediaType", "transcripts"} <= paths
    is_recording = bool(paths & RECORDED and paths & {"fileState", "mediaUris", "media"})
    return is_transcript or is_recording or "transcripts.phrases" in paths


def read(file: BinaryIO, id: str) -> Iterator[dict[str, Any]]:
    """Yield the conversations; a speaker is a purpose, e.g. external or agent."""
    for own_id, conversation in read_records(file, _Conversation, id):
        languages = [transcript.language for transcript in conversation.transcripts]
        fields = {
            # a conversation may have several recordings, told apart by their ids
            "id": conversation.id or conversation.conversation_id or own_id,
            "conversation": conversation.conversation_id if conversation.id else None,
            "communication": conversation.communication_id,
            "channel": conversation.media_type or conversation.media,
            "language": next(filter(None, languages), None),
            "start_time": _to_iso(conversation.start_time),
        }
        yield keep_known(fields) | {"turns": drop_empty(_iterate_turns(conversation))}


def _iterate_turns(conversation: _Conversation) -> Iterator[Turn]:
    for transcript in conversation.transcripts:
        for phrase in transcript.phrases:
            words = [Word(word.word, *word.times) for word in phrase.words]
            text = phrase.decorated_text or phrase.text
            yield make_turn(text, phrase.purpose, phrase.times, words, confidence=phrase.confidence)
    recorded = (conversation.chat, conversation.mails, conversation.messages)
    for message in (message for messages in recorded for message in messages or ()):
        texts = (message.body, message.text_body, message.html_body, message.message_text)
        yield make_turn(
            next(filter(None, texts), ""),
            message.participant_purpose or message.purpose or _name_sender(message.sender),
            subject=message.subject,
            time=message.utc or message.timestamp or message.time,
        )


def _name_sender(sender: str | _Address | None) -> str | None:
    return sender.name or sender.email if isinstance(sender, _Address) else sender


def _to_iso(time: int | str | None) -> str | None:
    """Return a time in ISO 8601, converted from milliseconds since 1970 if necessary."""
    if not isinstance(time, int):
        return time
    return datetime.fromtimestamp(time / 1000, UTC).isoformat(timespec="seconds")


GENESYS = Format("genesys", recognise, read)
