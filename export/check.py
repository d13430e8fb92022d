"""The gate of every export: the folder's *span* vectors are those of torch, in each precision.

A fixed corpus of real passages of unequal lengths, the hard sample's, goes through torch in one
padded batch and through the product's own encoder, with its buckets and its graph. Compared are the
vectors of all spans of 1..20 words, and which span of a turn is the best one for each of the
sample's phrases. Two exports that this would have caught: a wrapper left in train mode (cosine
0.90, no warning), and int8 with one scale per tensor (0.945; per channel 0.99).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import torch
from tokenizers import Tokenizer

from benchmarks.quality import hard_sample
from hybrid_search.encoder.model_folder import TOKENIZER, read_settings
from hybrid_search.encoder.onnx import OnnxEncoder
from hybrid_search.ingest import document_parser
from hybrid_search.ingest.sources import files
from hybrid_search.text import spans
from hybrid_search.text.passages import split
from hybrid_search.text.types import Encoding, Floats, Ints, Part

PASSAGES = 96
LEAST = {"float32": ("min", 0.999), "float16": ("mean", 0.99), "int8": ("mean", 0.99)}
"""The bound of each precision; float16 computes on the weights of int8."""


@dataclass(frozen=True, slots=True)
class Parity:
    """How close the folder's span vectors are to torch's.

    Cosines of `spans` spans; the share `same` of `best` best spans that are the same words; and
    `lost`, how much lower, by torch, the cosine of the folder's choice is on average.
    """

    spans: int
    mean: float
    min: float
    best: int
    same: float
    lost: float

    def to_dict(self) -> dict[str, Any]:
        """Return the figures as ``encoder.json`` has them."""
        cosines = {"spans": self.spans, "mean": round(self.mean, 6), "min": round(self.min, 6)}
        return {
            **cosines,
            "best spans": self.best,
            "same": round(self.same, 4),
            "lost": round(self.lost, 5),
        }


@dataclass(frozen=True, slots=True, eq=False)
class Side:
    """One encoder's vectors of the corpus.

    Unit vectors of the spans of each turn, ``[spans, dimension]``, of the phrases ``[phrases,
    dimension]``, and the offsets of all tokens.
    """

    turns: Sequence[Floats]
    phrases: Floats
    offsets: Sequence[Ints]

    @property
    def best(self) -> Ints:
        """Return the best span of each turn for each phrase, ``[turns, phrases]``."""
        return np.array(
            [(turn @ self.phrases.T).argmax(axis=0) for turn in self.turns], dtype=np.int32
        )


def corpus() -> tuple[list[Part], list[str]]:
    """Return turns of the hard sample, one from each of its first passages, and their texts."""
    parts: list[Part] = []
    texts: list[str] = []
    for line in files.read([str(hard_sample.CALLS)]):
        document, _ = document_parser.parse(line.data)
        for passage in split(document):
            parts.append(first := passage.parts[0])
            texts.append(document.text[first.start : first.end])
    return parts[:PASSAGES], texts[:PASSAGES]


def parity(model: torch.nn.Module, folder: Path) -> dict[str, dict[str, Any]]:
    """Measure each precision of a folder against torch; refuse a folder below the bound of one."""
    tokenizer, (_, texts) = folder / TOKENIZER, corpus()
    phrases = hard_sample.read_phrases()
    return measure(
        _side(torch_encodings(model, tokenizer, texts), torch_encodings(model, tokenizer, phrases)),
        folder,
    )


def measure(reference: Side, folder: Path) -> dict[str, dict[str, Any]]:
    """Return how a folder compares with other vectors of the corpus, in each of its precisions.

    Raises:
        SystemExit: If it is below the bound of a precision.
    """
    measured = {}
    for precision in read_settings(folder).precisions:
        result = compare_sides(reference, product_side(folder, precision))
        statistic, least = LEAST[precision]
        if getattr(result, statistic) < least:
            raise SystemExit(
                f"span parity of {precision}: {statistic} cosine {getattr(result, statistic):.4f},"
                f" {least} is the least allowed. Nothing was written."
            )
        measured[precision] = result.to_dict()
    return measured


def product_side(folder: Path, precision: str) -> Side:
    """Return the product's vectors of the corpus, on the CPU."""
    encoder = OnnxEncoder(folder, "cpu", precision=precision)
    return _side(encoder.encode(corpus()[1]), encoder.encode(hard_sample.read_phrases()))


