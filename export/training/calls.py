"""Calls without labels, as texts to train on: what was said in them, some turns at a time."""

from __future__ import annotations

import hashlib
import zlib
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from export.training.data import HELD_OUT, Corpus, Triple
from hybrid_search.errors import InputError
from hybrid_search.ingest import document_parser
from hybrid_search.ingest.sources import files

NAME = "calls"
"""What the corpus is called in a recipe's `data`."""

TURNS = 3
"""Turns of a passage."""


@dataclass(frozen=True, slots=True)
class Calls:
    """Passages of calls to train on, and those of one call in ten, which are measured on."""

    corpus: Corpus
    held_out: Sequence[str]


def read(paths: Sequence[Path]) -> Calls:
    """Return the calls in files that ``hybrid-search ingest`` reads.

    A triple is a turn, a passage that begins with it, and the first passage of the next call: no
    loss that needs labels can use it.

    Raises:
        SystemExit: If a line is no document, or there are fewer than two calls to train on.
    """
    training: list[list[str]] = []
    held_out: list[str] = []
    digest = hashlib.sha256()
    for line in files.read([str(path) for path in paths]):
        if line.fault:
            raise SystemExit(f"{line.source}, line {line.number}: {line.fault}")
        try:
            document, canonical = document_parser.parse(line.data)
        except InputError as error:
            raise SystemExit(f"{line.source}, line {line.number}: {error}") from error
        digest.update(canonical.encode())
        turns = [turn.text for turn in document.turns if turn.text.strip()]
        passages = [" ".join(turns[first : first + TURNS]) for first in range(len(turns))]
        if zlib.crc32(document.id.encode()) % HELD_OUT == 0:
            held_out += passages[::TURNS]
        elif passages:
            training.append(turns + passages)
    if len(training) < 2:
        raise SystemExit(
            f"{', '.join(map(str, paths))}: {len(training)} calls to train on,"
            " at least 2 are needed"
        )
    corpus = Corpus(NAME, digest.hexdigest(), _make_triples(training), len(held_out))
    return Calls(corpus, held_out)


def _make_triples(calls: Sequence[Sequence[str]]) -> list[Triple]:
    """Return the triples of calls, each a list of its turns and then its passages."""
    triples = []
    for number, texts in enumerate(calls):
        turns, passages = texts[: len(texts) // 2], texts[len(texts) // 2 :]
        following = calls[(number + 1) % len(calls)]
        negative = following[len(following) // 2]
        triples += [
            Triple(turn, passage, negative) for turn, passage in zip(turns, passages, strict=True)
        ]
    return triples
