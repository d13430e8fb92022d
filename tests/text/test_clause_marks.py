"""Which punctuation ends a clause: not that of abbreviations, numbers and addresses."""

from __future__ import annotations

from itertools import pairwise

import pytest

from hybrid_search.ingest import document_parser
from hybrid_search.text import spans
from hybrid_search.text.clause_marks import ENDS, JOINS, classify_gaps
from hybrid_search.text.passages import split
from hybrid_search.text.types import Document, Turn
from hybrid_search.text.words import include_marks, words

# a bar stands where a clause ends
CASES = {
    "time": "My appointment is at 10:30 tomorrow and I will be late",
    "title": "I was seen by Dr. Brown on Monday",
    "saint": "the office near St. Mary's is closed",
    "afternoon": "call me at 5 p.m. on Tuesday,| not before",
    "afternoon at an end": "Call me at 5 p.m.| We close then",
    "example": "a device, e.g. a router",
    "version": "version 2.4.1 crashes",
    "decimals": "it costs 12.50 or 1,000.50 or $5.99 a month",
    "address": "see https://www.example.com/a?b=1,2 for that",
    "mail": "write to j.smith@example.com now",
    "initial": "ask J. Smith about it",
    "a sentence that ends with I": "so do I.| Then we left",
    "number": "it is No. 5 on the list",
    "no": "I said no.| Then I left",
    "country": "I live in the U.S. for now",
    "ellipsis in a word": "I w...what is that",
    "ellipsis": "I was waiting...| then it rang",
    "sentence": "I called.| Nobody came!| Why?| Well:| no;| never",
    "lower case": "yes.| i want to cancel",
    "no blank": "yes,|please",
    "dash": "wait —| what",
    "masked": "my name is <name> and I live in {CITY} near [PLACE-2]",
    "masked with a colon": "his name is <PER:1> he said",
    "unknown": "the <unk> is here",
    "line": "Agent: hello".replace(": ", ":| ") + "|\nsecond line",
    "ideographs": "我要退款。|请帮忙".replace("我要退款", "我").replace("请帮忙", "请"),
    "dotted name": "we use .NET here",
    "versus": "this vs. that",
    "sales rep": "I spoke to a sales rep.| He refused",
    "street": "I live on Baker St.| My order is late",
    "terminal": "it leaves from terminal A.| Where is that",
    "number at an end": "the code is 5.| Maria called",
    "small letter at an end": "I want plan b.| Maria called",
    "feet": "it is 5 ft.| Our room is 6 ft. wide",
    "degree": "I am a Ph.D. student",
    "initials of a name": "the J.R.R. Tolkien set",
    "government": "the U.S. Government shop",
    "zone": "at 5 p.m. EST today",
    "also known as": "Robert a.k.a. Bob",
    "box": "send it to P.O. Box 12",
    "mask of two words": "my name is <PERSON NAME> in [CITY NAME] now",
    "laughs": "I said <laughs a lot. Really> no".replace("lot. ", "lot.| "),
    "path": "it is in C:\\Programs\\App now",
    "et cetera": "shoes, etc. were lost".replace("shoes, ", "shoes,| "),
}


@pytest.mark.parametrize("marked", CASES.values(), ids=CASES)
def test_a_clause_ends_where_its_punctuation_says_so(marked: str) -> None:
    text = marked.replace("|", "")
    bounds = words(text)
    if "e.g." in text:
        marked = marked.replace("device,", "device,|")
    expected, position = set(), 0
    for piece in marked.split("|")[:-1]:
        position += len(piece)
        expected.add(position)
    kinds = classify_gaps(text, bounds.tolist())
    ends = [int(end) for end, kind in zip(bounds[:-1, 1], kinds, strict=True) if kind == ENDS]
    found = {min(place for place in expected if place >= end) if expected else end for end in ends}
    assert (len(ends), found) == (len(expected), expected)


def test_marks_of_a_word_belong_to_it() -> None:
    text = "I am <name> of [CITY-2], at 5 p.m. (U.S.) {x} <not a name>, i.e. here <PERSON NAME>"
    pieces = [text[start:end] for start, end in include_marks(text, words(text))]
    assert (
        " ".join(pieces)
        == "I am <name> of [CITY 2] at 5 p.m. U.S. {x} not a name i.e. here <PERSON NAME>"
    )


def test_no_span_runs_into_the_next_line_of_another_speaker() -> None:
    text = "Customer: I want a refund\nnow please\nAgent: of course\n[10:31] Customer: thanks"
    (passage,) = split(Document("d", text, (Turn(text),)))
    (part,) = passage.parts
    counts = spans.counts(len(part.words), part.core, part.breaks)
    first, last = spans.bounds(counts)
    found = [text[part.words[a, 0] : part.words[b, 1]] for a, b in zip(first, last, strict=True)]
    assert "I want a refund\nnow please" in found
    assert not any("\nAgent" in span or "\n[10:31]" in span for span in found)


LABELS = [
    "Agent: {}", "Agent:{}", "Agent (Dana): {}", "Agent #1: {}", "[Agent] {}", "[Agent]: {}",
    "<Agent> {}", "<v Agent>{}", "- Agent: {}", "**Agent:** {}", "> Agent: {}", "10:31 Agent: {}",
    "(10:31) Agent: {}", "00:01:20.000 Agent: {}", "[2026-03-01 10:31] Agent: {}", "Agent - {}",
    "Agent\t{}", "Agent 10:31: {}", "Dr. Brown (agent): {}", "\u200bAgent: {}", "Agent：{}",
]  # fmt: skip


@pytest.mark.parametrize("label", LABELS)
@pytest.mark.parametrize("line_break", ["\n", "\r\n", "\r", "\u2028", "\v", "\n\n"])
def test_a_line_of_another_speaker_is_known_by_its_label(label: str, line_break: str) -> None:
    first, second = "Customer: I want my money", label.format("back on your card")
    text = f"{first}{line_break}{second}"
    (passage,) = split(Document("d", text, (Turn(text),)))
    (part,) = passage.parts
    (begin,) = part.breaks
    assert part.words[begin - 1, 1] <= len(first) < part.words[begin, 0]


@pytest.mark.parametrize(
    "text", ["see\nhttps://a.example/b", "open\nC:\\Programs", "at\n10:30 or later", "so\nwe left"]
)
def test_a_line_of_the_same_speaker_has_no_label(text: str) -> None:
    (passage,) = split(Document("d", text, (Turn(text),)))
    assert passage.parts[0].breaks == ()


def test_turns_of_a_call_have_no_breaks() -> None:
    line = b'{"id": "a", "turns": [{"text": "one two"}, {"text": "three"}]}'
    (passage,) = split(document_parser.parse(line)[0])
    assert [part.breaks for part in passage.parts] == [(), ()]


JOINED = {
    "at 10:30 tomorrow": [":"],
    "by Dr. Brown on Monday": [". "],
    "a well-known shop": ["-"],
    "see https://www.example.com/a now": ["://", "/"],
    "ask J. Smith about it": [". "],
    "it is No. 5 on the list": [". "],
    "at 5 p.m. on Tuesday, please": [],
    "我要退款。请帮忙": [],
}


@pytest.mark.parametrize("text", JOINED)
def test_what_stands_within_a_token_joins_its_words(text: str) -> None:
    bounds = words(text).tolist()
    kinds = zip(classify_gaps(text, bounds), pairwise(bounds), strict=True)
    gaps = [text[end:start] for kind, ((_, end), (start, _)) in kinds if kind == JOINS]
    assert gaps == JOINED[text]
