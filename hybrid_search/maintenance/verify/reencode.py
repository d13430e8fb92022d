"""Join the passages of a document, cut and encode it again, and compare it with what is stored."""

from __future__ import annotations

import io
import json
from collections.abc import Iterator, Mapping, Sequence

import numpy as np

from hybrid_search.backends.base import Backend
from hybrid_search.backends.types import (
    DamagedRowError,
    Fault,
    Key,
    ListedPassage,
    PassageContent,
    Request,
)
from hybrid_search.encoder import passage_codes
from hybrid_search.encoder.base import Encoder, codebook
from hybrid_search.maintenance.verify.report import Verification
from hybrid_search.text import passages, spans, word_codes
from hybrid_search.text.residual_codes import BITS
from hybrid_search.text.types import (
    Codebook,
    Document,
    Floats,
    Passage,
    PassageTokens,
    Turn,
    WordCodes,
)

FINEST = max(BITS)
"""The bits in which a fresh encoding is compared: nearly the vectors themselves."""

BLOCK = 64
"""Passages that are read and encoded together, so that a document of 5 MB takes no more memory."""


def compare_document(
    backend: Backend,
    encoder: Encoder,
    index: str,
    rows: Sequence[ListedPassage],
    verification: Verification,
) -> None:
    """Compare a document with a fresh encoding of it, and add what differs to `verification`."""
    verification.encoded_documents += 1
    rows = sorted(rows, key=lambda row: row.ordinal)
    try:
        contents = fetch_contents(backend, index, [row.key for row in rows])
        fresh_passages, document = split_again(rows, contents)
    except (DifferentError, DamagedRowError) as error:
        row = error.row if isinstance(error, DifferentError) else rows[0]
        verification.add(row.document_id, row.ordinal, Fault("text", str(error)))
        return
    for start in range(0, len(rows), BLOCK):
        block, block_passages = rows[start : start + BLOCK], fresh_passages[start : start + BLOCK]
        verification.encoded_passages += len(block)
        for row, codes, fresh in zip(
            block,
            _fetch_word_codes(backend, index, block),
            passage_codes.encode_tokens(encoder, document, block_passages),
            strict=True,
        ):
            for fault in _find_faults(codes, fresh, codebook(encoder), verification):
                verification.add(row.document_id, row.ordinal, fault)


class DifferentError(Exception):
    """A stored passage is not the one that its document gives when it is cut again."""

    def __init__(self, row: ListedPassage, why: str) -> None:
        super().__init__(why)
        self.row = row


def fetch_contents(backend: Backend, index: str, keys: Sequence[Key]) -> dict[Key, PassageContent]:
    """Return what is stored of each passage of `keys` that exists, fetched in blocks."""
    return {
        key: content
        for start in range(0, len(keys), BLOCK)
        for key, content in backend.fetch_contents(index, keys[start : start + BLOCK]).items()
    }


def split_again(
    rows: Sequence[ListedPassage], contents: Mapping[Key, PassageContent]
) -> tuple[list[Passage], Document]:
    """Return the passages that the document gives now, and the document: its text and its turns.

    Raises:
        DifferentError: If they are not the stored ones.
    """
    document = join_passages(rows, contents)
    fresh_passages = list(passages.split(document))
    for row, passage in zip(rows, fresh_passages, strict=False):
        content = contents[row.key]
        stored = f"{content.start}:{content.start + len(content.text)}"
        actual = f"{passage.start}:{passage.end}"
        if stored != actual:
            why = f"it is stored as {stored} of its document, and cutting the text again gives"
            raise DifferentError(row, f"{why} {actual}")
    if len(fresh_passages) != len(rows):
        why = f"{len(rows)} passages are stored, and its text gives {len(fresh_passages)}"
        raise DifferentError(rows[-1], why)
    return fresh_passages, document


def _read_layout(row: ListedPassage, content: PassageContent) -> dict[int, tuple[int, int]]:
    """Return start and end of each turn of a passage. Raises DifferentError if it is damaged."""
    try:
        turns = json.loads(content.layout)
        return {int(turn["turn"]): (int(turn["start"]), int(turn["end"])) for turn in turns}
    except (ValueError, TypeError, LookupError, RecursionError) as error:
        raise DifferentError(row, "its record of turns is damaged") from error


