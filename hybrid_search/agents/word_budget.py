"""A budget of words: cuts the texts in the answer to a query to what an agent has room for."""

from __future__ import annotations

from itertools import accumulate
from typing import Any

from hybrid_search.text.words import words

Hit = dict[str, Any]
"""A hit as JSON."""


def cut_texts(hits: list[Hit], max_words: int) -> tuple[list[Hit], dict[str, int]]:
    """Return hits with at most so many words in their texts, and how much is left out.

    The spans of all hits come first, then the texts of passages, both in the order of the hits. A
    span is whole or left out, and so is everything after it. Of a passage's text the words around
    its best span are left.
    """
    sizes = [_count_words(span["text"]) for hit in hits for span in hit["spans"]]
    spans_shown = sum(total <= max_words for total in accumulate(sizes))
    words_left = max_words - sum(sizes) if spans_shown == len(sizes) else 0
    cut_hits: list[Hit] = []
    for hit in hits:
        cut_hit = {**hit, "spans": hit["spans"][:spans_shown]}
        spans_shown -= len(cut_hit["spans"])
        if "text" in hit:
            cut_hit |= _cut_passage(hit, words_left)
            words_left -= _count_words(cut_hit["text"])
        cut_hits.append(cut_hit)
    spans, all_words = _count(hits)
    spans_kept, words_kept = _count(cut_hits)
    return cut_hits, {"spans": spans - spans_kept, "words": all_words - words_kept}


def _cut_passage(hit: Hit, most: int) -> Hit:
    """Return text, start and turns of a passage cut to so many words around its best span."""
    bounds = words(hit["text"], hit["start"])
    if len(bounds) <= most:
        return {}
    first = end = 0
    for span in hit["spans"][:1]:
        first = int(bounds[:, 0].searchsorted(span["start"]))
        end = int(bounds[:, 1].searchsorted(span["end"], side="right"))
    if not most or end - first > most:  # the span would not be whole
        return {"text": "", "turns": []}
    first = max(0, min(first - (most - (end - first)) // 2, len(bounds) - most))
    start, end = int(bounds[first, 0]), int(bounds[first + most - 1, 1])
    text = hit["text"][start - hit["start"] : end - hit["start"]]
    turns = [turn for turn in hit["turns"] if turn["start"] < end and start < turn["end"]]
    return {"text": text, "start": start, "turns": turns}


def _count(hits: list[Hit]) -> tuple[int, int]:
    """Return how many spans some hits have, and how many words their texts have."""
    texts = [span["text"] for hit in hits for span in hit["spans"]]
    passages = [hit.get("text", "") for hit in hits]
    return len(texts), sum(map(_count_words, [*texts, *passages]))


def _count_words(text: str) -> int:
    return len(words(text))
