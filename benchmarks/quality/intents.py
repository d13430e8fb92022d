"""Intents by name: how well the name of an intent, and other phrasings of it, find its requests.

The names are those of the data sets, as words. The other phrasings stand in ``phrasings.json``;
they were written for this measure, before any model had been asked: in other words, and in words
that hardly anybody says. Intents that models are trained on (`part` train) are left out, queries
and requests.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import regex

from benchmarks.quality.measures import MAP, R_PRECISION
from benchmarks.quality.tasks import rows
from benchmarks.quality.text_ranking import Rankings, rank_texts, summarise
from hybrid_search.encoder import Encoder

REQUESTS = 40
"""Requests of an intent that are ranked, at most; banking77 and clinc150 have 81 to 220."""

SEED = 20

PHRASINGS = Path(__file__).with_name("phrasings.json")
NAME, OTHER_WORDS, RARE_WORDS = WORDINGS = ("name", "other words", "words that nobody says")
MEASURES = (MAP, R_PRECISION)

_WORD_STARTS = regex.compile(r"(?<=[a-z])(?=[A-Z])|_")


@dataclass(frozen=True, slots=True)
class Request:
    """What somebody said, and the intent that it was labelled with."""

    text: str
    intent: str


@dataclass(frozen=True, slots=True)
class RequestSet:
    """The file of some requests below the data folder, and which of its rows are measured."""

    file: str
    selects: Callable[[Mapping[str, Any]], bool] = lambda row: row.get("part") == "dev"


SETS = {
    "natcs_utterances": RequestSet("natcs_utterances/utterances.jsonl", lambda _: True),
    "banking77": RequestSet("banking77/banking77.jsonl.gz"),
    "clinc150": RequestSet("clinc150/clinc150.jsonl.gz"),
}


def measure(encoder: Encoder, data: Path) -> dict[str, Any]:
    """Return figures of every wording of the intents of every set; intervals are over intents."""
    phrasings = json.loads(PHRASINGS.read_text(encoding="utf-8"))["phrasings"]
    return {"sets": {name: _measure_set(encoder, data, name, phrasings[name]) for name in SETS}}


def _measure_set(
    encoder: Encoder, data: Path, name: str, phrasings: Mapping[str, tuple[str, str]]
) -> dict[str, Any]:
    requests = read(data, name)
    texts = [request.text for request in requests]
    intents = sorted({request.intent for request in requests})
    right = [find_requests(requests, intent) for intent in intents]
    names = [spell_name(intent) for intent in intents]
    other_words, rare_words = zip(*(phrasings[intent] for intent in intents), strict=True)
    ranked = rank_texts(encoder, texts, [*names, *other_words, *rare_words])
    return {
        "requests": len(requests),
        "intents": len(intents),
        "wordings": {
            wording: {
                system: summarise(_select(rankings, number, len(intents)), right, MEASURES)
                for system, rankings in ranked.items()
            }
            for number, wording in enumerate(WORDINGS)
        },
    }


def _select(rankings: Rankings, number: int, size: int) -> Rankings:
    """Return the rankings of one wording of all intents."""
    return rankings[number * size : (number + 1) * size]


def read(data: Path, name: str) -> list[Request]:
    """Return the requests of a set that are ranked, at most `REQUESTS` of an intent."""
    request_set = SETS[name]
    measured_rows = filter(request_set.selects, rows(data / request_set.file))
    return draw(Request(row["text"], row["intent"]) for row in measured_rows)


def draw(requests: Iterable[Request], most: int = REQUESTS) -> list[Request]:
    """Return at most `most` requests of an intent, drawn by a digest; always the same ones."""
    by_intent: dict[str, list[Request]] = {}
    for request in requests:
        by_intent.setdefault(request.intent, []).append(request)
    return [
        request
        for _, of_intent in sorted(by_intent.items())
        for request in sorted(of_intent, key=_digest)[:most]
    ]


def _digest(request: Request) -> str:
    return hashlib.sha256(f"{SEED} {request.text}".encode()).hexdigest()


def find_requests(requests: Iterable[Request], intent: str) -> frozenset[int]:
    """Return the numbers of the requests of an intent."""
    return frozenset(number for number, request in enumerate(requests) if request.intent == intent)


def spell_name(intent: str) -> str:
    """Return the name of an intent as words in lower case: ``GetQuote`` is "get quote"."""
    return _WORD_STARTS.sub(" ", intent).lower()
