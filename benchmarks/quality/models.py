"""The tables of ``export/README.md``: models and recipes beside each other, from results/*.json."""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any

from benchmarks import results
from benchmarks.markdown import head, row
from benchmarks.quality.tasks import TASKS
from hybrid_search.encoder import SHIPPED

BASE = "all-MiniLM-L6-v2"

RECIPES = {
    BASE: "none: the base model",
    "paper": "`paper`: one negative a triple",
    "contrast": "`contrast`: all of a batch as negatives",
    "top": "`top`: distillation, three top layers",
    "small": "`small`: both in turn, three top layers",
    "first-stage": "`shipped`, first stage: distillation, all layers",
    "first-round": "`shipped`, first round: scores and contrast as well",
}
"""Models that are not shipped, by name, and what made them."""


def training_table() -> str:
    """Each recipe on the sets that models are chosen on."""
    heads = (
        "single pass",
        "found",
        "sentence-wise",
        "full context",
        "PiC",
        "spans",
        "one vector",
        "hybrid 0.5",
    )
    lines = head("recipe", *heads)
    rows = [
        (about, _dev_result_name(name))
        for name, about in {**RECIPES, _read_shipped_info()["name"]: "**`shipped`**"}.items()
    ]
    return "\n".join(
        [
            *lines,
            *[
                row(about, *_scores(results.read_newest(name)))
                for about, name in rows
                if results.has_result(name)
            ],
        ]
    )


def _scores(dev_result: dict[str, Any]) -> list[str]:
    setups, systems = dev_result["stsb-context"]["setups"], dev_result["turns"]["systems"]
    passes = [
        setups["single pass"]["pearson"],
        setups["single pass"]["found"],
        setups["sentence-wise"]["pearson"],
        setups["full context"]["pearson"],
    ]
    turn_scores = [
        systems[name]["mean"] for name in ("best span", "one vector a turn", "hybrid 0.5")
    ]
    return [f"{value:.3f}" for value in (*passes, dev_result["pic"]["in context"], *turn_scores)]


def setups_table() -> str:
    """Every way to score STS-B-Context, by the base model and by the one that ships, and what each
    costs.
    """
    stsb_results = [
        results.read_newest(_dev_result_name(name))["stsb-context"]
        for name in (BASE, _read_shipped_info()["name"])
    ]
    lines = head("Pearson / Spearman", "base", "shipped", "tokens a row", "passes a row")
    for name, first in stsb_results[0]["setups"].items():
        scores = [
            f"{stsb_result['setups'][name]['pearson']:.3f} / {stsb_result['setups'][name]['spearman']:.3f}"
            for stsb_result in stsb_results
        ]
        lines.append(
            row(name, *scores, f"{first['tokens a row']:,.0f}", f"{first['texts a row']:,.0f}")
        )
    full_cost = stsb_results[0]["cost of every n-gram"]
    return "\n".join(
        [
            *lines,
            row(
                "per n-gram, every one",
                "",
                "",
                f"{full_cost['tokens a row']:,.0f}",
                f"{full_cost['texts a row']:,.0f}",
            ),
        ]
    )


def differences_table() -> str:
    """The differences on the turns, with their intervals."""
    turn_differences = results.read_newest(_dev_result_name(_read_shipped_info()["name"]))["turns"][
        "differences"
    ]
    lines = head("nDCG@10 of turns, shipped", "difference", "95% interval")
    table_rows = [
        (
            name,
            f"{difference['mean']:+.3f}",
            f"{difference['interval'][0]:+.3f} to {difference['interval'][1]:+.3f}",
        )
        for name, difference in turn_differences.items()
    ]
    return "\n".join([*lines, *[row(*cells) for cells in table_rows]])


def spans_table() -> str:
    """Passages by their best span and by one vector, base and shipped, on each task."""
    lines = head("nDCG@10 of passages", *TASKS, "mean")
    for model, measurement in (
        ("base", f"retrieval_{BASE}_int8_????????"),
        ("shipped", "retrieval"),
    ):
        rankings = {
            name: results.read_newest(f"{measurement}-{name}")["rankings"] for name in TASKS
        }
        for way in ("spans", "one vector a passage", "hybrid 0.5"):
            values = [rankings[name][way]["ndcg@10"] for name in TASKS]
            lines.append(
                row(
                    f"{model}, {way}",
                    *[f"{value:.3f}" for value in (*values, sum(values) / len(values))],
                )
            )
    return "\n".join(lines)


def sizes_table() -> str:
    """Quality against bytes."""
    figures_by_size = results.read_newest("sizes")["sizes"]
    heads = list(next(iter(figures_by_size.values())))
    lines = head("numbers a vector", *heads)
    return "\n".join(
        [
            *lines,
            *[
                row(name, *[f"{value:,}" for value in figures.values()])
                for name, figures in figures_by_size.items()
            ],
        ]
    )


def precisions_table() -> str:
    """Parity and speed of each precision of the model that ships."""
    figures_by_precision, parity = (
        results.read_newest("precisions")["precisions"],
        _read_shipped_info()["parity"],
    )
    heads = ("mean cosine", "least cosine", "same best span", "Pearson", "times float32's tokens/s")
    lines = head("precision, on a CPU", *heads)
    for name, figures in figures_by_precision.items():
        span = parity[name]
        cells = (
            f"{span['mean']:.4f}",
            f"{span['min']:.4f}",
            f"{span['same']:.3f}",
            f"{figures['pearson']:.4f}",
            f"{figures['times float32']:.2f}",
        )
        lines.append(row(name, *cells))
    return "\n".join(lines)


def _dev_result_name(name: str) -> str:
    """The dev scores of a model in int8: behind its name comes the head of its fingerprint."""
    return f"dev_{name}_int8_????????"


def _read_shipped_info() -> dict[str, Any]:
    """``encoder.json`` of the model that ships."""
    info: dict[str, Any] = json.loads((SHIPPED / "encoder.json").read_text(encoding="utf-8"))
    return info


TABLES: dict[str, Callable[[], str]] = {
    "training": training_table,
    "setups": setups_table,
    "differences": differences_table,
    "spans": spans_table,
    "sizes": sizes_table,
    "precisions": precisions_table,
}
