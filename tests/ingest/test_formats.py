"""Readers of other systems' files: what each of them says is in the documents, and only there."""

from __future__ import annotations

import io
import json
import re
from collections.abc import Iterable
from operator import itemgetter
from pathlib import Path
from typing import Any

import pytest

from hybrid_search.errors import InputError
from hybrid_search.ingest.document_parser import parse
from hybrid_search.ingest.sources import files
from hybrid_search.ingest.sources.formats import FORMATS
from hybrid_search.ingest.sources.formats.named_lines import split_speakers
from hybrid_search.ingest.sources.read_options import ReadOptions

EXPORTS = Path(__file__).parents[3] / "shared" / "data" / "exports"
BY_NAME = {kind.name: kind for kind in FORMATS}
HEAD = 64 * 1024


def recognise(data: bytes, name: str = "call") -> list[str]:
    return [kind.name for kind in FORMATS if kind.recognise(data[:HEAD], name)]


def read(data: bytes | str | list[Any] | dict[str, Any], name: str) -> list[dict[str, Any]]:
    """Return the documents of a file of the format `name`, which recognises it and no other."""
    if not isinstance(data, (bytes, str)):
        data = json.dumps(data)
    content = data.encode() if isinstance(data, str) else data
    assert recognise(content) == [name]
    documents = list(BY_NAME[name].read(io.BytesIO(content), "file"))
    for document in documents:  # none is refused
        parse(json.dumps(document).encode())
    return documents


def make_turn(
    text: str, start: int, end: int, word_times: list[list[int]] | None = None, **others: Any
) -> dict[str, Any]:
    """Return a turn as a document has it."""
    timed = {} if word_times is None else {"word_times": word_times}
    return {"text": text, "start_ms": start, "end_ms": end, **timed, **others}


def pick(items: Iterable[dict[str, Any]], *keys: str) -> list[Any]:
    """The values of one key of each item, or of several as tuples."""
    return list(map(itemgetter(*keys), items))


CONTACT_LENS = {
    "Participants": [
        {"ParticipantId": "p-1", "ParticipantRole": "AGENT"},
        {"ParticipantId": "p-2", "ParticipantRole": "CUSTOMER"},
    ],
    "Channel": "VOICE",
    "ContactId": "c-1",
    "LanguageCode": "en-GB",
    "Categories": {"MatchedCategories": ["refunds"], "MatchedDetails": {}},
    "ConversationCharacteristics": {"TotalConversationDurationMillis": 5000},
    "Transcript": [
        {
            "ParticipantId": "p-2",
            "Content": "Where is it?",
            "BeginOffsetMillis": 800,
            "EndOffsetMillis": 1900,
            "Sentiment": "NEGATIVE",
        },
        {"ParticipantId": "p-1", "Content": "  ", "BeginOffsetMillis": 1, "EndOffsetMillis": 2},
    ],
}


def test_contact_lens() -> None:
    (document,) = read(CONTACT_LENS, "contact-lens")
    said: dict[str, Any] = {"speaker": "CUSTOMER", "participant": "p-2", "sentiment": "NEGATIVE"}
    assert document == {
        "id": "c-1",
        "channel": "VOICE",
        "language": "en-GB",
        "duration_ms": 5000,
        "categories": ["refunds"],
        "turns": [
            make_turn("Where is it?", 800, 1900, **said),
        ],
    }


def test_a_live_contact_and_call_analytics_are_contact_lens_too() -> None:
    entry = {"ParticipantId": "AGENT", "ParticipantRole": "AGENT", "Content": "Hello."}
    (live,) = read({"Segments": [{"Transcript": entry}, {"Categories": {}}]}, "contact-lens")
    assert live == {"id": "file", "turns": [{"speaker": "AGENT", "text": "Hello."}]}
    items = [
        {"Content": "Good", "BeginOffsetMillis": 100, "EndOffsetMillis": 300},
        {"Content": "day", "BeginOffsetMillis": 300, "EndOffsetMillis": 500},
        {"Content": "."},
    ]
    times = {"BeginOffsetMillis": 100, "EndOffsetMillis": 500}
    spoken = {"ParticipantRole": "AGENT", "Content": "Good day.", "Items": items, **times}
    (call,) = read({"JobName": "job-1", "Transcript": [spoken]}, "contact-lens")
    assert call["id"] == "job-1"
    assert call["turns"][0]["word_times"] == [[0, 4, 100, 300], [5, 8, 300, 500]]


