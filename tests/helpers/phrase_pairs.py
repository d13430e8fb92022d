"""Pairs of phrases in sentences, as PiC's phrase similarity has them."""

from __future__ import annotations


def make_pair(second: str, label: int, sentence: str = "a {} one") -> dict[str, object]:
    """Return the pair of "big" and another phrase; a label of 1 says that they mean the same."""
    return {
        "phrase1": "big",
        "phrase2": second,
        "sentence1": sentence.format("big"),
        "sentence2": sentence.format(second),
        "label": label,
    }
