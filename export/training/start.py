"""What a run begins with: the pool of texts that a larger teacher reads, and the head."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from pathlib import Path
from random import Random

import torch
from torch import Tensor

from export.training import compose, data, loop, pool
from export.training.model import SpanEncoder
from export.training.pool import Pool
from export.training.recipe import Mixture, Recipe
from export.training.teacher import FrozenEncoder, align, principal
from export.training.texts import Cutter

SAMPLE = 8192
"""Short texts that matrices are fitted to."""


def read_pool(
    recipe: Recipe,
    corpora: Sequence[data.Corpus],
    teacher: FrozenEncoder,
    fingerprint: str,
    student: FrozenEncoder,
    folder: Path,
) -> Pool:
    """Return the recipe's pool, read by `teacher`.

    Its goals lie along the teacher's principal directions. If the student has a head already, they
    lie where its vectors are now, so that no old vector loses its meaning.
    """
    english = pool.draw_translations(corpora, recipe.pool, str(recipe.seed))
    texts = [*pool.draw_texts(corpora, recipe.pool, str(recipe.seed)), *english]
    Random(f"{recipe.seed}/order").shuffle(texts)  # noqa: S311 (no secret)
    if student.model.head is None:
        directions = partial(pool.find_principal_directions, dimension=student.model.hidden)
        return pool.read(texts, teacher, fingerprint, folder, directions, english)
    vectors = student.alone(texts[:SAMPLE])
    return pool.read(
        texts, teacher, fingerprint, folder, lambda read: align(read[:SAMPLE], vectors), english
    )


def make_head(
    recipe: Recipe,
    corpora: Sequence[data.Corpus],
    base: SpanEncoder,
    cutter: Cutter,
    text_pool: Pool | None,
) -> Tensor:
    """Return the matrix that the recipe's head begins with, ``[hidden, hidden]``."""
    if recipe.head == "identity":
        return torch.eye(base.hidden)
    if recipe.head == "aligned" and text_pool:
        encoder = FrozenEncoder(base, cutter, loop.CPU_BUDGET, special_tokens=False)
        return align(encoder.alone(text_pool.texts[:SAMPLE]), text_pool.goals[:SAMPLE])
    composer = compose.Composer(data.Sampler(corpora, {}, 1.0), Mixture())
    random = Random(f"{recipe.seed}/head")  # noqa: S311 (no secret)
    texts = [composer.short(random) for _ in range(SAMPLE)]
    return principal(FrozenEncoder(base, cutter, loop.CPU_BUDGET), texts)