def make_item(content: str, start: str | None = None, end: str | None = None, **labels: str) -> Any:
    times = {"start_time": start, "end_time": end} if start else {}
    kind = "pronunciation" if start else "punctuation"
    alternatives = [{"content": content, "confidence": "0.99"}]
    return {"type": kind, "alternatives": alternatives, **times, **labels}


def test_transcribe_with_speaker_labels() -> None:
    """Older outputs name the speaker of a segment only, and not that of an item."""
    items = [
        make_item("Hello", "0.8", "1.1"),
        make_item(".", None),
        make_item("My", "1.5", "1.7"),
        make_item("parcel", "1.7", "2.25"),
    ]
    segments = [
        {"start_time": "0.8", "end_time": "1.2", "speaker_label": "spk_0"},
        {"start_time": "1.5", "end_time": "2.3", "speaker_label": "spk_1"},
    ]
    results = {
        "transcripts": [{"transcript": "Hello. My parcel"}],
        "speaker_labels": {"speakers": 2, "segments": segments},
        "items": items,
    }
    (document,) = read({"jobName": "job-1", "results": results}, "transcribe")
    assert document == {
        "id": "job-1",
        "turns": [
            make_turn("Hello.", 800, 1100, [[0, 6, 800, 1100]], speaker="spk_0"),
            make_turn(
                "My parcel", 1500, 2250, [[0, 2, 1500, 1700], [3, 9, 1700, 2250]], speaker="spk_1"
            ),
        ],
    }


def test_transcribe_with_channels_or_without_any_label() -> None:
    first = [make_item("Hi", "0.1", "0.3"), make_item("Yes", "3.0", "3.2")]
    channels = [
        {"channel_label": "ch_0", "items": first},
        {"channel_label": "ch_1", "items": [make_item("Hello", "0.9", "1.2")]},
    ]
    transcripts = [{"transcript": "Hi Yes Hello"}]
    results: dict[str, Any] = {
        "transcripts": transcripts,
        "channel_labels": {"channels": channels},
        "items": [],
    }
    (document,) = read({"jobName": "job", "results": results}, "transcribe")
    expected = [("ch_0", "Hi"), ("ch_1", "Hello"), ("ch_0", "Yes")]
    assert pick(document["turns"], "speaker", "text") == expected
    results = {"transcripts": transcripts, "items": first}
    (document,) = read({"jobName": "job", "results": results}, "transcribe")
    assert pick(document["turns"], "text") == ["Hi", "Yes"]
    assert not any("speaker" in turn for turn in document["turns"])


def test_genesys() -> None:
    phrase = {
        "text": "i want it back",
        "decoratedText": "I want it back.",
        "confidence": 0.9,
        "offset": {"milliseconds": 800},
        "duration": {"milliseconds": 400},
        "participantPurpose": "external",
        "words": [
            {"word": "i", "offset": {"milliseconds": 800}, "duration": {"milliseconds": 90}},
            {"word": "want", "offset": {"milliseconds": 900}, "duration": {"milliseconds": 100}},
        ],
    }
    (document,) = read(
        {
            "conversationId": "c-1",
            "communicationId": "m-1",
            "mediaType": "Call",
            "startTime": 1772400000000,
            "transcripts": [{"transcriptId": "t", "language": "en-us", "phrases": [phrase]}],
        },
        "genesys",
    )
    assert document == {
        "id": "c-1",
        "communication": "m-1",
        "channel": "Call",
        "language": "en-us",
        "start_time": "2026-03-01T21:20:00+00:00",
        "turns": [
            make_turn(
                "I want it back.",
                800,
                1200,
                [[0, 1, 800, 890], [2, 6, 900, 1000]],
                speaker="external",
                confidence=0.9,
            )
        ],
    }


