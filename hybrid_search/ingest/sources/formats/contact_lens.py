"""Amazon Contact Lens and Transcribe Call Analytics: the analysis of a call or chat.

https://docs.aws.amazon.com/connect/latest/adminguide/contact-lens-example-output-files.html
https://docs.aws.amazon.com/connect/latest/APIReference/API_connect-contact-lens_Transcript.html
https://docs.aws.amazon.com/transcribe/latest/dg/call-analytics-batch.html
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
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


def build(analysis: Any, id: str) -> Iterator[dict[str, Any]]:
    """Yield the call or chat; a speaker is the role of a participant, e.g. AGENT."""
    roles = {
        participant["ParticipantId"]: participant.get("ParticipantRole")
        for participant in analysis.get("Participants") or ()
    }
    segments = (segment.get("Transcript") for segment in analysis.get("Segments") or ())
    entries = analysis.get("Transcript") or filter(None, segments)
    length = analysis.get("ConversationCharacteristics") or {}
    fields = {
        "id": analysis.get("ContactId") or analysis.get("JobName") or id,
        **pick(analysis, channel="Channel", language="LanguageCode"),
        "duration_ms": length.get("TotalConversationDurationMillis"),
        "categories": (analysis.get("Categories") or {}).get("MatchedCategories"),
    }
    yield make_document(fields, (_make_turn(entry, roles) for entry in entries))


def _make_turn(entry: Any, roles: Mapping[str, str | None]) -> Turn:
    participant = entry.get("ParticipantId")
    speaker = entry.get("ParticipantRole") or roles.get(participant) or participant
    facts = pick(entry, sentiment="Sentiment", time="AbsoluteTime")
    if participant != speaker:
        facts["participant"] = participant
    words = [Word(item["Content"], _times(item)) for item in entry.get("Items") or ()]
    return make_turn(entry.get("Content"), speaker, _times(entry), words, **facts)


def _times(item: Any) -> Times:
    return item.get("BeginOffsetMillis"), item.get("EndOffsetMillis")


CONTACT_LENS = json_format(
    "contact-lens",
    build,
    {"Transcript.Content", "Transcript.BeginOffsetMillis"},
    {"Transcript.Content", "Transcript.ParticipantId"},
    {"Segments.Transcript.Content", "Segments.Transcript.ParticipantId"},
    # the transcript may start behind the bytes that are looked at
    {"Participants", "LanguageCode", "ConversationCharacteristics"},
)
