"""The gate that every export passes: the folder's *span* vectors are those of torch, in each precision that it can run in.

A fixed corpus of real passages of unequal lengths, the bundled sample's, goes through torch in one padded batch and through the product's own
encoder, with its buckets and its graph. Compared are the vectors of all spans of 1..20 words, and which span of a turn is the best one for each of
the sample's phrases. Two exports that this would have caught: a wrapper left in train mode (cosine 0.90, no warning), and int8 with one scale per
tensor (0.945; per channel 0.99).
"""

from __future__ import annotations

import json
import tempfile
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import torch
from tokenizers import Tokenizer

from hybrid_search import spans
from hybrid_search.encoder.onnx import OnnxEncoder
from hybrid_search.encoder.precisions import PRECISIONS, STORED
from hybrid_search.ingest import documents, sources
from hybrid_search.passages import split
from hybrid_search.types import Encoding, Floats, Ints, Part

PASSAGES = 96
LEAST = {"float32": ("min", 0.999), "float16": ("min", 0.999), "int8": ("mean", 0.99)}


@dataclass(frozen=True, slots=True)
class Parity:
    """Cosines between torch's and the folder's vectors of `spans` spans; the share `same` of `best` best spans that are the same words, and how
    much lower, by torch, the cosine of the folder's choice is on average, `lost`."""

    spans: int
    mean: float
    min: float
    best: int
    same: float
    lost: float

    def to_dict(self) -> dict[str, Any]:
        cosines = {"spans": self.spans, "mean": round(self.mean, 6), "min": round(self.min, 6)}
        return {**cosines, "best spans": self.best, "same": round(self.same, 4), "lost": round(self.lost, 5)}


@dataclass(frozen=True, slots=True, eq=False)
class Side:
    """What one encoder makes of the corpus: unit vectors of the spans of each turn, ``[spans, dimension]``, of the phrases ``[phrases, dimension]``,
    and the offsets of all tokens."""

    turns: Sequence[Floats]
    phrases: Floats
    offsets: Sequence[Ints]

    @property
    def best(self) -> Ints:
        """The best span of each turn for each phrase, ``[turns, phrases]``."""
        return np.array([(turn @ self.phrases.T).argmax(axis=0) for turn in self.turns], dtype=np.int32)


def corpus() -> tuple[list[Part], list[str]]:
    """Turns of the bundled sample, one from each of its first passages, and their texts."""
    parts: list[Part] = []
    texts: list[str] = []
    for line in sources.read([str(sources.SAMPLE)]):
        document, _ = documents.parse(line.data)
        for passage in split(document):
            parts.append(first := passage.parts[0])
            texts.append(document.text[first.start : first.end])
    return parts[:PASSAGES], texts[:PASSAGES]


def phrases() -> list[str]:
    """The phrases of the bundled sample's topics."""
    return [json.loads(line)["phrase"] for line in (sources.SAMPLE.parent / "topics.jsonl").read_text(encoding="utf-8").splitlines()]


def parity(model: torch.nn.Module, folder: Path) -> dict[str, dict[str, Any]]:
    """Measure each precision that the folder can run in, and refuse a folder that is under the bound for one."""
    held = json.loads((folder / "encoder.json").read_text())["precision"]
    measured = measure(model, folder, [each for each in PRECISIONS if each != "auto" and held in (each, STORED)])
    for precision, found in measured.items():
        which, least = LEAST[precision]
        if getattr(found, which) < least:
            raise SystemExit(
                f"span parity of {precision}: {which} cosine {getattr(found, which):.4f}, {least} is the least allowed. Nothing was written."
            )
    return {precision: found.to_dict() for precision, found in measured.items()}


def measure(model: torch.nn.Module, folder: Path, precisions: Sequence[str]) -> dict[str, Parity]:
    """Compare the folder, in each of `precisions` on the CPU, with torch. What has to be made for that is not kept."""
    parts, texts = corpus()
    tokenizer = folder / "tokenizer.json"
    reference = _side(torch_encodings(model, tokenizer, texts), torch_encodings(model, tokenizer, phrases()), parts)
    measured = {}
    with tempfile.TemporaryDirectory() as cache:
        for precision in precisions:
            encoder = OnnxEncoder(folder, "cpu", precision=precision, cache=Path(cache))
            measured[precision] = compared(reference, _side(encoder.encode(texts), encoder.encode(phrases()), parts))
    return measured


def compared(a: Side, b: Side) -> Parity:
    """Raises SystemExit where the two do not even have the same tokens."""
    if not all(np.array_equal(one, other) for one, other in zip(a.offsets, b.offsets, strict=True)):
        raise SystemExit("the two encoders do not cut the text into the same tokens")
    cosines = np.concatenate([(one * other).sum(axis=1) for one, other in zip(a.turns, b.turns, strict=True)])
    same = a.best == b.best
    lost = np.array([_lost(turn @ a.phrases.T, chosen) for turn, chosen in zip(a.turns, b.best, strict=True)])
    return Parity(len(cosines), float(cosines.mean()), float(cosines.min()), same.size, float(same.mean()), float(lost.mean()))


def _lost(cosines: Floats, chosen: Ints) -> Floats:
    """How far the cosines of the spans that were `chosen` for each phrase are under the best, ``[phrases]``, of all ``[spans, phrases]``."""
    found: Floats = cosines.max(axis=0) - cosines[chosen, np.arange(len(chosen))]
    return found


def torch_encodings(model: torch.nn.Module, tokenizer_file: Path, texts: Sequence[str]) -> list[Encoding]:
    """Token vectors by torch, all texts in one padded batch, special tokens cut off."""
    tokenizer = Tokenizer.from_file(str(tokenizer_file))
    tokenizer.no_truncation()
    tokenizer.enable_padding()
    batch = tokenizer.encode_batch(list(texts))
    ids = torch.tensor([each.ids for each in batch])
    mask = torch.tensor([each.attention_mask for each in batch])
    with torch.no_grad():
        hidden = model(ids, mask).numpy()
    plain = [np.array(each.special_tokens_mask) == 0 for each in batch]
    return [
        Encoding(row[kept].astype(np.float32), np.array(each.offsets, dtype=np.int32)[kept])
        for row, kept, each in zip(hidden, plain, batch, strict=True)
    ]


def _side(turns: Sequence[Encoding], phrases: Sequence[Encoding], parts: Sequence[Part]) -> Side:
    vectors = [_unit(_spans(encoding, part)) for encoding, part in zip(turns, parts, strict=True)]
    asked = _unit(np.array([encoding.vectors.sum(axis=0) for encoding in phrases]))
    return Side(vectors, asked, [encoding.offsets for encoding in (*turns, *phrases)])


def _spans(encoding: Encoding, part: Part) -> Floats:
    """The sum of the token vectors of each span of one turn, ``[spans, dimension]``: the mean's direction."""
    tokens = spans.token_bounds(encoding.offsets, part.words - part.window_start)
    first, last = spans.bounds(spans.counts(len(part.words), part.core))
    sums = spans.running_sums(encoding.vectors)
    found: Floats = sums[tokens[last, 1]] - sums[tokens[first, 0]]
    return found


def _unit(vectors: Floats) -> Floats:
    found: Floats = vectors / np.linalg.norm(vectors, axis=1, keepdims=True)
    return found