def test_recordings_of_genesys() -> None:
    base = {"conversationId": "c-1", "fileState": "AVAILABLE"}
    chat = {"body": "Hello", "from": "x", "participantPurpose": "customer", "utc": "2026-03-02"}
    message = {"messageText": "Hi", "purpose": "agent", "timestamp": "2026-03-03"}
    mail = {"textBody": "Dear all", "from": {"email": "a@b.c"}, "subject": "Refund"}
    documents = read(
        [
            {"id": "r-1", **base, "media": "chat", "transcript": [chat]},
            {"id": "r-2", **base, "media": "message", "messagingTranscript": [message]},
            {"id": "r-3", **base, "media": "email", "emailTranscript": [mail]},
        ],
        "genesys",
    )
    kinds = [("r-1", "c-1", "chat"), ("r-2", "c-1", "message"), ("r-3", "c-1", "email")]
    assert pick(documents, "id", "conversation", "channel") == kinds
    assert pick(documents, "turns") == [
        [{"speaker": "customer", "text": "Hello", "time": "2026-03-02"}],
        [{"speaker": "agent", "text": "Hi", "time": "2026-03-03"}],
        [{"speaker": "a@b.c", "text": "Dear all", "subject": "Refund"}],
    ]


def make_deepgram_word(word: str, start: float, speaker: int | None = None) -> dict[str, Any]:
    number = {} if speaker is None else {"speaker": speaker}
    return {
        "word": word.lower(),
        "punctuated_word": word,
        "start": start,
        "end": start + 0.2,
    } | number


DEEPGRAM: dict[str, Any] = {
    "metadata": {"request_id": "r-1", "created": "2026-03-02", "duration": 2.5, "channels": 1},
    "results": {
        "channels": [
            {
                "detected_language": "en",
                "alternatives": [
                    {
                        "transcript": "Hello. It broke.",
                        "words": [
                            make_deepgram_word("Hello.", 0.08, 0),
                            make_deepgram_word("It", 1.0, 1),
                            make_deepgram_word("broke.", 1.25, 1),
                        ],
                    }
                ],
            }
        ]
    },
}
SPOKEN = [
    make_turn("Hello.", 80, 280, [[0, 6, 80, 280]], speaker="0", channel=0),
    make_turn(
        "It broke.", 1000, 1450, [[0, 2, 1000, 1200], [3, 9, 1250, 1450]], speaker="1", channel=0
    ),
]


def test_deepgram_without_utterances() -> None:
    (document,) = read(DEEPGRAM, "deepgram")
    assert document == {
        "id": "r-1",
        "created": "2026-03-02",
        "duration_ms": 2500,
        "channels": 1,
        "language": "en",
        "turns": SPOKEN,
    }


def test_deepgram_with_utterances_an_object_a_line() -> None:
    words = DEEPGRAM["results"]["channels"][0]["alternatives"][0]["words"]
    utterances = [
        {"transcript": "Hello.", "start": 0.08, "end": 0.28, "channel": 0, "confidence": 0.9}
        | {"words": words[:1], "speaker": 0},
        {"transcript": "It broke.", "start": 1.0, "end": 1.45, "channel": 0, "confidence": 0.8}
        | {"words": words[1:], "speaker": 1},
    ]
    response = {**DEEPGRAM, "results": {**DEEPGRAM["results"], "utterances": utterances}}
    unnamed = {"results": response["results"]}
    first, second = read(f"{json.dumps(response)}\n\n{json.dumps(unnamed)}\n", "deepgram")
    confidences = [{**SPOKEN[0], "confidence": 0.9}, {**SPOKEN[1], "confidence": 0.8}]
    assert first["turns"] == second["turns"] == confidences
    assert [first["id"], second["id"]] == ["r-1", "file-2"]


def test_the_channels_of_deepgram_are_speakers_in_the_order_in_which_they_speak() -> None:
    channels = [
        {"alternatives": [{"words": [make_deepgram_word("Hi", start) for start in (0.0, 5.0)]}]},
        {"alternatives": [{"words": [make_deepgram_word("Hello", 2.0)]}]},
    ]
    (document,) = read({"metadata": {}, "results": {"channels": channels}}, "deepgram")
    assert pick(document["turns"], "speaker", "start_ms") == [("0", 0), ("1", 2000), ("0", 5000)]


