"""Marked examples put together from requests, sentences and answers of different texts."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from itertools import islice
from random import Random

from export.boundaries.corpora import Request, Row
from export.boundaries.marked import MarkedExample, mark_place
from hybrid_search.text.spans import MAX_WORDS

GLUES = (". ", ". ", ", ", ", and ", " and ", ", ", " so ", "? ", " ")
"""What stands between the requests of a turn, where a request has no mark at its end."""

NEIGHBOURS = (1, 1, 2, 3)
"""How many other requests a turn has."""

REQUEST_WORDS = (3, 20)
SENTENCE_WORDS = (5, 39)
CLAUSE_WORDS = (4, MAX_WORDS)

BY_NAME = 0.6
"""The share of the queries that are the intent's name; the rest are requests of the same intent."""

BETWEEN = 0.5
"""The share of the clauses that are woven between two sentences, not into one."""

ABRIDGED = 0.3
"""The share of the woven clauses that are asked for by themselves, with some words left out."""

REMAINING = 0.8
"""The share of a clause's words that stay when it is abridged."""

_SENTENCE_END = re.compile(r"(?<=[.!?]) ")
_QUOTES = re.compile(r"``\s?|\s?''")


def compose_turns(requests: Sequence[Request], count: int, random: Random) -> list[MarkedExample]:
    """Return turns of several requests, of which the one with the query's intent is marked."""
    usable = [request for request in requests if _has_length(request.text, REQUEST_WORDS)]
    return list(islice(_draw_turns(usable, random), count))


def _draw_turns(requests: Sequence[Request], random: Random) -> Iterator[MarkedExample]:
    texts: dict[str, list[str]] = {}
    for request in requests:
        texts.setdefault(request.intent, []).append(request.text)
    intents = sorted(texts)
    while len(intents) > 1:
        intent, *neighbours = random.sample(
            intents, min(len(intents), 1 + random.choice(NEIGHBOURS))
        )
        target, sibling = random.choice(texts[intent]), random.choice(texts[intent])
        query = intent if random.random() < BY_NAME else sibling
        parts = [random.choice(texts[neighbour]) for neighbour in neighbours]
        place = random.randint(0, len(parts))
        parts.insert(place, target)
        example = _join_parts(query, parts, place, random)
        if example and query != target:
            yield example


def _join_parts(
    query: str, parts: Sequence[str], place: int, random: Random
) -> MarkedExample | None:
    """Return the turn of some parts, of which the one at `place` is marked."""
    text, start = "", 0
    for number, part in enumerate(parts):
        if text:
            text += " " if text[-1] in ".?!" else random.choice(GLUES)
        if number == place:
            start = len(text)
        text += part
    return mark_place(query, text, start, start + len(parts[place]))


def weave_sentences(
    pairs: Sequence[Row], hosts: Sequence[str], count: int, random: Random
) -> list[MarkedExample]:
    """Return paragraphs into which a sentence of unrelated meaning was woven, which is marked.

    Args:
        pairs: Rows with a sentence (``query``) and a longer one that says the same, the query.
        hosts: The paragraphs.
        count: The number of examples.
        random: Draws.
    """
    usable = [row for row in pairs if _has_length(_tidy(row["query"]), CLAUSE_WORDS)]
    paragraphs = [sentences for text in hosts if len(sentences := _list_sentences(text)) > 1]
    return list(islice(_draw_woven(usable, paragraphs, random), count))


def _draw_woven(
    pairs: Sequence[Row], paragraphs: Sequence[list[str]], random: Random
) -> Iterator[MarkedExample]:
    while pairs and paragraphs:
        pair = random.choice(pairs)
        clause, query = _tidy(pair["query"]), _tidy(pair["positive"])
        if random.random() < ABRIDGED:
            query = _abridge(clause, random)
        sentences = random.choice(paragraphs)[: random.choice((2, 3, 4))]
        place = random.randrange(len(sentences))
        before, after = _open_place(sentences, place, random)
        text = before + clause + after
        example = mark_place(query, text, len(before), len(before) + len(clause))
        if example:
            yield example


def _open_place(sentences: Sequence[str], place: int, random: Random) -> tuple[str, str]:
    """Return the text before and after a place for a clause.

    In front of the sentence at `place`, or inside of it, behind a comma or at its end.
    """
    host, lead = sentences[place], "".join(f"{sentence} " for sentence in sentences[:place])
    if random.random() < BETWEEN:
        return lead, ". " + " ".join(sentences[place:])
    commas = [match.start() for match in re.finditer(", ", host)]
    at = random.choice(commas) if commas else len(host.rstrip(".!? "))
    return f"{lead}{host[:at]}, ", " ".join([host[at:], *sentences[place + 1 :]])


def mark_answers(rows: Sequence[Row], count: int, random: Random) -> list[MarkedExample]:
    """Return the sentences around an answer, which is marked, for its question."""
    shuffled = list(rows)
    random.shuffle(shuffled)
    examples = (_mark_answer(row) for row in shuffled if len(row["answers"]) == 1)
    return list(islice((example for example in examples if example), count))


def _mark_answer(row: Row) -> MarkedExample | None:
    (number,) = row["answers"]
    sentences = row["sentences"]
    answer = sentences[number].rstrip(" .!?")
    lead = "".join(f"{sentence} " for sentence in sentences[max(0, number - 2) : number])
    if not _has_length(answer, CLAUSE_WORDS):
        return None
    text = lead + " ".join(sentences[number : number + 2])
    return mark_place(row["question"], text, len(lead), len(lead) + len(answer))


def _abridge(clause: str, random: Random) -> str:
    return " ".join(word for word in clause.split() if random.random() < REMAINING) or clause


def _list_sentences(text: str) -> list[str]:
    sentences = _SENTENCE_END.split(text)
    return [sentence for sentence in sentences if _has_length(sentence, SENTENCE_WORDS)]


def _tidy(sentence: str) -> str:
    """Return a sentence of WikiSplit without its final stop, and marks joined to their words."""
    joined = re.sub(r" ([.,;:'])", r"\1", _QUOTES.sub("", sentence))
    return joined.strip(" .")


def _has_length(text: str, limits: tuple[int, int]) -> bool:
    least, most = limits
    return least <= len(text.split()) <= most
