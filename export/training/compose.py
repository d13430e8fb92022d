"""Texts for distillation: composed passages, short texts by themselves, and spans to look at.

A span should read as if it stood alone, whatever stands around it: so half of the passages have
neighbours that do not belong to it. Kinds: `natural`, consecutive sentences of one text;
`shuffled`, sentences of different texts; `woven`, a clause put into another text's sentence at a
comma or at its end; `single`, one sentence or turn. Short texts preserve the geometry of queries:
without them the vectors of short texts drift.
"""

from __future__ import annotations

import math
import re
from collections.abc import Callable
from dataclasses import dataclass
from random import Random

from export.training.data import Sampler, sentences
from export.training.recipe import Mixture
from export.training.texts import Text
from hybrid_search.text.spans import MAX_WORDS

WORDS = (10, 75)
"""The length of a composed passage, before it is cut to the recipe's window."""

SHORTER = 1.6
"""Lengths are ``ceil(MAX_WORDS * u ** SHORTER)``, u uniform.

Half of the spans have up to 7 words.
"""

ECHO_SHARE = (0.4, 1.0)
"""The share of a clause's words that stay in an echo of it."""

_CLAUSE = re.compile(r"[^,;:.!?()\"]+")
_LEADING = {
    "a",
    "an",
    "the",
    "this",
    "that",
    "these",
    "those",
    "it",
    "he",
    "she",
    "they",
    "we",
    "there",
    "his",
    "her",
    "their",
    "its",
    "some",
    "in",
}


@dataclass(frozen=True, slots=True)
class Composed:
    """A passage; `unit` are the characters of a clause that was put into it."""

    text: str
    unit: tuple[int, int] | None = None


class Composer:
    """Composes passages and short texts from what `sampler` draws."""

    def __init__(self, sampler: Sampler, mixture: Mixture) -> None:
        self._sampler = sampler
        kinds: dict[Callable[[Random], Composed], float] = {
            self._compose_natural: mixture.natural,
            self._compose_shuffled: mixture.shuffled,
            self._compose_woven: mixture.woven,
            self._compose_single: mixture.single,
        }
        self._kinds, self._weights = list(kinds), list(kinds.values())

    def passage(self, random: Random) -> Composed:
        """Return a passage of one of the kinds."""
        return random.choices(self._kinds, self._weights)[0](random)

    def short(self, random: Random) -> str:
        """Return a question, a run of words of some text, or one to three words of one."""
        triple = self._sampler.draw(random)
        kind = random.random()
        if kind < 0.4:
            return triple.query
        tokens = random.choice((triple.query, triple.positive, triple.negative)).split()
        length = min(len(tokens), _length(random) if kind < 0.75 else random.randint(1, 3))
        start = random.randint(0, len(tokens) - length)
        return " ".join(tokens[start : start + length]).strip(" ,;:.") or triple.query

    def echo(self, passage: Composed, random: Random) -> str:
        """Return a clause of `passage` with some words left out.

        It means about the same as some words of the passage.
        """
        clauses = [match.group().split() for match in _CLAUSE.finditer(passage.text)]
        tokens = random.choice(
            [clause for clause in clauses if len(clause) >= 3] or [passage.text.split()]
        )[:MAX_WORDS]
        share = random.uniform(*ECHO_SHARE)
        return " ".join(token for token in tokens if random.random() < share) or tokens[0]

    def _text(self, random: Random) -> str:
        triple = self._sampler.draw(random)
        return random.choice((triple.positive, triple.negative))

    def _compose_natural(self, random: Random) -> Composed:
        parts = sentences(self._text(random))
        return Composed(_join_up_to(parts[random.randrange(len(parts)) :], random.randint(*WORDS)))

    def _compose_shuffled(self, random: Random) -> Composed:
        size, parts = random.randint(25, WORDS[1]), list[str]()
        while sum(len(part.split()) for part in parts) < size:
            parts.append(random.choice(sentences(self._text(random))))
        return Composed(_join_up_to(parts, size))

    def _compose_woven(self, random: Random) -> Composed:
        host = sentences(self._text(random))
        place = random.randrange(len(host))
        clause = _as_clause(random.choice(sentences(self._text(random))), random)
        before = " ".join(host[max(0, place - random.randint(0, 2)) : place])
        start = f"{before} " if before else ""
        commas = [match.start() for match in re.finditer(r",\s", host[place])]
        at = (
            random.choice(commas)
            if commas and random.random() < 0.7
            else len(host[place].rstrip(".!? "))
        )
        first_half, second_half = host[place][:at], host[place][at:]
        glue = (
            ", "
            if random.random() < 0.7
            else random.choice((", and ", ", while ", " and ", " because ", " - "))
        )
        start += first_half + glue
        after = " ".join(host[place + 1 : place + 1 + random.randint(0, 3)])
        text = f"{start}{clause}{second_half} {after}".strip()
        return Composed(text, (len(start), len(start) + len(clause)))

    def _compose_single(self, random: Random) -> Composed:
        return Composed(random.choice(sentences(self._text(random))))