ASSEMBLYAI = {
    "id": "t-1",
    "status": "completed",
    "audio_url": "https://example.com/a.wav?key=secret",
    "language_code": "en",
    "audio_duration": 3,
    "confidence": 0.9,
    "acoustic_model": "assemblyai_default",
    "text": "Hello there.",
    "words": [
        {"text": "Hello", "start": 100, "end": 300, "speaker": "A"},
        {"text": "there.", "start": 300, "end": 500, "speaker": "A"},
    ],
}


def test_assemblyai_with_and_without_utterances() -> None:
    """Its address of the audio, which may hold a key, is left out."""
    utterance = {"speaker": "A", "text": "Hello there.", "start": 100, "end": 500}
    utterances = [{**utterance, "confidence": 0.8, "words": ASSEMBLYAI["words"]}]
    turn = make_turn("Hello there.", 100, 500, [[0, 5, 100, 300], [6, 12, 300, 500]], speaker="A")
    facts = {"id": "t-1", "language": "en", "duration_ms": 3000, "confidence": 0.9}
    assert read(ASSEMBLYAI, "assemblyai") == [{**facts, "turns": [turn]}]
    assert read({**ASSEMBLYAI, "utterances": utterances}, "assemblyai") == [
        {**facts, "turns": [{**turn, "confidence": 0.8}]}
    ]


def test_a_transcript_that_is_not_completed_is_refused() -> None:
    with pytest.raises(InputError, match="not completed"):
        read({**ASSEMBLYAI, "status": "queued", "text": None, "words": None}, "assemblyai")


def make_segment(start: float, end: float, text: str, **fields: Any) -> dict[str, Any]:
    return {"start": start, "end": end, "text": text, **fields}


def test_whisper_with_words() -> None:
    words = [
        {"word": " My", "start": 0.8, "end": 1.0},
        {"word": " parcel.", "start": 1.0, "end": 1.5},
    ]
    segment = make_segment(0.8, 1.5, " My parcel.", words=words, avg_logprob=-0.25)
    (document,) = read({"text": "", "segments": [segment], "language": "en"}, "whisper")
    turn = make_turn("My parcel.", 800, 1500, [[0, 2, 800, 1000], [3, 10, 1000, 1500]])
    assert document == {"id": "file", "language": "en", "turns": [turn | {"avg_logprob": -0.25}]}
    beside = {
        "task": "transcribe",
        "duration": 1.5,
        "segments": [make_segment(0.8, 1.5, "My parcel.")],
    }
    (document,) = read({**beside, "words": words}, "whisper")  # OpenAI's verbose_json
    assert document == {"id": "file", "duration_ms": 1500, "turns": [turn]}


def test_whisperx_has_speakers_and_words_without_times() -> None:
    words = [
        {"word": "I", "start": 0.0, "end": 0.1, "score": 0.9, "speaker": "SPEAKER_01"},
        {"word": "paid"},
        {"word": "50"},
        {"word": "twice.", "start": 1.0, "end": 1.4, "score": 0.8},
    ]
    segment = make_segment(0.0, 1.4, "I paid 50 twice.", words=words, speaker="SPEAKER_01")
    (document,) = read({"segments": [segment], "word_segments": words}, "whisper")
    (turn,) = document["turns"]
    assert turn["speaker"] == "SPEAKER_01"
    assert turn["word_times"] == [[0, 1, 0, 100], [10, 16, 1000, 1400]]


def test_whisper_cpp() -> None:
    segment = {"text": " Hello.", "offsets": {"from": 0, "to": 700}, "timestamps": {}}
    (document,) = read({"result": {"language": "en"}, "transcription": [segment]}, "whisper")
    turn = {"text": "Hello.", "start_ms": 0, "end_ms": 700}
    assert document == {"id": "file", "language": "en", "turns": [turn]}


