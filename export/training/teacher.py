"""The teachers: encoders that are frozen.

The vector that one gives a span by itself is what the span's mean should be in a passage.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Protocol

import torch
from torch import Tensor

from export.training.losses import unit
from export.training.model import SpanEncoder, autocast_bfloat16, batches, run
from export.training.recipe import TeacherMixture
from export.training.texts import Cutter, Text

RIDGE = 0.01
"""Regularization of `align`, in mean squares of a number of a unit vector."""


class Teacher(Protocol):
    """Gives texts unit vectors."""

    def alone(self, texts: Sequence[str]) -> Tensor:
        """Return the vectors of `texts` by themselves, ``[texts, dimension]``."""
        ...


class FrozenEncoder:
    """Returns unit vectors of texts, ``[texts, hidden]``, as the model was trained.

    They are the mean over all tokens; of special ones too, if `special_tokens` is set, as
    sentence-transformers trains.
    """

    def __init__(
        self,
        model: SpanEncoder,
        cutter: Cutter,
        budget: int,
        bfloat16: bool = False,
        special_tokens: bool = True,
    ) -> None:
        self._special_tokens = special_tokens
        self.model, self._cutter, self._budget, self.bfloat16 = (
            model.requires_grad_(False),
            cutter,
            budget,
            bfloat16,
        )
        for layer in model.modules():
            if bfloat16 and isinstance(layer, torch.nn.Linear):
                layer.bfloat16()  # frozen, so it is cast once and not at each step

    def alone(self, texts: Sequence[str]) -> Tensor:
        """Return the vectors of `texts` by themselves; equal ones are read once."""
        different = list(dict.fromkeys(texts))
        places = {text: i for i, text in enumerate(different)}
        tokenized = self._cutter.tokenize(different)
        rows = [text.ids for text in tokenized]
        inside = None if self._special_tokens else [(0, len(row)) for row in rows]
        return self._pool(rows, inside)[[places[text] for text in texts]]

    def window(self, spans: Sequence[tuple[Text, int, int]], words: int) -> Tensor:
        """Return the vectors of spans, read with `words` words either side.

        Spans are (text, start, end in characters); vectors are pooled over the span's tokens.
        """
        windows = [_window(text, start, end, words) for text, start, end in spans]
        tokenized = self._cutter.tokenize(
            [text.text[a:b] for (text, _, _), (a, b) in zip(spans, windows, strict=True)]
        )
        inside = [
            text.tokens(start - a, end - a)
            for text, (_, start, end), (a, _) in zip(tokenized, spans, windows, strict=True)
        ]
        return self._pool([text.ids for text in tokenized], inside)

    def mix_teachers(
        self, spans: Sequence[tuple[Text, int, int]], mixture: TeacherMixture
    ) -> Tensor:
        """Return the vectors of spans by a mixture of teachers, unit length."""
        parts = []
        if mixture.alone:
            parts.append(
                mixture.alone * self.alone([text.text[start:end] for text, start, end in spans])
            )
        if mixture.window:
            parts.append(mixture.window * self.window(spans, mixture.words))
        return unit(torch.stack(parts).sum(0))

    def _pool(
        self, rows: Sequence[Sequence[int]], inside: Sequence[tuple[int, int]] | None
    ) -> Tensor:
        """Return unit means over all tokens, or over those `inside`.

        `inside` are (start, end), counted without special tokens.
        """
        edge = len(self._cutter.before)
        vectors: list[Tensor] = []
        order: list[int] = []
        with torch.no_grad(), autocast_bfloat16(self.model, self.bfloat16):
            for chunk in batches([len(row) for row in rows], self._budget):
                hidden, mask = run(self.model, self._cutter, [rows[i] for i in chunk])
                if inside is not None:
                    steps = torch.arange(mask.shape[1], device=mask.device)
                    start, end = (
                        torch.tensor([inside[i][side] + edge for i in chunk], device=mask.device)[
                            :, None
                        ]
                        for side in (0, 1)
                    )
                    mask = (steps >= start) & (steps < end)
                vectors.append(unit((hidden * mask[..., None]).sum(1)))
                order += chunk
        original_order = torch.argsort(torch.tensor(order, device=vectors[0].device))
        return torch.cat(vectors)[original_order]


def _window(text: Text, start: int, end: int, words: int) -> tuple[int, int]:
    word_offsets = text.words
    inside = [i for i, (a, b) in enumerate(word_offsets.tolist()) if b > start and a < end]
    if not inside:
        return start, end
    first, last = max(0, inside[0] - words), min(len(word_offsets) - 1, inside[-1] + words)
    return min(start, int(word_offsets[first, 0])), max(end, int(word_offsets[last, 1]))


def principal(teacher: FrozenEncoder, texts: Sequence[str]) -> Tensor:
    """Return an orthogonal matrix of the principal directions of the teacher's vectors.

    Rows, strongest first, from `texts`. All cosines stay as they are, and the first d numbers of a
    vector already are the best d that a rotation can give.
    """
    vectors = teacher.alone(texts).double().cpu()
    _, directions = torch.linalg.eigh(vectors.T @ vectors)
    return unit(directions.flip(1).T).float()


def align(vectors: Tensor, goals: Tensor) -> Tensor:
    """Return the matrix that takes `vectors` nearest to `goals`, by ridge regression.

    ``[goals' dimension, vectors' dimension]``, as a linear layer has it; both ``[n, dimension]``.
    """
    x, y = vectors.double().cpu(), goals.double().cpu()
    ridge = RIDGE * len(x) / x.shape[1] * torch.eye(x.shape[1], dtype=torch.float64)
    return torch.linalg.solve(x.T @ x + ridge, x.T @ y).T.float()
