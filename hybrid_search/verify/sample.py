"""A document put together from its passages, cut and encoded again, and compared with what is stored of it."""

from __future__ import annotations

import io
import json
from collections.abc import Iterator, Mapping, Sequence

import numpy as np

from hybrid_search import passages, phrase, spans, tokens
from hybrid_search.backends.base import Backend, Candidates, Content, Fault, Key, Listed, Request
from hybrid_search.encoder.base import Encoder
from hybrid_search.errors import IndexStoreError
from hybrid_search.types import Document, Floats, Passage, TokenCodes, Turn
from hybrid_search.verify.report import Verification

BLOCK = 64
"""Passages whose codes are read and encoded together: a document of 5 MB is compared in the memory of these."""

NORMS = 0.002
"""Relative difference of two inverse norms made of the same codes: one step of float16, where another machine added in another order."""


def compared(backend: Backend, encoder: Encoder, index: str, rows: Sequence[Listed], found: Verification) -> None:
    """Compare one document, all of whose passages are listed in `rows`. What differs goes into `found`."""
    found.encoded_documents += 1
    rows = sorted(rows, key=lambda row: row.ordinal)
    contents = _contents(backend, index, [row.key for row in rows])
    try:
        cut, document = _again(rows, contents)
    except _DifferentError as different:
        found.add(different.row.document_id, different.row.ordinal, Fault("text", str(different)))
        return
    for start in range(0, len(rows), BLOCK):
        some, pieces = rows[start : start + BLOCK], cut[start : start + BLOCK]
        found.encoded_passages += len(some)
        for row, codes, fresh in zip(some, _stored(backend, index, some), phrase.encode(encoder, document, pieces), strict=True):
            for fault in _faults(codes, fresh, found):
                found.add(row.document_id, row.ordinal, fault)


class _DifferentError(Exception):
    """What is stored of a passage is not what its document would give."""

    def __init__(self, row: Listed, why: str) -> None:
        super().__init__(why)
        self.row = row


def _contents(backend: Backend, index: str, keys: Sequence[Key]) -> dict[Key, Content]:
    return {key: content for start in range(0, len(keys), BLOCK) for key, content in backend.contents(index, keys[start : start + BLOCK]).items()}


def _again(rows: Sequence[Listed], contents: Mapping[Key, Content]) -> tuple[list[Passage], Document]:
    """The document and its passages, cut anew. Raises where these are not those that are stored."""
    document = _document(rows, contents)
    cut = list(passages.split(document))
    for row, passage in zip(rows, cut, strict=False):
        held = contents[row.key]
        there, here = (held.start, held.start + len(held.text)), (passage.start, passage.end)
        if there != here:
            raise _DifferentError(row, f"it is stored at {there[0]}:{there[1]} of its document, and its text stands at {here[0]}:{here[1]}")
    if len(cut) != len(rows):
        raise _DifferentError(rows[-1], f"the document has {len(rows)} passages, and its text gives {len(cut)}")
    return cut, document


def _document(rows: Sequence[Listed], contents: Mapping[Key, Content]) -> Document:
    """The document as far as its passages have it; what lies between them, which has no words, is filled with NUL."""
    text, turns = io.StringIO(newline=""), dict[int, tuple[int, int]]()
    for row in rows:
        if row.key not in contents:
            raise _DifferentError(row, "its text is gone")
        held = contents[row.key]
        said = {turn["turn"]: (turn["start"], turn["end"]) for turn in json.loads(held.layout)}
        if said and held.start + len(held.text) > (end := max(end for _, end in said.values())):
            raise _DifferentError(row, f"its text ends at {held.start + len(held.text)}, and its last turn at {end}")
        text.seek(held.start)
        if not held.text.startswith(before := text.read(len(held.text)).rstrip("\0")):
            raise _DifferentError(row, f"it begins with {held.text[: len(before)][:40]!r}, and the passage before it says {before[:40]!r} there")
        text.seek(held.start)
        text.write(held.text)
        turns |= said
    whole = text.getvalue().ljust(max((end for _, end in turns.values()), default=0), "\0")
    return Document(rows[0].document_id, whole, tuple(Turn(whole[start:end], start) for _, (start, end) in sorted(turns.items())))