def test_a_sentence_that_segments_cut_is_one_turn() -> None:
    """A turn ends with a sentence, before a pause of more than 200 ms, or with its speaker."""
    segments = [
        make_segment(0.0, 0.9, "so my suit"),
        make_segment(1.0, 1.9, "case never came."),
        make_segment(1.9, 2.4, "I want"),
        make_segment(3.0, 3.5, "my money"),
        make_segment(3.5, 4.0, "sure", speaker="agent"),
    ]
    (document,) = read({"segments": segments}, "whisper")
    assert document["turns"] == [
        make_turn("so my suit case never came.", 0, 1900, [[0, 10, 0, 900], [11, 27, 1000, 1900]]),
        {"text": "I want", "start_ms": 1900, "end_ms": 2400},
        {"text": "my money", "start_ms": 3000, "end_ms": 3500},
        {"speaker": "agent", "text": "sure", "start_ms": 3500, "end_ms": 4000},
    ]


def test_webvtt() -> None:
    cues = [
        "WEBVTT - a title",
        "NOTE nobody says this",
        "STYLE\n::cue {color: red}",
        "1\n00:00.800 --> 00:03.460 align:start\n<v Agent>fish &amp; <b>chips</b>,\nhow can I?</v>",
        "00:00:04.060 --> 00:00:07.860\n"
        "<v.loud Jane Doe>just <00:00:05.000>one.</v>\n<v Bob>Hey.</v>",
        "01:00:00.000 --> 01:00:01.000\nnobody says who",
    ]
    (document,) = read("\n\n".join(cues) + "\n", "webvtt")
    assert document["turns"] == [
        {"speaker": "Agent", "text": "fish & chips, how can I?", "start_ms": 800, "end_ms": 3460},
        {"speaker": "Jane Doe", "text": "just one.", "start_ms": 4060, "end_ms": 7860},
        {"speaker": "Bob", "text": "Hey.", "start_ms": 4060, "end_ms": 7860},
        {"text": "nobody says who", "start_ms": 3_600_000, "end_ms": 3_601_000},
    ]


def test_subrip() -> None:
    cues = [
        "1\n00:00:00,800 --> 00:00:01,180\nAgent: <i>Hi!</i>",
        "2\n00:00:02,000 --> 00:00:03,000\nCustomer: Order: 17\nsecond line.",
        "3\n00:00:03,100 --> 00:00:04,000\nAgent: Thanks.",
    ]
    (document,) = read("\ufeff" + "\r\n\r\n".join(cues).replace("\n", "\r\n"), "srt")
    assert document["turns"] == [
        {"speaker": "Agent", "text": "Hi!", "start_ms": 800, "end_ms": 1180},
        {"speaker": "Customer", "text": "Order: 17 second line.", "start_ms": 2000, "end_ms": 3000},
        {"speaker": "Agent", "text": "Thanks.", "start_ms": 3100, "end_ms": 4000},
    ]


def test_plain_text() -> None:
    assert recognise(b"Agent: hello", "call.txt") == ["text"]
    assert recognise(b"Agent: hello", "call.log") == []
    (document,) = BY_NAME["text"].read(io.BytesIO("\ufeffHäuser\n".encode()), "a")
    assert document == {"id": "a", "text": "Häuser\n"}
    with pytest.raises(InputError, match="not UTF-8"):
        list(BY_NAME["text"].read(io.BytesIO("Häuser".encode("cp1252")), "a"))


@pytest.mark.parametrize(
    ("text", "turns"),
    [
        (
            "Agent: Hi!\nCustomer: My order\nOrder ID: 17 is late.\nAgent: Sorry.",
            ["Agent|Hi!", "Customer|My order\nOrder ID: 17 is late.", "Agent|Sorry."],
        ),
        ("Agent: Hello.\nCustomer: Hi.", ["Agent|Hello.", "Customer|Hi."]),
        ("Dr. O'Neil (RN): a\n\nJosé: b\nJosé: c", ["Dr. O'Neil (RN)|a", "José|b", "José|c"]),
        ("Part 1:\nall\nPart 2: yes\nPart 1: no", ["Part 1|all", "Part 2|yes", "Part 1|no"]),
    ],
)  # fmt: skip
def test_lines_with_names_become_turns(text: str, turns: list[str]) -> None:
    split = split_speakers(text)
    assert split is not None
    assert [f"{turn['speaker']}|{turn['text']}" for turn in split] == turns


