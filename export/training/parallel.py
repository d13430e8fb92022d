"""Sentences in several languages as triples, and what a teacher that knows English reads of them.

A parallel row is a JSON line with a sentence by the code of its language, ``en`` among them. A
student learns the vector of the English sentence for all of them (Reimers and Gurevych, Making
monolingual sentence embeddings multilingual using knowledge distillation, 2020).
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from export.training.data import Triple
from hybrid_search.text.languages import ENGLISH, LANGUAGES

TRAIN = "train"

ParallelRow = Mapping[str, str]
"""A sentence by the code of its language."""


def is_parallel(row: Mapping[str, Any]) -> bool:
    """Tell whether a row of a file of triples is a sentence in several languages."""
    return ENGLISH in row and "query" not in row


def is_trained(row: Mapping[str, Any]) -> bool:
    """Tell whether a row is to be trained on: it has no split, or that of training."""
    return bool(row.get("split", TRAIN) == TRAIN)


def select_sentences(row: Mapping[str, Any]) -> ParallelRow:
    """Return the sentences of a row by the codes of their languages."""
    return {code: text for code, text in row.items() if code in LANGUAGES}


def expand_rows(rows: Sequence[ParallelRow]) -> Iterator[Triple]:
    """Yield each sentence with its translation into another language and the next row's.

    From row to row the languages are paired in another way, so that each meets each.
    """
    for number, row in enumerate(rows):
        others = rows[(number + 1) % len(rows)]
        codes = list(row)
        step = number % (len(codes) - 1) + 1
        for place, code in enumerate(codes):
            other = codes[(place + step) % len(codes)]
            wrong = others.get(other, others[ENGLISH])
            yield Triple(row[code], row[other], wrong, (0, len(row[other])), f"row {number}")


def list_translations(rows: Sequence[ParallelRow]) -> dict[str, str]:
    """Return the English sentence of each sentence in another language."""
    return {text: row[ENGLISH] for row in rows for code, text in row.items() if code != ENGLISH}