def compare_sides(a: Side, b: Side) -> Parity:
    """Compare two sides; raises SystemExit if even their tokens differ."""
    if not all(
        np.array_equal(left_values, right_values)
        for left_values, right_values in zip(a.offsets, b.offsets, strict=True)
    ):
        raise SystemExit("the two encoders do not cut the text into the same tokens")
    turns = zip(a.turns, b.turns, strict=True)
    cosines = np.concatenate([(ours * theirs).sum(axis=1) for ours, theirs in turns])
    same = a.best == b.best
    cosine_losses = np.array(
        [
            _cosine_loss(turn @ a.phrases.T, chosen_spans)
            for turn, chosen_spans in zip(a.turns, b.best, strict=True)
        ]
    )
    mean, least, loss = map(float, (cosines.mean(), cosines.min(), cosine_losses.mean()))
    return Parity(len(cosines), mean, least, same.size, float(same.mean()), loss)


def _cosine_loss(cosines: Floats, chosen_spans: Ints) -> Floats:
    """Return how far the cosines of the chosen spans are below the best, ``[phrases]``.

    `cosines` are ``[spans, phrases]``.
    """
    loss: Floats = cosines.max(axis=0) - cosines[chosen_spans, np.arange(len(chosen_spans))]
    return loss


def torch_encodings(
    model: torch.nn.Module, tokenizer_file: Path, texts: Sequence[str]
) -> list[Encoding]:
    """Return token vectors by torch, all texts in one padded batch, special tokens cut off."""
    tokenizer = Tokenizer.from_file(str(tokenizer_file))
    tokenizer.no_truncation()
    tokenizer.enable_padding()
    batch = tokenizer.encode_batch(list(texts))
    ids = torch.tensor([encoding.ids for encoding in batch])
    mask = torch.tensor([encoding.attention_mask for encoding in batch])
    with torch.no_grad():
        hidden = model(ids, mask).numpy()
    plain = [np.array(encoding.special_tokens_mask) == 0 for encoding in batch]
    return [
        Encoding(
            row[is_plain].astype(np.float32), np.array(encoding.offsets, dtype=np.int32)[is_plain]
        )
        for row, is_plain, encoding in zip(hidden, plain, batch, strict=True)
    ]


def _side(turns: Sequence[Encoding], phrases: Sequence[Encoding]) -> Side:
    parts, _ = corpus()
    vectors = [_unit(_spans(encoding, part)) for encoding, part in zip(turns, parts, strict=True)]
    phrase_vectors = _unit(np.array([encoding.vectors.sum(axis=0) for encoding in phrases]))
    return Side(vectors, phrase_vectors, [encoding.offsets for encoding in (*turns, *phrases)])


def _spans(encoding: Encoding, part: Part) -> Floats:
    """Return the sum of the token vectors of each span of one turn, ``[spans, dimension]``.

    It has the direction of the mean.
    """
    tokens = spans.token_bounds(encoding.offsets, part.words - part.window_start)
    first, last = spans.bounds(spans.counts(len(part.words), part.core, part.breaks))
    sums = spans.running_sums(encoding.vectors)
    span_vectors: Floats = sums[tokens[last, 1]] - sums[tokens[first, 0]]
    return span_vectors


def _unit(vectors: Floats) -> Floats:
    unit_vectors: Floats = vectors / np.linalg.norm(vectors, axis=1, keepdims=True)
    return unit_vectors
