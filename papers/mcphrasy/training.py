"""Train the McPhraSy embedder: ``python -m papers.mcphrasy.training --out DIR [--model DIR]``.

Cohen et al., 2022 (see `papers.mcphrasy`): contexts of frequent phrases, their masks' vectors from
a frozen encoder, and a perceptron of two layers that brings the contexts of one phrase together.
The folder gets embedder.npz and run.json. Vectors are computed once and held in memory as float16:
80,000 of 288 numbers are 46 MB. Phrases that anything is measured on are left out, and so are the
corpora's rows for measuring.
"""

from __future__ import annotations

import argparse
import copy
import sys
import time
from collections.abc import Iterator, Sequence
from dataclasses import asdict, dataclass
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import torch
from torch import Tensor, nn

from benchmarks import results
from hybrid_search.text.types import Floats, Halves, Ints
from papers.mcphrasy import bases, contexts, corpora, measured_on, phrases
from papers.mcphrasy.embedder import Embedder, inputs
from papers.mcphrasy.system import Base, Initial, Store

FILE = "embedder.npz"
DEV = 20
"""One phrase in this many is not trained on; the epoch with the least loss on them is used."""


@dataclass(frozen=True, slots=True)
class Settings:
    """`batch` sentences a step, `together` of each phrase in it; `hidden` and `output` numbers.

    Rate, batch and optimizer (Adam) are the paper's, which does not tell the rest.
    """

    rate: float = 7e-4
    batch: int = 300
    together: int = 10
    margin: float = 0.2
    sampling: str = "semi-hard"
    epochs: int = 10
    hidden: int = 768
    output: int = 288
    seed: int = 1


@dataclass(frozen=True, slots=True, eq=False)
class Samples:
    """Contexts of phrases, with the phrases' own vectors.

    `masks` float16 ``[contexts, mask]``; `phrases` int32 ``[contexts]`` number the rows of `own`,
    ``[phrases, own]``.
    """

    masks: Halves
    phrases: Ints
    own: Floats

    @classmethod
    def from_initial(cls, initial: Sequence[Initial]) -> Samples:
        """Return the samples of phrases with two contexts or more.

        A single context has nothing to be brought near to.
        """
        repeated = [representation for representation in initial if len(representation.masks) > 1]
        numbers = np.repeat(
            np.arange(len(repeated), dtype=np.int32),
            [len(representation.masks) for representation in repeated],
        )
        return cls(
            np.concatenate([representation.masks for representation in repeated]),
            numbers,
            np.stack([representation.own for representation in repeated]),
        )

    def inputs(self, rows: Ints, with_own: bool) -> Tensor:
        """Return the perceptron's input for these contexts, float32 ``[rows, mask + own]``."""
        own = self.own[self.phrases[rows]] if with_own else None
        return torch.from_numpy(inputs(self.masks[rows], own, self.own.shape[1]))


class Perceptron(nn.Sequential):
    """The two layers, to be trained."""

    def __init__(self, width: int, hidden: int, output: int) -> None:
        super().__init__(nn.Linear(width, hidden), nn.ReLU(), nn.Linear(hidden, output))

    def embedder(self, base: str, spanbert: str = "", phrasebert: str = "") -> Embedder:
        """Return the same layers for numpy, with the names of the models they were trained on."""
        first, second = self[0], self[2]
        weights = (first.weight.T, first.bias, second.weight.T, second.bias)
        a, a_bias, b, b_bias = (weight.detach().numpy().copy() for weight in weights)
        return Embedder(base, a, a_bias, b, b_bias, spanbert, phrasebert)


def hardest(distances: Tensor, same: Tensor, itself: Tensor) -> tuple[Tensor, Tensor]:
    """Return each anchor's distance to its farthest positive and its closest negative.

    Distances are ``[anchors]`` (Hermans et al., 2017). On 400 phrases this brought all contexts
    together: from the second epoch on both distances were one, and the loss was the margin.
    """
    return distances.masked_fill(~same | itself, -torch.inf).amax(dim=1), distances.masked_fill(
        same, torch.inf
    ).amin(dim=1)


