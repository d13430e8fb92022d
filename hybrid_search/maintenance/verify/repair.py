"""Mend what can be mended from what an index itself holds: word codes, and all made of them.

A document with damaged codes is encoded again from its stored text and written in its own place,
with the same source hash.
"""

from __future__ import annotations

import json
from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from hybrid_search.backends.base import Backend
from hybrid_search.backends.turn_layout import build_layout, unpack_word_times
from hybrid_search.backends.types import (
    DamagedRowError,
    Fault,
    IndexSpec,
    ListedPassage,
    PassageContent,
)
from hybrid_search.encoder import passage_codes
from hybrid_search.encoder.base import Encoder
from hybrid_search.maintenance.verify.completeness import find_faults, group_by_document
from hybrid_search.maintenance.verify.reencode import (
    BLOCK,
    DifferentError,
    fetch_contents,
    split_again,
)
from hybrid_search.text import window_policy
from hybrid_search.text.passages import split
from hybrid_search.text.types import Document, Entry, Turn, WordTime

MENDABLE = {"codes", "vectors"}
"""Kinds of faults that go if the document is encoded again; its text must be sound."""


def is_mendable(faults: Sequence[tuple[ListedPassage, Fault]]) -> bool:
    """Return whether a document has faults, and encoding its stored text again mends them all."""
    kinds = {fault.kind for _, fault in faults}
    return bool(kinds) and kinds <= MENDABLE


def repair_index(backend: Backend, encoder: Encoder, index: str, spec: IndexSpec) -> int:
    """Mend `index`, and return how many documents were encoded again for it."""
    damaged = [
        rows
        for rows in group_by_document(backend.iterate_passages(index, full=True))
        if is_mendable(list(find_faults(rows, spec)))
    ]
    repaired = 0
    with backend.writer(index, spec) as writer:
        for rows in damaged:
            if entries := _encode_stored(backend, encoder, index, rows, spec):
                repaired += not writer.write(entries)
    return repaired


def _encode_stored(
    backend: Backend,
    encoder: Encoder,
    index: str,
    rows: Sequence[ListedPassage],
    spec: IndexSpec,
) -> list[Entry]:
    """Return the entries of a document with fresh codes; none if its stored text is not whole."""
    rows = sorted(rows, key=lambda row: row.ordinal)
    try:
        contents = fetch_contents(backend, index, [row.key for row in rows])
        _, stored_text = split_again(rows, contents)
        document = restore_document(stored_text, [contents[row.key] for row in rows])
    except (DifferentError, DamagedRowError, json.JSONDecodeError):
        return []  # `verify` says what is wrong with it
    entries = list(_encode_document(encoder, document, rows[0].source_hash, spec))
    layouts = [json.loads(contents[row.key].layout) for row in rows]
    fresh_layouts = [json.loads(build_layout(entry)) for entry in entries]
    return entries if fresh_layouts == layouts else []


def restore_document(stored_text: Document, contents: Sequence[PassageContent]) -> Document:
    """Return a document with its turns, under their own numbers, and its metadata."""
    # a turn that no passage mentions has no word: it is there for the numbers of the others
    layout: dict[int, Mapping[str, Any]] = defaultdict(lambda: {"start": 0, "end": 0})
    word_times: dict[int, set[WordTime]] = defaultdict(set)
    for turn in (turn for content in contents for turn in json.loads(content.layout)):
        layout[turn["turn"]] = turn
        word_times[turn["turn"]] |= set(unpack_word_times(turn.get("word_times", ([], []))))
    turns = []
    for number in range(max(layout, default=-1) + 1):
        turn = layout[number]
        text = stored_text.text[turn["start"] : turn["end"]]
        speaker, start_ms, end_ms = map(turn.get, ("speaker", "start_ms", "end_ms"))
        extra, words = turn.get("extra", {}), tuple(sorted(word_times[number]))
        turns.append(Turn(text, turn["start"], speaker, start_ms, end_ms, extra, words))
    metadata = json.loads(contents[0].metadata)
    return Document(stored_text.id, stored_text.text, tuple(turns), metadata)


def _encode_document(
    encoder: Encoder, document: Document, source_hash: str, spec: IndexSpec
) -> Iterator[Entry]:
    passages = list(split(document))
    for start in range(0, len(passages), BLOCK):
        block = passages[start : start + BLOCK]
        block_codes = passage_codes.encode_passages(encoder, document, block, spec.codes)
        for passage, codes in zip(block, block_codes, strict=True):
            windows = len(window_policy.window_bounds(codes.counts, spec.policy))
            yield Entry(document, source_hash, len(passages), passage, codes, windows)