def join_passages(
    rows: Sequence[ListedPassage], contents: Mapping[Key, PassageContent]
) -> Document:
    """Return the document as its passages hold it, with NUL for the wordless gaps between them.

    Raises:
        DifferentError: If a passage has no text, or does not fit the passage before it.
    """
    text, turns = io.StringIO(newline=""), dict[int, tuple[int, int]]()
    for row in rows:
        if row.key not in contents:
            raise DifferentError(row, "its text is missing")
        content = contents[row.key]
        if content.fault and content.fault.kind == "text":
            raise DifferentError(row, content.fault.description)
        turn_bounds, text_end = _read_layout(row, content), content.start + len(content.text)
        last_end = max((end for _, end in turn_bounds.values()), default=text_end)
        if text_end > last_end:
            why = f"its text ends at {text_end}, and its last turn at {last_end}"
            raise DifferentError(row, why)
        text.seek(content.start)
        preceding = text.read(len(content.text)).rstrip("\0")
        if not content.text.startswith(preceding):
            why = f"it shares {len(preceding):,} characters with the passage before it"
            raise DifferentError(row, f"{why}, and the two texts differ there")
        text.seek(content.start)
        text.write(content.text)
        turns |= turn_bounds
    full_text = text.getvalue().ljust(max((end for _, end in turns.values()), default=0), "\0")
    bounds = (turns[number] for number in sorted(turns))
    all_turns = tuple(Turn(full_text[start:end], start) for start, end in bounds)
    return Document(rows[0].document_id, full_text, all_turns)


def _fetch_word_codes(
    backend: Backend, index: str, rows: Sequence[ListedPassage]
) -> list[WordCodes]:
    """Return the word codes of each passage, or `UNREADABLE`."""
    keys = [row.key for row in rows]
    empty_request = Request("", np.zeros(1, np.float32), len(keys), lexical=False, semantic=False)
    stored = backend.read_passages(index, empty_request, keys)
    codes_by_key = {passage.key: passage.tokens for passage in stored}
    return [codes_by_key.get(key, word_codes.UNREADABLE) for key in keys]


def _find_faults(
    codes: WordCodes, fresh: PassageTokens, used: Codebook, verification: Verification
) -> Iterator[Fault]:
    if codes is word_codes.UNREADABLE:
        yield Fault("codes", "its word codes are damaged or missing")
    elif not np.array_equal(codes.words, fresh.words[:, :2]) or not np.array_equal(
        codes.counts, fresh.counts
    ):
        yield Fault("offsets", _describe_offsets(codes, fresh))
    elif not np.array_equal(codes.rows, word_codes.sum_rows(fresh)[1]):
        yield Fault("codes", "its codes have other rows than its text has tokens between words")
    elif not word_codes.has_own_norms(codes):
        yield Fault("codes", "its norms do not fit its word codes: one or the other is damaged")
    elif fault := verification.check_difference(excess_difference(codes, fresh, used)):
        yield fault


def _describe_offsets(codes: WordCodes, fresh: PassageTokens) -> str:
    """Return a sentence about the first word whose stored offsets are wrong."""
    pairs = zip(codes.words.tolist(), fresh.words[:, :2].tolist(), strict=False)
    number, (stored_bounds, actual_bounds) = next(
        ((number, pair) for number, pair in enumerate(pairs) if pair[0] != pair[1]),
        (-1, ([0, 0], [0, 0])),
    )
    if number < 0:
        return (
            f"spans over {len(codes.words)} words are stored, and its text has "
            f"{len(fresh.words)} words, or the spans start at other words"
        )
    return (
        f"its word {number} is stored as {stored_bounds[0]}:{stored_bounds[1]}, "
        f"and is at {actual_bounds[0]}:{actual_bounds[1]}"
    )


ROUNDINGS = 2
"""How many times more than those of the fresh vector codes of the same words may have lost.

Two runs of a model differ a little, and then fall on other levels.
"""


def excess_difference(codes: WordCodes, fresh: PassageTokens, used: Codebook) -> float:
    """Return by how much a span differs at most, 0..2, beyond what rounding costs."""
    finest, rounded = (word_codes.pack(fresh, used, bits) for bits in (FINEST, codes.bits))
    lost = ROUNDINGS * cosine_differences(rounded, finest)
    return float((cosine_differences(codes, finest) - lost).max(initial=0.0))


def cosine_differences(codes: WordCodes, fresh: WordCodes) -> Floats:
    """Return 1 - cosine of each span's stored and fresh vector, float32 ``[spans]``, 0..2."""
    first, last = spans.bounds(codes.counts)
    sums = (spans.running_sums(word_codes.vectors(coded)) for coded in (codes, fresh))
    stored_vectors, fresh_vectors = (
        running[codes.rows[last] + 1] - running[codes.rows[first]] for running in sums
    )
    lengths = np.linalg.norm(stored_vectors, axis=1) * np.linalg.norm(fresh_vectors, axis=1)
    cosines = np.einsum("ij,ij->i", stored_vectors, fresh_vectors) * spans.inverse(lengths)
    return np.where(lengths > 0, np.maximum(1.0 - cosines, 0.0), 0.0).astype(np.float32)
