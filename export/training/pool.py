"""Short texts with a larger teacher's vectors, read once and learned from many times.

A teacher of five times the student's size costs more than a training step, so what it says of a
text is written down: the file ``teacher-DIGEST.npy`` beside the weights, half-precision numbers.
"""

from __future__ import annotations

import hashlib
import math
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from random import Random

import numpy as np
import torch
from torch import Tensor

from export.training import compose, curve, data
from export.training.recipe import Mixture, PoolPlan
from export.training.reword import Rewording
from export.training.teacher import Teacher
from hybrid_search.text.spans import MAX_WORDS

CANDIDATES = 4096
"""Random texts of a step, among which neighbours are searched."""

NEIGHBOURS = 3
"""Nearest texts that a step reads beside each text."""

BLOCK = 2048
"""Texts that are read between two writes to the file."""

SAMPLE = 16384
"""Texts whose principal directions are taken."""

SHARES = {"query": 0.3, "clause": 0.3, "run": 0.25, "reworded": 0.15}
"""Shares of the kinds of texts; a run is a short text by `compose.Composer.short`."""


@dataclass(frozen=True, slots=True, eq=False)
class Pool:
    """Texts, and the teacher's unit vectors of them, or of their English sentences.

    `vectors` are float16 ``[texts, teacher's dimension]``; `goals` what the student's should be,
    float16 ``[texts, student's dimension]``: `directions` ``[student's dimension, teacher's
    dimension]`` times them. `identity` is a digest of texts and teacher.
    """

    texts: Sequence[str]
    vectors: Tensor
    goals: Tensor
    directions: Tensor
    identity: str

    def draw(self, random: Random, count: int) -> list[int]:
        """Return the rows of up to `count` different texts, most of them with neighbours.

        The neighbours of a text are the nearest of `CANDIDATES` random ones: cosines of texts that
        have nothing in common teach little.
        """
        rows = random.sample(range(len(self.texts)), min(CANDIDATES, len(self.texts)))
        vectors = self.vectors[rows].float()
        cosines = vectors[: math.ceil(count / (1 + NEIGHBOURS))] @ vectors.T
        nearest = cosines.topk(min(1 + NEIGHBOURS, len(rows)), dim=1).indices
        places = dict.fromkeys(nearest.flatten().tolist())
        return [rows[place] for place in places][:count]


def draw_texts(corpora: Sequence[data.Corpus], plan: PoolPlan, seed: str) -> list[str]:
    """Return the different texts of the plan, the same on every call."""
    random = Random(f"{seed}/pool")  # noqa: S311 (no secret)
    sampler = data.Sampler(corpora, plan.data, plan.others)
    composer, rewording = compose.Composer(sampler, Mixture()), Rewording(corpora)
    kinds = {
        "query": lambda: sampler.draw(random).query,
        "clause": lambda: _clause(sampler, random),
        "run": lambda: composer.short(random),
        "reworded": lambda: rewording(
            _clause(sampler, random) if random.random() < 0.5 else sampler.draw(random).query,
            random,
        ),
    }
    texts: dict[str, None] = {}
    for _ in range(3 * plan.texts):
        if len(texts) == plan.texts:
            break
        (kind,) = random.choices(list(SHARES), list(SHARES.values()))
        text = " ".join(kinds[kind]().split()[:MAX_WORDS])
        if text:
            texts[text] = None
    return list(texts)


def draw_translations(corpora: Sequence[data.Corpus], plan: PoolPlan, seed: str) -> dict[str, str]:
    """Return different sentences in other languages, and the English ones that a teacher reads.

    Raises:
        SystemExit: If a file has fewer than the plan.
    """
    random = Random(f"{seed}/translations")  # noqa: S311 (no secret)
    of_files = {corpus.name: corpus.english for corpus in corpora}
    translations: dict[str, str] = {}
    for name, count in sorted(plan.translations.items()):
        english = of_files.get(name, {})
        if len(english) < count:
            raise SystemExit(
                f"the pool is to have {count} translations of {name}, but the files of triples have"
                f" {len(english)}: add the file of parallel sentences, or ask for fewer"
            )
        translations |= {text: english[text] for text in random.sample(list(english), count)}
    return translations


def _clause(sampler: data.Sampler, random: Random) -> str:
    triple = sampler.draw(random)
    text = random.choice((triple.positive, triple.negative))
    return compose.draw_clause(text, random)


def read(
    texts: Sequence[str],
    teacher: Teacher,
    fingerprint: str,
    folder: Path,
    find_directions: Callable[[Tensor], Tensor],
    english: Mapping[str, str] | None = None,
) -> Pool:
    """Return the pool of `texts`, as `teacher` reads them.

    What an earlier run wrote into `folder` is not read again.

    Args:
        texts: Different texts.
        teacher: Reads each of them once.
        fingerprint: What tells one teacher from another.
        folder: Where the vectors are written.
        find_directions: Returns for vectors the matrix ``[student's dimension, teacher's
            dimension]`` that makes goals of them.
        english: What the teacher reads in place of texts in other languages.
    """
    sources = [(english or {}).get(text, text) for text in texts]
    parts = [fingerprint, *texts, *sources]
    identity = hashlib.sha256("\n".join(parts).encode()).hexdigest()[:16]
    folder.mkdir(parents=True, exist_ok=True)
    vectors = _read_vectors(sources, teacher, folder / f"teacher-{identity}.npy")
    directions = find_directions(vectors)
    goals = torch.cat([block.float() @ directions.T for block in vectors.split(BLOCK)]).half()
    return Pool(texts, vectors, goals, directions, identity)


def _read_vectors(texts: Sequence[str], teacher: Teacher, path: Path) -> Tensor:
    """Return the teacher's vectors, read block by block where the file does not have them yet."""
    size = teacher.alone([texts[0]]).shape[1]
    mode = "r+" if path.exists() else "w+"
    vectors = np.lib.format.open_memmap(path, mode, np.float16, (len(texts), size))
    began = time.monotonic()
    unread = [start for start in range(0, len(texts), BLOCK) if not vectors[start].any()]
    for number, start in enumerate(unread, 1):
        block = teacher.alone(texts[start : start + BLOCK])
        vectors[start : start + len(block)] = block.cpu().numpy()
        vectors.flush()
        seconds_left = (time.monotonic() - began) / number * (len(unread) - number)
        read = start + len(block)
        curve.say(f"teacher: {read} of {len(texts)} texts, {seconds_left:.0f} s left")
    return torch.from_numpy(np.asarray(vectors))


def find_principal_directions(vectors: Tensor, dimension: int) -> Tensor:
    """Return the strongest principal directions of `vectors`, ``[dimension, their dimension]``.

    Raises:
        SystemExit: If the vectors have fewer numbers.
    """
    size = vectors.shape[1]
    if size < dimension:
        raise SystemExit(
            f"the teacher's vectors have {size} numbers, the student's {dimension}:"
            " the teacher must not be the smaller one"
        )
    sample = vectors[:SAMPLE].double()
    _, directions = torch.linalg.eigh(sample.T @ sample)
    return directions.flip(1).T[:dimension].float()
