"""Written topics as triples: each phrasing with each turn that says it and one that does not.

A topic is a JSON line with `topic`, `domain`, `phrases`, `says` and `near`, as in
``shared/data/written``.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from benchmarks.quality.written import DEV_DOMAINS
from export.training.data import Triple


def is_topic(row: Mapping[str, Any]) -> bool:
    """Tell whether a row of a file of triples is a written topic."""
    return "says" in row


def expand_topic(row: Mapping[str, Any]) -> Iterator[Triple]:
    """Yield every phrasing of a topic with every turn that says it; none for a dev trade.

    The turns that only look so take turns as negatives.
    """
    if row["domain"] in DEV_DOMAINS:
        return
    intent, _, _ = row["topic"].partition(".")  # which a topic has in all languages
    near_turns, family = row["near"], name_family(row["domain"])
    for number, phrase in enumerate(row["phrases"].values()):
        for place, turn in enumerate(row["says"], number):
            text, near = turn["text"], near_turns[place % len(near_turns)]
            span = find_place(text, turn["span"])
            core = find_place(text, turn["core"], span[0])
            yield Triple(phrase, text, near["text"], span, intent, core, family, row["domain"])


def find_place(text: str, part: str, first: int = 0) -> tuple[int, int]:
    """Return start and end of `part` in `text`, at or behind `first`."""
    start = text.index(part, first)
    return start, start + len(part)


def name_family(domain: str) -> str:
    """Return the domain, with all of what occurs in any call, or differs finely, as one."""
    family = domain.partition("_")[0]
    return family if family in ("any", "fine") else domain