def semi_hard(distances: Tensor, same: Tensor, itself: Tensor) -> tuple[Tensor, Tensor]:
    """Return the distance of each anchor and positive, and that of a semi-hard negative.

    That is the closest context of another phrase among those that are farther than the positive, or
    the farthest if none qualifies: distances ``[pairs]`` (Schroff et al., FaceNet, 2015).
    """
    away = distances.masked_fill(same, torch.inf).sort(dim=1).values
    last = ((~same).sum(dim=1, keepdim=True) - 1).clamp(min=0)
    beyond = torch.searchsorted(away.detach(), distances.detach(), right=True).minimum(last)
    pairs = same & ~itself
    return distances[pairs], away.gather(1, beyond)[pairs]


SAMPLING = {"hardest": hardest, "semi-hard": semi_hard}
"""Which triplets of a batch count.

Section 3.2 of the paper asks for close positives, its appendix for the farthest two contexts of a
phrase.
"""


def triplet_loss(
    anchors: Tensor, candidates: Tensor, labels: Tensor, margin: float, sampling: str = "semi-hard"
) -> Tensor:
    """Return the mean over triplets of max(d(a, p) - d(a, n) + margin, 0), d being 1 - cosine.

    Equation 1 of the paper; 0 if there is no triplet. `anchors` and `candidates` ``[contexts,
    output]`` are the same contexts, the anchors without their phrase's own vector; `labels`
    ``[contexts]`` are their phrases.
    """
    distances = (
        1 - nn.functional.normalize(anchors, dim=1) @ nn.functional.normalize(candidates, dim=1).T
    )
    itself = torch.eye(len(labels), dtype=torch.bool)
    positive, negative = SAMPLING[sampling](distances, labels[:, None] == labels[None, :], itself)
    used = torch.isfinite(positive) & torch.isfinite(negative)
    losses = torch.relu(positive[used] - negative[used] + margin)
    return losses.sum() / max(int(used.sum()), 1)