def test_a_time_before_a_name_is_that_of_the_turn() -> None:
    split = split_speakers("[00:01:20] Agent: Hi.\n1:25 Customer: Yes.\n[00:01:30] Agent: Good.")
    assert split is not None
    assert [turn["start_ms"] for turn in split] == [80_000, 85_000, 90_000]


@pytest.mark.parametrize(
    "text",
    [
        "",
        "I want my money back.",
        "Subject: refund\nDate: Monday\nHello, I want my money back.",
        "See https://example.com\nor call at 10:30",
        "Hello,\nAgent: a\nAgent: b",
        "\n".join(f"Key{number}: x\nKey{number}: y" for number in range(21)),
    ],
)
def test_other_texts_stay_texts(text: str) -> None:
    assert split_speakers(text) is None


MAILS = b"""From ann@example.com Mon Mar  2 10:20:30 2026
Message-ID: <1@example.com>
From: =?utf-8?q?Ann_B=C3=BCrk?= <ann@example.com>
To: help@shop.example
Subject: My
 refund
Date: Mon, 02 Mar 2026 10:20:30 +0100
Content-Type: text/plain; charset=utf-8
Content-Transfer-Encoding: quoted-printable

Where is my money, M=C3=BCller?

>From Monday on I wait.

From help@shop.example Tue Mar  3 10:20:30 2026
Message-ID: <2@shop.example>
In-Reply-To: <1@example.com>
Subject: Re: My refund
Content-Type: multipart/alternative; boundary=b

--b
Content-Type: text/plain

It is on its way.
--b
Content-Type: text/html

<p>It is on its way.</p>
--b--

From x Wed Mar  4 10:20:30 2026
Subject: no id
Content-Type: text/html; charset=unknown-8bit

<p>Only HTML</p>
"""


def test_mbox() -> None:
    first, second, third = read(MAILS, "mbox")
    assert first == {
        "id": "1@example.com",
        "subject": "My refund",
        "date": "2026-03-02T10:20:30+01:00",
        "from": "Ann Bürk <ann@example.com>",
        "to": "help@shop.example",
        "thread": "1@example.com",
        "text": "Where is my money, Müller?\n\nFrom Monday on I wait.",
    }
    assert (second["thread"], second["text"]) == ("1@example.com", "It is on its way.")
    assert (third["id"], third["text"]) == ("file-3", "<p>Only HTML</p>")


TICKET = {
    "id": 100,
    "subject": "return size",
    "description": "The shoes are too small.",
    "requester_id": 7,
    "status": "open",
    "priority": None,
    "tags": ["returns"],
    "via": {"channel": "email", "source": {}},
    "custom_fields": [{"id": 36, "value": "shop"}, {"id": 37, "value": None}],
    "satisfaction_rating": {"score": "good"},
    "created_at": "2026-03-02T10:20:30Z",
}
COMMENTS = [
    {"author_id": 7, "body": "The shoes are too small.", "public": True},
    {"author_id": 8, "body": "Send them back.", "public": False, "created_at": "2026-03-03"},
]
FACTS = {
    "id": "100",
    "channel": "email",
    "rating": "good",
    "custom_fields": {"36": "shop"},
    "subject": "return size",
    "status": "open",
    "tags": ["returns"],
    "requester_id": "7",
    "created_at": "2026-03-02T10:20:30Z",
}


def test_zendesk_tickets_in_an_export_of_json_lines() -> None:
    lines = [{**TICKET, "comments": COMMENTS}, {**TICKET, "id": 101}]
    first, second = read("\n".join(map(json.dumps, lines)), "zendesk")
    assert first == {
        **FACTS,
        "turns": [
            {
                "speaker": "end-user",
                "text": "The shoes are too small.",
                "public": True,
                "author_id": "7",
            },
            {
                "speaker": "agent",
                "text": "Send them back.",
                "created_at": "2026-03-03",
                "public": False,
                "author_id": "8",
            },
        ],
    }
    turns = [{"speaker": "end-user", "text": "The shoes are too small."}]
    assert second == {**FACTS, "id": "101", "turns": turns}


