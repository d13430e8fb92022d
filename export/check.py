"""The gate that every export passes: the folder's *span* vectors are those of torch.

A fixed corpus of real passages of unequal lengths, the bundled sample's, goes through torch in one padded batch and through the product's own
encoder, with its buckets and its graph. Compared are the vectors of all spans of 1..20 words. Two exports that this would have caught: a wrapper
left in train mode (cosine 0.90, no warning), and int8 with one scale per tensor (0.945; per channel 0.99).
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import torch
from tokenizers import Tokenizer

from hybrid_search import spans
from hybrid_search.encoder.onnx import OnnxEncoder
from hybrid_search.ingest import documents, sources
from hybrid_search.passages import split
from hybrid_search.types import Document, Encoding, Floats, Part

PASSAGES = 96
LEAST = {"float32": ("min", 0.999), "float16": ("min", 0.999), "int8": ("mean", 0.99)}


@dataclass(frozen=True, slots=True)
class Parity:
    """Cosines between torch's and the folder's span vectors."""

    spans: int
    mean: float
    min: float

    def to_dict(self) -> dict[str, Any]:
        return {"spans": self.spans, "mean": round(self.mean, 6), "min": round(self.min, 6)}


def corpus() -> list[tuple[Document, Part]]:
    """Turns of the bundled sample, one from each of its first passages."""
    found = []
    for line in sources.read([str(sources.SAMPLE)]):
        document, _ = documents.parse(line.data)
        found += [(document, passage.parts[0]) for passage in split(document)]
    return found[:PASSAGES]


def parity(model: torch.nn.Module, folder: Path) -> dict[str, Any]:
    """Measure, and refuse a folder that is under the bound for its precision."""
    measured = measure(model, folder)
    precision = json.loads((folder / "encoder.json").read_text())["precision"]
    which, least = LEAST[precision]
    if getattr(measured, which) < least:
        raise SystemExit(
            f"span parity of {precision}: {which} cosine {getattr(measured, which):.4f}, {least} is the least allowed. Nothing was written."
        )
    return measured.to_dict()


def measure(model: torch.nn.Module, folder: Path) -> Parity:
    turns = corpus()
    texts = [document.text[part.start : part.end] for document, part in turns]
    reference = torch_encodings(model, folder / "tokenizer.json", texts)
    found = OnnxEncoder(folder, device="cpu").encode(texts)
    parts = [part for _, part in turns]
    cosines = np.concatenate([_span_cosines(a, b, part) for a, b, part in zip(reference, found, parts, strict=True)])
    return Parity(len(cosines), float(cosines.mean()), float(cosines.min()))


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


def _span_cosines(a: Encoding, b: Encoding, part: Part) -> Floats:
    """The cosine between two encodings' vectors of each span of one turn."""
    if not np.array_equal(a.offsets, b.offsets):
        raise SystemExit("the two encoders do not cut the text into the same tokens")
    tokens = spans.token_bounds(a.offsets, part.words - part.window_start)
    first, last = spans.bounds(spans.counts(len(part.words), part.core))
    left, right = ((sums := spans.running_sums(each.vectors))[tokens[last, 1]] - sums[tokens[first, 0]] for each in (a, b))
    cosines: Floats = (left * right).sum(axis=1) / (np.linalg.norm(left, axis=1) * np.linalg.norm(right, axis=1))
    return cosines
