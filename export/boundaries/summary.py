"""What was trained, as JSON and as tables in Markdown, for the terminal and the model card."""

from __future__ import annotations

from dataclasses import asdict
from typing import Any

from benchmarks.markdown import table
from export.boundaries.gaps import RECOGNISED, WRITTEN
from export.boundaries.training import TrainedPrior
from export.card import LICENSES

ABOUT = """`boundaries.npz` tells how well the ends and the length of a span fit what people mark,
in every size of vectors. Made by `python -m export.boundaries`, seed {seed}, from texts whose
punctuation was the label, as written and as a recogniser writes, and from {examples:,} marked
examples. The AUC of the sources is that of {size} numbers, on one text in eight, which was not
trained on."""


def summarize(trained: TrainedPrior, seed: int) -> dict[str, Any]:
    """Return the report of a training as JSON's types."""
    sizes = {
        str(dimension): {
            "weights": {
                "ends": prior.ends,
                "inside": prior.inside,
                "length": prior.length,
                "unmarked": prior.boundaries.unmarked,
            },
            **asdict(trained.qualities[dimension]),
        }
        for dimension, prior in trained.priors.items()
    }
    return {
        "seed": seed,
        "texts": dict(trained.texts),
        "examples": dict(trained.examples),
        "sizes": sizes,
    }


def render_summary(trained: TrainedPrior) -> str:
    """Return the tables for the terminal: AUC by source and word F1 by set, of the usual size."""
    return f"{_render_sources(trained)}\n\n{_render_sets(trained)}\n\n{_render_sizes(trained)}"


def render_card(trained: TrainedPrior, seed: int) -> str:
    """Return the section of the model card."""
    size = next(iter(trained.priors))
    about = ABOUT.format(seed=seed, examples=sum(trained.examples.values()), size=size)
    return f"{about}\n\n{_render_sources(trained)}\n\n{_render_sizes(trained)}"


def _render_sources(trained: TrainedPrior) -> str:
    auc = next(iter(trained.qualities.values())).auc

    def cells(source: str) -> list[str]:
        areas = [f"{auc[form].get(source, float('nan')):.3f}" for form in (WRITTEN, RECOGNISED)]
        count = trained.texts.get(source, sum(trained.texts.values()))
        return [f"{count:,}", *areas, LICENSES.get(source, "")]

    columns = ("texts", f"AUC, {WRITTEN}", f"AUC, {RECOGNISED}", "licence")
    return table("data", columns, ("all", *trained.texts), cells)


def _render_sets(trained: TrainedPrior) -> str:
    quality = next(iter(trained.qualities.values()))

    def cells(name: str) -> list[str]:
        scores = (quality.cosine_f1[name], quality.prior_f1[name])
        return [f"{trained.examples[name]:,}", *(f"{score:.3f}" for score in scores)]

    columns = ("examples", "word F1 by cosine", "by cosine and prior")
    return table("marked", columns, trained.examples, cells)


def _render_sizes(trained: TrainedPrior) -> str:
    def cells(size: str) -> list[str]:
        prior, quality = trained.priors[int(size)], trained.qualities[int(size)]
        weights = (prior.ends, prior.inside, prior.length)
        areas = (quality.auc[form]["all"] for form in (WRITTEN, RECOGNISED))
        return [f"{number:.3f}" for number in (*weights, *areas)]

    columns = ("ends", "inside", "length", f"AUC, {WRITTEN}", f"AUC, {RECOGNISED}")
    return table("numbers a vector", columns, map(str, trained.priors), cells)
