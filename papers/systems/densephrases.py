"""DensePhrases (Lee et al., 2021): a span is its first token's vector beside its last token's.

arXiv:2012.12624. The query is read by the phrase encoder, as the SLICE paper and PiC do; the two
query encoders of DensePhrases are for questions.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from benchmarks.libraries import import_library
from benchmarks.quality.systems import Range, encodings, normalize_rows, token_ranges
from hybrid_search.text.types import Encoding, Floats
from papers.systems.huggingface import HuggingFace

PREFIX = "phrase_encoder."
"""The beginning of the names of the phrase encoder's weights, beside those of the query encoders.
"""

FILES = ("model.safetensors", "pytorch_model.bin")


class DensePhrases:
    """The phrase encoder in the folder, or the hub's repository, `name`."""

    def __init__(self, name: str) -> None:
        self.encoder = HuggingFace(name, load=_load_phrase_encoder)

    def encode_texts(self, texts: Sequence[str]) -> Floats:
        """Return first and last token of the whole text."""
        return np.concatenate(list(self.encode_spans(texts, [[(0, len(text))] for text in texts])))

    def encode_spans(
        self, texts: Sequence[str], places: Sequence[Sequence[Range]]
    ) -> Iterator[Floats]:
        """Yield first and last token of each place, unit vectors ``[places, 2 * hidden]``."""
        for encoding, ranges in zip(encodings(self.encoder, texts), places, strict=True):
            yield end_vectors(encoding, ranges)


def end_vectors(encoding: Encoding, ranges: Sequence[Range]) -> Floats:
    """Return the vectors of each range's first and last token, joined and scaled to length 1.

    Zeros for a range without a token.
    """
    bounds = token_ranges(encoding, ranges)
    vectors = np.concatenate(
        [encoding.vectors, np.zeros((1, encoding.vectors.shape[1]), dtype=np.float32)]
    )
    has_token = bounds[:, 1] > bounds[:, 0]
    first, last = (
        np.where(has_token, token_numbers, len(encoding.vectors))
        for token_numbers in (bounds[:, 0], bounds[:, 1] - 1)
    )
    return normalize_rows(np.concatenate([vectors[first], vectors[last]], axis=1))


def _load_phrase_encoder(name: str) -> Any:
    """Load the phrase encoder out of weights that hold the query encoders too."""
    transformers, hub, torch = (
        import_library("transformers"),
        import_library("transformers.utils.hub"),
        import_library("torch"),
    )
    path = next(
        (
            Path(cached_path)
            for file in FILES
            if (
                cached_path := hub.cached_file(
                    name, file, _raise_exceptions_for_missing_entries=False
                )
            )
        ),
        None,
    )
    if path is None:
        raise SystemExit(f"{name} holds none of {', '.join(FILES)}")
    load = (
        import_library("safetensors.torch").load_file
        if path.suffix == ".safetensors"
        else torch.load
    )
    weights = {
        key.removeprefix(PREFIX): value
        for key, value in load(path).items()
        if key.startswith(PREFIX)
    }
    if not weights:
        raise SystemExit(
            f"{path.name} of {name} holds no weight whose name begins with {PREFIX!r}:"
            " is it DensePhrases?"
        )
    model = transformers.AutoModel.from_config(
        transformers.AutoConfig.from_pretrained(name), add_pooling_layer=False
    )
    missing = model.load_state_dict(
        weights, strict=False
    ).missing_keys  # extra weights, like a pooler, do not matter
    if missing:
        raise SystemExit(
            f"{path.name} of {name} lacks {len(missing)} weights of the phrase encoder,"
            f" {missing[0]} first"
        )
    return model