def _join_up_to(parts: list[str], size: int) -> str:
    """Return complete parts up to about `size` words; at least one."""
    joined, count = parts[:1], len(parts[0].split())
    for part in parts[1:]:
        count += len(part.split())
        if count > size:
            break
        joined.append(part)
    return " ".join(joined)


def draw_clause(text: str, random: Random) -> str:
    """Return a sentence of `text` or a clause of one, at most `MAX_WORDS` words."""
    sentence = random.choice(sentences(text))
    if random.random() < 0.5 and len(sentence.split()) <= MAX_WORDS:
        return sentence
    pieces = [match.group().strip() for match in _CLAUSE.finditer(sentence)]
    fitting = [piece for piece in pieces if 2 <= len(piece.split()) <= MAX_WORDS]
    return random.choice(fitting or [" ".join(sentence.split()[:MAX_WORDS])])


def _as_clause(sentence: str, random: Random) -> str:
    """Return a sentence as a clause: no final stop, a leading determiner in lower case.

    Of a long sentence, one of its clauses.
    """
    clause = sentence.strip().rstrip(".!? ")
    if len(clause.split()) > MAX_WORDS:
        pieces = [match.group().strip() for match in _CLAUSE.finditer(clause)]
        fitting = [piece for piece in pieces if 2 <= len(piece.split()) <= MAX_WORDS]
        clause = random.choice(fitting or [" ".join(clause.split()[:MAX_WORDS])])
    first, _, rest = clause.partition(" ")
    return f"{first.lower()} {rest}" if first.lower() in _LEADING and rest else clause


def _length(random: Random) -> int:
    return max(1, math.ceil(MAX_WORDS * math.pow(random.random(), SHORTER)))


def spans(
    text: Text,
    unit: tuple[int, int] | None,
    count: int,
    whole_share: float,
    clause_share: float,
    random: Random,
) -> list[tuple[int, int]]:
    """Return up to `count` spans of whole words of `text`, (start, end) in characters.

    The `unit`, if there is one; the full text, with the probability `whole_share`; the rest drawn,
    none twice, in the share `clause_share` a complete sentence or clause.
    """
    word_offsets = text.words
    if not len(word_offsets):
        return []
    reach = int(word_offsets[-1, 1])
    drawn = dict.fromkeys(keep_uncut_unit(unit, reach))
    if random.random() < whole_share:
        drawn[int(word_offsets[0, 0]), reach] = None
    pieces = units(text, reach)
    for _ in range(3 * count):
        if len(drawn) >= count:
            break
        drawn[
            random.choice(pieces)
            if pieces and random.random() < clause_share
            else _draw_span(text, random)
        ] = None
    return list(drawn)[:count]


def _draw_span(text: Text, random: Random) -> tuple[int, int]:
    word_offsets = text.words
    length = min(_length(random), len(word_offsets))
    first = random.randint(0, len(word_offsets) - length)
    return int(word_offsets[first, 0]), int(word_offsets[first + length - 1, 1])


def keep_uncut_unit(unit: tuple[int, int] | None, reach: int) -> list[tuple[int, int]]:
    """Return the `unit`, if there is one and no part of it was cut off at `reach`."""
    return [unit] if unit and unit[0] < unit[1] <= reach else []


def units(text: Text, reach: int) -> list[tuple[int, int]]:
    """Return clauses and sentences of 2 to 20 words, without space and marks at their ends."""
    clauses = [match.span() for match in _CLAUSE.finditer(text.text)] + [
        match.span() for match in re.finditer(r"[^.!?]+", text.text)
    ]
    offsets = []
    for start, end in clauses:
        piece = text.text[start:end].strip()
        first = start + text.text[start:end].find(piece)
        if 2 <= len(piece.split()) <= MAX_WORDS and first + len(piece) <= reach:
            offsets.append((first, first + len(piece)))
    return offsets