def test_zendesk_tickets_of_the_api_have_the_roles_of_their_users() -> None:
    users = [{"id": 7, "role": "end-user"}, {"id": 8, "role": "admin"}]
    ticket = {**TICKET, "comments": COMMENTS}
    for answer in ({"tickets": [ticket], "users": users}, {"ticket": ticket, "users": users}):
        (document,) = read(answer, "zendesk")
        assert pick(document["turns"], "speaker") == ["end-user", "admin"]


@pytest.mark.parametrize(
    "document",
    [
        {"id": "a", "text": "Transcript of a call with ContactId and audio_url"},
        {"id": "a", "turns": [{"speaker": "x", "text": "y", "words": [{"word": "y"}]}]},
        {"id": "a", "text": "x", "status": "open", "subject": "s", "requester_id": 1},
        {"id": "a", "text": "x", "segments": [{"start": 0, "end": 1, "text": "x"}]},
        {"id": "a", "text": "x", "conversationId": "c", "results": {"items": []}},
        {"id": "a", "text": "x", "Participants": [], "Transcript": "all", "Channel": "VOICE"},
        {"id": "a", "text": '{"results": {"channels": [{"alternatives": []}]}}'},
        {"text": "x", "nested": {"jobName": "j", "results": {"transcripts": []}}},
    ],
)  # fmt: skip
def test_an_ordinary_document_is_of_no_format(document: dict[str, Any]) -> None:
    assert recognise(json.dumps(document).encode()) == []
    assert recognise(json.dumps(document, indent=1).encode()) == []


def test_a_head_that_ends_anywhere_and_half_a_character_do_not_hide_a_format() -> None:
    entry = {"Content": "é\ud83d", "ParticipantId": "p", "Sentiment": "très négatif"}
    data = json.dumps({"Transcript": [entry]}, ensure_ascii=False).encode("utf-8", "replace")
    escaped = json.dumps({"Transcript": [entry]}).encode()
    for whole in (data, escaped):
        begin = whole.index(b'"Sentiment"')
        assert all(
            recognise(whole[:end]) == ["contact-lens"] for end in range(begin, len(whole) + 1)
        )


def test_the_second_line_of_a_file_does_not_count() -> None:
    lines = [json.dumps({"id": "a", "text": "x"}), json.dumps(CONTACT_LENS)]
    assert recognise("\n".join(lines).encode()) == []


@pytest.mark.parametrize("name", sorted(BY_NAME))
@pytest.mark.parametrize("data", [b"{", b"[1, 2]", b'{"results": 7}', b"\xff\xfe{", b"[" * 9999])
def test_what_is_not_of_the_format_is_one_error_of_the_input(name: str, data: bytes) -> None:
    Path("a").write_bytes(data)
    lines = list(files.read(["a"], ReadOptions(format=name)))
    assert not any(json.loads(line.data).get("turns") for line in lines if not line.fault)


@pytest.mark.data
@pytest.mark.parametrize("call", ["000", "001", "002"])
def test_subtitles_of_the_exports(call: str) -> None:
    """The files give speakers in two ways, and the same turns as the texts beside them."""
    lines = (EXPORTS / "txt" / f"call_{call}.txt").read_text().splitlines()
    spoken = [tuple(line.split(": ", 1)) for line in lines]
    for folder, name in (("vtt", "webvtt"), ("srt", "srt")):
        data = (EXPORTS / folder / f"call_{call}.{folder}").read_bytes()
        (document,) = read(data, name)
        assert pick(document["turns"], "speaker", "text") == spoken
        clocks = re.findall(r"00:(\d\d):(\d\d)[.,](\d{3})", data.decode())
        times = [60_000 * int(minute) + int(second + rest) for minute, second, rest in clocks]
        assert pick(document["turns"], "start_ms") == times[::2]
        assert pick(document["turns"], "end_ms") == times[1::2]


@pytest.mark.data
@pytest.mark.parametrize("call", ["000", "001", "002"])
def test_texts_of_the_exports_split_into_their_turns(call: str) -> None:
    text = (EXPORTS / "txt" / f"call_{call}.txt").read_text()
    turns = split_speakers(text)
    assert turns is not None
    assert "\n".join(f"{turn['speaker']}: {turn['text']}" for turn in turns) == text.rstrip("\n")
