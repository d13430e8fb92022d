"""Render the tables of ``export/README.md``: models and recipes beside each other."""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any

from benchmarks import results
from benchmarks.markdown import head, row, table
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
"""Models that are not shipped, by name, and the recipe of each."""


def training_table() -> str:
    """Render each recipe's scores on the sets that models are chosen on."""
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
    for name, about in {**RECIPES, _read_shipped_info()["name"]: "**`shipped`**"}.items():
        if results.has_result(_dev_result_name(name), results.QUALITY):
            lines.append(row(about, *_scores(_read_dev_result(name))))
    return "\n".join(lines)


def _scores(dev_result: dict[str, Any]) -> list[str]:
    setups, systems = dev_result["stsb-context"]["setups"], dev_result["turns"]["systems"]
    scores = [
        setups["single pass"]["pearson"],
        setups["single pass"]["found"],
        setups["sentence-wise"]["pearson"],
        setups["full context"]["pearson"],
        dev_result["pic"]["in context"],
        *[systems[name]["mean"] for name in ("best span", "one vector a turn", "hybrid 0.5")],
    ]
    return [f"{score:.3f}" for score in scores]


def setups_table() -> str:
    """Render every way to score STS-B-Context, by a plain and the shipped model, and its cost."""
    names = (BASE, _read_shipped_info()["name"])
    stsb_results = [_read_dev_result(name)["stsb-context"] for name in names]
    lines = head("Pearson / Spearman", *names, "tokens a row", "passes a row")
    for name, base_figures in stsb_results[0]["setups"].items():
        figures = [stsb_result["setups"][name] for stsb_result in stsb_results]
        scores = [f"{setup['pearson']:.3f} / {setup['spearman']:.3f}" for setup in figures]
        lines.append(row(name, *scores, *_cost(base_figures)))
    full_cost = stsb_results[0]["cost of every n-gram"]
    return "\n".join([*lines, row("per n-gram, every one", "", "", *_cost(full_cost))])


def _cost(figures: dict[str, float]) -> tuple[str, str]:
    return f"{figures['tokens a row']:,.0f}", f"{figures['texts a row']:,.0f}"


def differences_table() -> str:
    """Render the differences on the turns, with their intervals."""
    differences = _read_dev_result(_read_shipped_info()["name"])["turns"]["differences"]

    def cells(name: str) -> tuple[str, str]:
        low, high = differences[name]["interval"]
        return f"{differences[name]['mean']:+.3f}", f"{low:+.3f} to {high:+.3f}"

    columns = ("difference", "95% interval")
    return table("nDCG@10 of turns, shipped", columns, differences, cells)


def spans_table() -> str:
    """Render passages ranked by best span and by one vector, plain and ours, on each task."""
    lines = head("nDCG@10 of passages", *TASKS, "mean")
    for prefix in (f"retrieval_{BASE}_int8_????????", "retrieval"):
        measured = {
            name: results.read_result(f"{prefix}-{name}", results.QUALITY) for name in TASKS
        }
        # what ships may have changed since
        model = next(iter(measured.values())).get("model", BASE).partition("_")[0]
        rankings = {name: result["rankings"] for name, result in measured.items()}
        for way in ("spans", "one vector a passage", "hybrid 0.5"):
            values = [rankings[name][way]["ndcg@10"] for name in TASKS]
            values.append(sum(values) / len(values))
            lines.append(row(f"{model}, {way}", *[f"{value:.3f}" for value in values]))
    return "\n".join(lines)


def sizes_table() -> str:
    """Render quality against bytes."""
    figures = results.read_result("sizes", results.QUALITY)["sizes"]
    columns = list(next(iter(figures.values())))
    return table(
        "numbers a vector",
        columns,
        figures,
        lambda size: [f"{value:,}" for value in figures[size].values()],
    )


def precisions_table() -> str:
    """Render parity and speed of each precision that the shipped model has."""
    parity = _read_shipped_info()["parity"]
    measured = results.read_result("precisions", results.QUALITY)["precisions"]
    figures = {name: measured[name] for name in parity}

    def cells(name: str) -> list[str]:
        spans = parity[name]
        return [
            f"{spans['mean']:.4f}",
            f"{spans['min']:.4f}",
            f"{spans['same']:.3f}",
            f"{figures[name]['pearson']:.4f}",
            f"{figures[name]['times float32']:.2f}",
        ]

    columns = (
        "mean cosine",
        "least cosine",
        "same best span",
        "Pearson",
        "times float32's tokens/s",
    )
    return table("precision, on a CPU", columns, figures, cells)


def _dev_result_name(name: str) -> str:
    """Return the name of a model's dev scores in int8; it ends in eight digits of a fingerprint."""
    return f"dev_{name}_int8_????????"


def _read_dev_result(name: str) -> dict[str, Any]:
    return results.read_result(_dev_result_name(name), results.QUALITY)


def _read_shipped_info() -> dict[str, Any]:
    """Read ``encoder.json`` of the shipped model."""
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