def _stored(backend: Backend, index: str, rows: Sequence[Listed]) -> Iterator[TokenCodes | str]:
    """The token codes of each passage, or why they cannot be read."""
    try:
        found = _read(backend, index, [row.key for row in rows])
        yield from (found.get(row.key, "its token codes are gone") for row in rows)
    except IndexStoreError:  # one of them: each by itself
        for row in rows:
            try:
                yield _read(backend, index, [row.key]).get(row.key, "its token codes are gone")
            except IndexStoreError as error:
                yield str(error)


def _read(backend: Backend, index: str, keys: Sequence[Key]) -> dict[Key, TokenCodes]:
    nothing = Request("", np.zeros(1, np.float32), len(keys), lexical=False, semantic=False)
    unscored = Candidates(dict.fromkeys(keys, 0.0))  # so that nobody computes a BM25 score
    return {each.key: each.tokens for each in backend.complete(index, nothing, keys, unscored)}


def _faults(codes: TokenCodes | str, fresh: TokenCodes, found: Verification) -> Iterator[Fault]:
    if isinstance(codes, str):
        yield Fault("codes", codes)
    elif not np.array_equal(codes.words[:, :2], fresh.words[:, :2]) or not np.array_equal(codes.counts, fresh.counts):
        yield Fault("offsets", _offsets(codes, fresh))
    elif not np.array_equal(codes.words, fresh.words) or codes.codes.shape != fresh.codes.shape:
        yield Fault("codes", f"codes of {len(codes.codes)} tokens are stored, and its text has {len(fresh.codes)}: each word must have its own")
    elif not _own_norms(codes):
        yield Fault("codes", "its norms are not those of its token codes: one or the other is damaged")
    elif fault := found.measured(float(differences(codes, fresh).max(initial=0.0))):
        yield fault


def _offsets(codes: TokenCodes, fresh: TokenCodes) -> str:
    """The first word that is not where it is said to be."""
    pairs = zip(codes.words[:, :2].tolist(), fresh.words[:, :2].tolist(), strict=False)
    number, (there, here) = next(((number, each) for number, each in enumerate(pairs) if each[0] != each[1]), (-1, ([0, 0], [0, 0])))
    if number < 0:
        return f"it has spans over {len(codes.words)} words, and its text has {len(fresh.words)}, or they start at others"
    return f"its word {number} is said to be at {there[0]}:{there[1]}, and is at {here[0]}:{here[1]}"


def _own_norms(codes: TokenCodes) -> bool:
    lengths = spans.norms(tokens.vectors(codes), codes.words[:, 2:], codes.counts)
    expected = np.minimum(spans.inverse(lengths), 65504.0)
    return len(expected) == len(codes.inverse_norms) and bool(np.allclose(codes.inverse_norms, expected, rtol=NORMS, atol=1e-7))


def differences(codes: TokenCodes, fresh: TokenCodes) -> Floats:
    """1 - the cosine of each span by its stored codes with the same by `fresh` ones, float32 ``[spans]``, 0..2. One without tokens has 0."""
    first, last = spans.bounds(codes.counts)
    begin, end = codes.words[first, 2], codes.words[last, 3]
    sums = (spans.running_sums(tokens.vectors(each)) for each in (codes, fresh))
    stored, again = (each[end] - each[begin] for each in sums)
    lengths = np.linalg.norm(stored, axis=1) * np.linalg.norm(again, axis=1)
    cosines = np.einsum("ij,ij->i", stored, again) * spans.inverse(lengths)
    found: Floats = np.where(lengths > 0, np.maximum(1.0 - cosines, 0.0), 0.0).astype(np.float32)
    return found
