"""Any Hugging Face encoder in torch: BERT, SBERT, SimCSE, SpanBERT, Longformer and others.

Needs the extra ``export``.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from benchmarks.libraries import import_library
from benchmarks.quality.systems import Range, encodings, normalize_rows, span_means
from hybrid_search.encoder import EncoderInfo
from hybrid_search.text.types import Encoding, Floats, Ints

TOGETHER = 32
"""Windows in a forward pass."""

AT_ONCE = 8 * TOGETHER
"""Texts that are sorted by length."""

OVERLAP = 32
"""Tokens that two neighbouring windows of a long text share; each window keeps half of them."""

LIMIT = 4096
"""Tokens that a model reads if its tokenizer does not say."""

POOLING = "1_Pooling/config.json"
"""Where sentence-transformers stores how a text's vector is made of its tokens'."""

MEAN, FIRST = "mean", "first"
"""A text's vector is the mean of all its tokens', special ones too, or that of ``[CLS]``."""


class HuggingFace:
    """The model `name`, a folder or a name on the hub.

    A span inside a text is the mean of its tokens. `pooling` makes the vector of a text by itself;
    None means the folder's own pooling, or the mean if it names none. Raises SystemExit if the
    libraries or the weights are missing.
    """

    def __init__(
        self, name: str, pooling: str | None = None, load: Callable[[str], Any] | None = None
    ) -> None:
        transformers, self._torch = import_library("transformers"), import_library("torch")
        try:
            self.tokenizer = transformers.AutoTokenizer.from_pretrained(
                name, use_fast=True, padding_side="right"
            )
            model = (load or transformers.AutoModel.from_pretrained)(name)
        except (OSError, ValueError) as error:  # which of them depends on transformers' version
            raise SystemExit(
                f"{name}: {str(error).splitlines()[0]}: give --weights FOLDER,"
                " or a name that the hub has"
            ) from error
        self.model = model.to(self._torch.float32).eval()
        self.pooling = pooling or _read_pooling(Path(name))
        self.name = name
        self.limit = min(self.tokenizer.model_max_length, _positions(self.model.config), LIMIT)

    @property
    def info(self) -> EncoderInfo:
        """The product's description of it; the folder's name stands for its fingerprint."""
        return EncoderInfo(
            Path(self.name).name,
            self.name,
            int(self.model.config.hidden_size),
            "float32",
            "passage",
        )

    def encode_texts(self, texts: Sequence[str]) -> Floats:
        """Return unit vectors ``[texts, hidden]``.

        Of a text that is longer than the model reads, only the first window counts.
        """
        vectors = np.zeros((len(texts), self.info.dimension), dtype=np.float32)
        order = sorted(range(len(texts)), key=lambda i: len(texts[i]))
        for start in range(0, len(order), TOGETHER):
            batch_rows = order[start : start + TOGETHER]
            batch = self.tokenizer(
                [texts[i] for i in batch_rows],
                truncation=True,
                max_length=self.limit,
                padding=True,
                return_tensors="np",
            )
            vectors[batch_rows] = self._pool(self._run(batch), batch["attention_mask"])
        return normalize_rows(vectors)

    def encode_spans(
        self, texts: Sequence[str], places: Sequence[Sequence[Range]]
    ) -> Iterator[Floats]:
        """Yield the mean of each place's tokens."""
        for encoding, ranges in zip(encodings(self, texts, AT_ONCE), places, strict=True):
            yield span_means(encoding, ranges)

    def encode(self, texts: Sequence[str]) -> list[Encoding]:
        """Return token vectors and offsets of each text, special tokens left out.

        Long texts are read in windows that overlap.
        """
        batch = self.tokenizer(
            list(texts),
            truncation=True,
            max_length=self.limit,
            stride=min(OVERLAP, self.limit // 4),
            padding=True,
            return_overflowing_tokens=True,
            return_offsets_mapping=True,
            return_special_tokens_mask=True,
            return_tensors="np",
        )
        vectors = self._run(batch)
        windows: list[list[tuple[Floats, Ints]]] = [[] for _ in texts]
        for row, text in enumerate(batch["overflow_to_sample_mapping"]):
            plain = (batch["special_tokens_mask"][row] == 0) & (batch["attention_mask"][row] == 1)
            windows[text].append(
                (vectors[row][plain], batch["offset_mapping"][row][plain].astype(np.int32))
            )
        return [Encoding(*join_windows(text_windows)) for text_windows in windows]

    def _run(self, batch: Any) -> Floats:
        """Return last hidden states ``[rows, tokens, hidden]``; those of padding are zeros.

        Rows of like length run together.
        """
        names = [name for name in self.tokenizer.model_input_names if name in batch]
        lengths = batch["attention_mask"].sum(axis=1)
        order = np.argsort(lengths, kind="stable")
        hidden_states = np.zeros((*batch["input_ids"].shape, self.info.dimension), dtype=np.float32)
        with self._torch.no_grad():
            for start in range(0, len(order), TOGETHER):
                batch_rows = order[start : start + TOGETHER]
                longest = int(lengths[batch_rows].max())
                inputs = {
                    name: self._torch.as_tensor(batch[name][batch_rows, :longest]) for name in names
                }
                hidden_states[batch_rows, :longest] = self.model(**inputs).last_hidden_state.numpy()
        return hidden_states

    def _pool(self, vectors: Floats, mask: Ints) -> Floats:
        if self.pooling == FIRST:
            return vectors[:, 0]
        counted = mask[..., None].astype(np.float32)
        means: Floats = (vectors * counted).sum(axis=1) / counted.sum(axis=1)
        return means


def join_windows(windows: Sequence[tuple[Floats, Ints]]) -> tuple[Floats, Ints]:
    """Return the tokens of a text's windows, each once.

    Of the tokens that two windows share, the first window gives the first half, the second the
    rest.
    """
    vectors, offsets = (list(window_arrays) for window_arrays in zip(*windows, strict=True))
    for window in range(len(windows) - 1):
        shared = int((offsets[window][:, 0] >= offsets[window + 1][0, 0]).sum())
        half = shared // 2
        vectors[window], offsets[window] = (
            vectors[window][: len(vectors[window]) - shared + half],
            offsets[window][: len(offsets[window]) - shared + half],
        )
        vectors[window + 1], offsets[window + 1] = (
            vectors[window + 1][half:],
            offsets[window + 1][half:],
        )
    return np.concatenate(vectors), np.concatenate(offsets)


def _read_pooling(folder: Path) -> str:
    """Return the pooling that sentence-transformers noted in `folder`."""
    if not (folder / POOLING).is_file():
        return MEAN
    modes = json.loads((folder / POOLING).read_text(encoding="utf-8"))
    active_modes = [name for name, on in modes.items() if name.startswith("pooling_mode_") and on]
    pooling_by_mode = {"pooling_mode_mean_tokens": MEAN, "pooling_mode_cls_token": FIRST}
    if len(active_modes) != 1 or active_modes[0] not in pooling_by_mode:
        raise SystemExit(
            f"{folder / POOLING} uses the pooling {', '.join(active_modes) or 'nothing'}:"
            f" only {' or '.join(pooling_by_mode)} is supported"
        )
    return pooling_by_mode[active_modes[0]]


def _positions(config: Any) -> int:
    """Return how many tokens the position embeddings are for.

    RoBERTa and its like begin to count behind the padding's number.
    """
    positions = getattr(config, "max_position_embeddings", LIMIT)
    shifted = config.model_type in ("roberta", "longformer", "xlm-roberta", "camembert", "mpnet")
    return int(positions) - (config.pad_token_id + 1 if shifted else 0)