def batches(numbers: Ints, settings: Settings, random: np.random.Generator) -> Iterator[Ints]:
    """Yield the rows of each step of an epoch, int32 ``[batch]``.

    Each context comes once, `together` of a phrase in a batch, phrases in another order each time.
    """
    order = random.permutation(len(numbers)).astype(np.int32)
    rows = order[np.argsort(numbers[order], kind="stable")]
    starts = np.flatnonzero(np.diff(numbers[rows], prepend=-1))
    pieces = [
        piece[at : at + settings.together]
        for piece in np.split(rows, starts[1:])
        for at in range(0, len(piece), settings.together)
    ]
    places = random.permutation(len(pieces))
    groups_per_batch = max(2, settings.batch // settings.together)
    for start in range(0, len(pieces), groups_per_batch):
        yield np.concatenate([pieces[place] for place in places[start : start + groups_per_batch]])


def loss_of(model: nn.Module, samples: Samples, rows: Ints, settings: Settings) -> Tensor:
    """Return the loss of one batch."""
    anchors, candidates = (model(samples.inputs(rows, with_own)) for with_own in (False, True))
    return triplet_loss(
        anchors,
        candidates,
        torch.from_numpy(samples.phrases[rows]),
        settings.margin,
        settings.sampling,
    )


def train(
    samples: Samples, dev: Samples, settings: Settings
) -> tuple[Perceptron, list[dict[str, float]]]:
    """Return the weights of the epoch that is best on `dev`, and the mean losses of each epoch."""
    torch.manual_seed(settings.seed)
    random = np.random.default_rng(settings.seed)
    model = Perceptron(
        samples.masks.shape[1] + samples.own.shape[1], settings.hidden, settings.output
    )
    optimizer = torch.optim.Adam(model.parameters(), lr=settings.rate)
    curve = [{"epoch": 0, "dev": _mean(model, dev, settings)}]
    best, best_model = curve[0]["dev"], copy.deepcopy(model)
    for epoch in range(1, settings.epochs + 1):
        losses = [
            _step(model, optimizer, samples, rows, settings)
            for rows in batches(samples.phrases, settings, random)
        ]
        curve.append(
            {
                "epoch": epoch,
                "train": round(float(np.mean(losses)), 5),
                "dev": _mean(model, dev, settings),
            }
        )
        print(f"epoch {epoch}: {curve[-1]}", file=sys.stderr)
        if curve[-1]["dev"] < best:
            best, best_model = curve[-1]["dev"], copy.deepcopy(model)
    return best_model, curve


def _step(
    model: nn.Module, optimizer: Any, samples: Samples, rows: Ints, settings: Settings
) -> float:
    optimizer.zero_grad()
    loss = loss_of(model, samples, rows, settings)
    loss.backward()
    optimizer.step()
    return float(loss.detach())


def _mean(model: nn.Module, samples: Samples, settings: Settings) -> float:
    """Return the mean loss of the same batches each time."""
    with torch.no_grad():
        every = batches(samples.phrases, settings, np.random.default_rng(settings.seed))
        return round(float(np.mean([loss_of(model, samples, rows, settings) for rows in every])), 5)


def sample_phrases(
    base: Base, data: Path, count: int, most: int
) -> tuple[list[str], list[Initial]]:
    """Return frequent phrases that nothing is measured on, and their initial representations.

    Each has `most` contexts, or nearly as many.

    Raises:
        SystemExit: If too few phrases have so many contexts.
    """
    sentences = partial(corpora.read, data, [corpora.TRAIN])
    names = phrases.find_frequent_phrases(sentences, count, most, measured_on.phrases(data))
    if len(names) < DEV:
        raise SystemExit(
            f"{len(names)} phrases have {most} contexts in {data}, and at least {DEV} are needed:"
            " give fewer --contexts"
        )
    initial_by_name = Store(base, contexts.ContextCache(sentences, most)).represent(names)
    return names, [initial_by_name[name] for name in names]


def arguments(argv: Sequence[str] | None = None) -> argparse.Namespace:
    """Parse the command line."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    bases.add_options(parser)
    parser.add_argument(
        "--out", type=Path, required=True, help=f"the folder that gets {FILE} and run.json"
    )
    parser.add_argument(
        "--phrases", type=int, default=2000, help="phrases to train on, the most frequent ones"
    )
    parser.add_argument(
        "--contexts", type=int, default=40, help="contexts of each, which it must have"
    )
    for name, default in asdict(Settings()).items():
        parser.add_argument(
            f"--{name}",
            type=type(default),
            default=default,
            choices=SAMPLING if name == "sampling" else None,
        )
    return parser.parse_args(argv)


def main(argv: Sequence[str] | None = None) -> None:
    """Run the command."""
    options = arguments(argv)
    started_at, settings = (
        time.perf_counter(),
        Settings(**{name: getattr(options, name) for name in asdict(Settings())}),
    )
    base = bases.load_base(options)
    names, initial = sample_phrases(base, options.data, options.phrases, options.contexts)
    read_seconds = time.perf_counter() - started_at
    held_out = [
        representation for number, representation in enumerate(initial) if number % DEV == 0
    ]
    trained_on = Samples.from_initial(
        [representation for number, representation in enumerate(initial) if number % DEV]
    )
    model, curve = train(trained_on, Samples.from_initial(held_out), settings)
    options.out.mkdir(parents=True, exist_ok=True)
    model.embedder(base.name, options.spanbert, options.phrasebert).save(options.out / FILE)
    payload = {
        "base": base.name,
        "phrases": len(names),
        "held out phrases": len(held_out),
        "contexts": len(trained_on.masks),
        "contexts a phrase, at most": options.contexts,
        "corpora": [corpus.name for corpus in corpora.CORPORA],
        "words of a context": [contexts.LEAST_WORDS, contexts.MOST_WORDS],
        "settings": asdict(settings),
        "curve": curve,
        "seconds": {
            "contexts and vectors": round(read_seconds, 1),
            "all": round(time.perf_counter() - started_at, 1),
        },
        "versions": {"torch": torch.__version__, "numpy": np.__version__},
    }
    results.save(options.out / "run.json", payload)


if __name__ == "__main__":
    main()
