"""A reader: an encoder with start and end heads, trained by ``papers.reading``.

It reads a document for what a query asks (Devlin et al., 2019, section 4.2): "[CLS] query [SEP]
document [SEP]" in as many tokens as the model takes (512; a Longformer's 4,096). A longer document
is read in windows that share 128 tokens, and the best span of all windows counts. As a system of
the tables it is its encoder, without the heads, and it also selects spans.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from benchmarks.libraries import import_library
from hybrid_search.text.types import Floats, Ints
from papers.systems.huggingface import HuggingFace

SHARED = 128
"""Tokens that two windows of a document share, or a quarter of shorter windows."""

QUERY = 64
"""Tokens of a query that are read, or a quarter of shorter windows."""

ANSWER = 30
"""Tokens of the longest answer."""

BATCH = 8
"""Windows in a forward pass."""

LENGTH = 4096
"""The most tokens of a window, for tokenizers that do not know their model's limit."""


@dataclass(frozen=True, slots=True, eq=False)
class Window:
    """The input of one forward pass: `inputs` as the tokenizer returns them.

    The document's tokens begin at number `first`; `offsets` int32 ``[tokens, 2]`` are theirs, in
    code points of the document. `label` holds the numbers of the answer's first and last token
    among all.
    """

    inputs: dict[str, list[int]]
    first: int
    offsets: Ints
    label: tuple[int, int] = (0, 0)


class Reader(HuggingFace):
    """The model in `folder` with its heads; `length` is tokens a window.

    An encoder without heads can be loaded only with `fresh` heads, which are untrained. Raises
    SystemExit if the folder cannot be loaded.
    """

    def __init__(
        self,
        folder: str | Path,
        device: str = "cpu",
        length: int | None = None,
        fresh: bool = False,
    ) -> None:
        super().__init__(str(folder), load=lambda name: self._load(name, fresh))
        self.full_model.to(device).eval()
        tokenizer_limit = self.tokenizer.model_max_length
        self.length = length or (
            tokenizer_limit
            if tokenizer_limit <= LENGTH
            else min(LENGTH, self.full_model.config.max_position_embeddings)
        )

    def _load(self, name: str, fresh: bool) -> Any:
        """Return the encoder of the full model, which is stored beside it."""
        maker = import_library("transformers").AutoModelForQuestionAnswering
        self.full_model, loading_info = maker.from_pretrained(name, output_loading_info=True)
        missing = sorted(
            key for key in loading_info["missing_keys"] if key.startswith("qa_outputs")
        )
        if missing and not fresh:
            raise SystemExit(
                f"{name} has no {' and '.join(missing)}, so it is not a reader: train one by"
                " python -m papers.reading train"
            )
        return self.full_model.base_model

    def answer(self, query: str, document: str) -> tuple[int, int, float]:
        """Return start and end of the best answer in `document`, in code points, and its score.

        The score is the sum of two logits; (0, 0, -inf) for a document without a token.
        """
        best_span = (0, 0, float("-inf"))
        windows = self.windows(query, document)
        for start in range(0, len(windows), BATCH):
            batch = windows[start : start + BATCH]
            for window, starts, ends in zip(batch, *self._logits(batch), strict=True):
                own = slice(window.first, window.first + len(window.offsets))
                score, first, last = find_best_span(starts[own], ends[own])
                if score > best_span[2]:
                    best_span = (int(window.offsets[first, 0]), int(window.offsets[last, 1]), score)
        return best_span

    def windows(self, query: str, document: str) -> list[Window]:
        """Return `query` with each part of `document`."""
        encoded = self.tokenizer(
            self._truncate_query(query),
            document,
            truncation="only_second",
            max_length=self.length,
            stride=min(SHARED, self.length // 4),
            return_overflowing_tokens=True,
            return_offsets_mapping=True,
        )
        document_windows = []
        for row, offsets in enumerate(encoded["offset_mapping"]):
            own = [number for number, text in enumerate(encoded.sequence_ids(row)) if text == 1]
            inputs = {
                name: encoded[name][row]
                for name in self.tokenizer.model_input_names
                if name in encoded
            }
            document_offsets = np.array(
                [offsets[number] for number in own], dtype=np.int32
            ).reshape(-1, 2)
            document_windows.append(Window(inputs, own[0] if own else 0, document_offsets))
        return document_windows

    def batch(self, windows: Sequence[Window]) -> Any:
        """Return the inputs of some windows as padded tensors on the model's device."""
        inputs = {name: [window.inputs[name] for window in windows] for name in windows[0].inputs}
        return self.tokenizer.pad(inputs, return_tensors="pt").to(self.full_model.device)

    def _truncate_query(self, query: str) -> str:
        """Return the part of `query` that is read."""
        most = min(QUERY, self.length // 4)
        offsets = self.tokenizer(query, add_special_tokens=False, return_offsets_mapping=True)[
            "offset_mapping"
        ]
        return query if len(offsets) <= most else query[: offsets[most - 1][1]]

    def _logits(self, windows: Sequence[Window]) -> tuple[Floats, Floats]:
        """Return the logits of starts and of ends, float32 ``[windows, tokens]``."""
        with self._torch.no_grad():
            outputs = self.full_model(**self.batch(windows))
        return outputs.start_logits.float().cpu().numpy(), outputs.end_logits.float().cpu().numpy()


def find_best_span(starts: Floats, ends: Floats) -> tuple[float, int, int]:
    """Return the greatest sum of a start and an end, and its first and last token.

    Every span of 1 to `ANSWER` tokens is tried; (-inf, 0, 0) if there is none. `starts` and `ends`
    are float32 ``[tokens]``.
    """
    best_span = (float("-inf"), 0, 0)
    for length in range(min(ANSWER, len(starts))):
        sums = starts[: len(starts) - length] + ends[length:]
        first = int(np.argmax(sums))
        if sums[first] > best_span[0]:
            best_span = (float(sums[first]), first, first + length)
    return best_span
