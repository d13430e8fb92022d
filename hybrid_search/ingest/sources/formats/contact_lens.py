"""Amazon Contact Lens and Transcribe Call Analytics: the analysis of a call or chat.

https://docs.aws.amazon.com/connect/latest/adminguide/contact-lens-example-output-files.html
https://docs.aws.amazon.com/connect/latest/APIReference/API_connect-contact-lens_Transcript.html
https://docs.aws.amazon.com/transcribe/latest/dg/call-analytics-batch.html
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, BinaryIO

from pydantic import Field

from hybrid_search.ingest.sources.formats.base import Format
from hybrid_search.ingest.sources.formats.json_records import Record, find_paths, read_records
from hybrid_search.ingest.sources.formats.turns import Word, drop_empty, keep_known, make_turn


class _Participant(Record):
    id: str = Field(alias="ParticipantId")
    role: str | None = Field(default=None, alias="ParticipantRole")


class _Item(Record):
    content: str = Field(alias="Content")
    start_ms: int | None = Field(default=None, alias="BeginOffsetMillis")
    end_ms: int | None = Field(default=None, alias="EndOffsetMillis")


class _Entry(Record):
    participant: str | None = Field(default=None, alias="ParticipantId")
    role: str | None = Field(default=None, alias="ParticipantRole")
    content: str = Field(default="", alias="Content")
    start_ms: int | None = Field(default=None, alias="BeginOffsetMillis")
    end_ms: int | None = Field(default=None, alias="EndOffsetMillis")
    time: str | None = Field(default=None, alias="AbsoluteTime")
    sentiment: str | None = Field(default=None, alias="Sentiment")
    items: list[_Item] = Field(default=[], alias="Items")


class _Segment(Record):
    transcript: _Entry | None = Field(default=None, alias="Transcript")


class _Characteristics(Record):
    duration_ms: int | None = Field(default=None, alias="TotalConversationDurationMillis")


class _Categories(Record):
    names: list[str] = Field(default=[], alias="MatchedCategories")


class _Analysis(Record):
    contact_id: str | None = Field(default=None, alias="ContactId")
    job_name: str | None = Field(default=None, alias="JobName")
    channel: str | None = Field(default=None, alias="Channel")
    language: str | None = Field(default=None, alias="LanguageCode")
    participants: list[_Participant] = Field(default=[], alias="Participants")
    categories: _Categories = Field(default=_Categories(), alias="Categories")
    characteristics: _Characteristics = Field(
        default=_Characteristics(), alias="ConversationCharacteristics"
    )
    entries: list[_Entry] = Field(default=[], alias="Transcript")
    segments: list[_Segment] = Field(default=[], alias="Segments")


def recognise(head: bytes, name: str) -> bool:  # noqa: ARG001
    """Return whether a file is an analysis; its transcript may start after `head`."""
    paths = find_paths(head)
    return (
        {"Transcript.Content", "Transcript.BeginOffsetMillis"} <= paths
        or {"Transcript.Content", "Transcript.ParticipantId"} <= paths
        or {"Segments.Transcript.Content", "Segments.Transcript.ParticipantId"} <= paths
        or {"Participants", "LanguageCode", "ConversationCharacteristics"} <= paths
    )


def read(file: BinaryIO, id: str) -> Iterator[dict[str, Any]]:
    """Yield the calls and chats; a speaker is the role of a participant, e.g. AGENT."""
    for own_id, analysis in read_records(file, _Analysis, id):
        roles = {participant.id: participant.role for participant in analysis.participants}
        live = [segment.transcript for segment in analysis.segments if segment.transcript]
        yield keep_known(
            {
                "id": analysis.contact_id or analysis.job_name or own_id,
                "channel": analysis.channel,
                "language": analysis.language,
                "duration_ms": analysis.characteristics.duration_ms,
                "categories": analysis.categories.names,
            }
        ) | {"turns": drop_empty(_make_turn(entry, roles) for entry in analysis.entries or live)}


def _make_turn(entry: _Entry, roles: dict[str, str | None]) -> dict[str, Any]:
    speaker = entry.role or roles.get(entry.participant or "") or entry.participant
    return make_turn(
        entry.content,
        speaker,
        (entry.start_ms, entry.end_ms),
        [Word(item.content, item.start_ms, item.end_ms) for item in entry.items],
        participant=entry.participant if entry.participant != speaker else None,
        sentiment=entry.sentiment,
        time=entry.time,
    )


CONTACT_LENS = Format("contact-lens", recognise, read)
