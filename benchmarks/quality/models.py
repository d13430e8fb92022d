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


def training() -> str:
    """Each recipe on the sets that models are chosen on."""
    heads = ("single pass", "found", "sentence-wise", "full context", "PiC", "spans", "one vector", "hybrid 0.5")
    lines = head("recipe", *heads)
    rows = [(about, _dev(name)) for name, about in {**RECIPES, _shipped()["name"]: "**`shipped`**"}.items()]
    return "\n".join([*lines, *[row(about, *_scores(results.newest(name))) for about, name in rows if results.there(name)]])


def _scores(held: dict[str, Any]) -> list[str]:
    setups, systems = held["stsb-context"]["setups"], held["turns"]["systems"]
    passes = [setups["single pass"]["pearson"], setups["single pass"]["found"], setups["sentence-wise"]["pearson"], setups["full context"]["pearson"]]
    ranked = [systems[name]["mean"] for name in ("best span", "one vector a turn", "hybrid 0.5")]
    return [f"{value:.3f}" for value in (*passes, held["pic"]["in context"], *ranked)]


def setups() -> str:
    """Every way to score STS-B-Context, by the base model and by the one that ships, and what each costs."""
    held = [results.newest(_dev(name))["stsb-context"] for name in (BASE, _shipped()["name"])]
    lines = head("Pearson / Spearman", "base", "shipped", "tokens a row", "passes a row")
    for name, first in held[0]["setups"].items():
        scores = [f"{each['setups'][name]['pearson']:.3f} / {each['setups'][name]['spearman']:.3f}" for each in held]
        lines.append(row(name, *scores, f"{first['tokens a row']:,.0f}", f"{first['texts a row']:,.0f}"))
    whole = held[0]["cost of every n-gram"]
    return "\n".join([*lines, row("per n-gram, every one", "", "", f"{whole['tokens a row']:,.0f}", f"{whole['texts a row']:,.0f}")])


def differences() -> str:
    """The differences on the turns, with their intervals."""
    held = results.newest(_dev(_shipped()["name"]))["turns"]["differences"]
    lines = head("nDCG@10 of turns, shipped", "difference", "95% interval")
    shown = [(name, f"{each['mean']:+.3f}", f"{each['interval'][0]:+.3f} to {each['interval'][1]:+.3f}") for name, each in held.items()]
    return "\n".join([*lines, *[row(*cells) for cells in shown]])


def spans() -> str:
    """Passages by their best span and by one vector, base and shipped, on each task."""
    lines = head("nDCG@10 of passages", *TASKS, "mean")
    for model, measurement in (("base", f"retrieval_{BASE}_int8_????????"), ("shipped", "retrieval")):
        held = {name: results.newest(f"{measurement}-{name}")["rankings"] for name in TASKS}
        for way in ("spans", "one vector a passage", "hybrid 0.5"):
            values = [held[name][way]["ndcg@10"] for name in TASKS]
            lines.append(row(f"{model}, {way}", *[f"{value:.3f}" for value in (*values, sum(values) / len(values))]))
    return "\n".join(lines)


def sizes() -> str:
    """Quality against bytes."""
    held = results.newest("sizes")["sizes"]
    heads = list(next(iter(held.values())))
    lines = head("numbers a vector", *heads)
    return "\n".join([*lines, *[row(name, *[f"{value:,}" for value in each.values()]) for name, each in held.items()]])


def precisions() -> str:
    """Parity and speed of each precision of the model that ships."""
    held, parity = results.newest("precisions")["precisions"], _shipped()["parity"]
    heads = ("mean cosine", "least cosine", "same best span", "Pearson", "times float32's tokens/s")
    lines = head("precision, on a CPU", *heads)
    for name, each in held.items():
        span = parity[name]
        shown = (f"{span['mean']:.4f}", f"{span['min']:.4f}", f"{span['same']:.3f}", f"{each['pearson']:.4f}", f"{each['times float32']:.2f}")
        lines.append(row(name, *shown))
    return "\n".join(lines)


def _dev(name: str) -> str:
    """The dev scores of a model in int8: behind its name comes the head of its fingerprint."""
    return f"dev_{name}_int8_????????"


def _shipped() -> dict[str, Any]:
    """``encoder.json`` of the model that ships."""
    read: dict[str, Any] = json.loads((SHIPPED / "encoder.json").read_text(encoding="utf-8"))
    return read


TABLES: dict[str, Callable[[], str]] = {
    "training": training,
    "setups": setups,
    "differences": differences,
    "spans": spans,
    "sizes": sizes,
    "precisions": precisions,
}
