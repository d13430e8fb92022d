"""Names that say nothing about what they hold, and function names that are no verbs."""

from __future__ import annotations

FILLERS = frozenset(
    (
        "all_",
        "answered",
        "asked",
        "back",
        "began",
        "begun",
        "brought",
        "called",
        "came",
        "chosen",
        "coming",
        "done",
        "due",
        "each",
        "far",
        "found",
        "given",
        "gone",
        "got",
        "heard",
        "held",
        "here",
        "it",
        "kept",
        "known",
        "left",
        "like",
        "likely",
        "listed",
        "looked",
        "made",
        "many",
        "meant",
        "met",
        "named",
        "near",
        "one",
        "ones",
        "other",
        "others",
        "over",
        "owed",
        "passed",
        "put",
        "said",
        "sent",
        "shown",
        "some",
        "such",
        "taken",
        "that",
        "there",
        "these",
        "thing",
        "this",
        "those",
        "told",
        "under",
        "wanted",
        "what",
        "which",
        "who",
        "whole",
    )
)
"""Words that could mean anything. A binding of one of them counts as a filler name."""

PARTICIPLES = frozenset(
    (
        "begun",
        "bound",
        "built",
        "chosen",
        "done",
        "drawn",
        "found",
        "given",
        "gone",
        "grown",
        "held",
        "kept",
        "known",
        "laid",
        "left",
        "lost",
        "made",
        "met",
        "put",
        "said",
        "sent",
        "shown",
        "spelled",
        "spelt",
        "split_",
        "spoken",
        "taken",
        "told",
        "written",
    )
)
"""Irregular participles. Regular ones end in "ed" and need no list."""

PREPOSITIONS = frozenset(
    (
        "at",
        "beside",
        "by",
        "of",
        "over",
        "under",
        "with_",
        "within",
        "without",
    )
)

NOUNS_IN_ED = frozenset(
    (
        "bed",
        "embed",
        "feed",
        "need",
        "red",
        "seed",
        "shed",
        "speed",
    )
)
"""Words that end in "ed" without being participles."""


def is_filler(name: str) -> bool:
    """Tell whether a bound name is one of `FILLERS`, leading and trailing underscores aside."""
    return name.strip("_") in FILLERS or name in FILLERS


def is_bare_participle(name: str) -> bool:
    """Tell whether a function is named by one participle or preposition and no verb."""
    word = name.strip("_")
    if word in PARTICIPLES or word in PREPOSITIONS:
        return True
    return word.isalpha() and len(word) > 4 and word.endswith("ed") and word not in NOUNS_IN_ED
