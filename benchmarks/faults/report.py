"""The summary of a campaign: counts by family and target, and every trial that broke a rule."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from benchmarks.faults.trial import RULES, Outcome
from benchmarks.markdown import head, row

COLUMNS = ("tried", "told", "mended", *RULES)
DAMAGED = "damaged bytes"
EXAMPLES = 20
"""Trials that are listed of each rule."""


def count_outcomes(outcomes: Iterable[Outcome]) -> dict[str, int]:
    """Return how many trials were run, reported, mended, skipped, and broke each rule."""
    counts: Counter[str] = Counter()
    for outcome in outcomes:
        if outcome.skipped:
            counts["skipped"] += 1
            continue
        counts["tried"] += 1
        counts["told"] += outcome.is_reported
        counts["mended"] += outcome.is_mended
        counts.update(outcome.violations)
    return {name: counts[name] for name in (*COLUMNS, "skipped")}


def summarize(outcomes: Sequence[Outcome], seed: int, seconds: float) -> dict[str, Any]:
    """Return the summary as it is stored."""
    targets: dict[str, list[Outcome]] = {}
    for outcome in outcomes:
        targets.setdefault(_label(outcome), []).append(outcome)
    violations = [
        {"id": outcome.trial.id, "rules": list(outcome.violations), "note": outcome.note}
        for outcome in outcomes
        if outcome.violations
    ]
    return {
        "seed": seed,
        "seconds": round(seconds),
        "total": count_outcomes(outcomes),
        "targets": {label: count_outcomes(group) for label, group in sorted(targets.items())},
        "skipped": dict(Counter(outcome.skipped for outcome in outcomes if outcome.skipped)),
        "violations": _shorten(violations),
    }


def _label(outcome: Outcome) -> str:
    """Return the row in which a trial is counted."""
    family, target = outcome.trial.family, outcome.trial.target
    if family == "access":
        return next((label for start, label in ACCESS_ROWS if target.startswith(start)), target)
    if family == "answers":
        return f"bad answers to {target.partition(',')[0]}"
    if family == "parameters":
        return f"odd arguments of {target}"
    source, _, name = target.partition("/")
    return f"{DAMAGED}: {name}{SOURCES[source]}"


ACCESS_ROWS = (
    ("store", "vanished, forbidden and linked: files of an index"),
    ("rejected", "vanished, forbidden and linked: the file of refused documents"),
    ("model", "vanished, forbidden and linked: files of a model"),
    ("file system", "full and read-only file systems"),
    ("std", "full and closed outputs"),
)
SOURCES = {
    "tiny": "",
    "interrupted": " (after a kill)",
    "model": " (model)",
}


def _shorten(violations: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """Return the first few of each rule."""
    counts: Counter[str] = Counter()
    examples = []
    for violation in sorted(violations, key=lambda violation: str(violation["id"])):
        if any(counts[rule] < EXAMPLES for rule in violation["rules"]):
            examples.append(violation)
        counts.update(violation["rules"])
    return examples


def render(summary: dict[str, Any]) -> str:
    """Return the summary as a table, followed by the trials that broke a rule."""
    lines = render_table(summary)
    for violation in summary["violations"]:
        lines.append(f"{', '.join(violation['rules'])}: {violation['id']}: {violation['note']}")
    total = summary["total"]
    lines.append(
        f"{total['tried']:,} faults in {summary['seconds']} s, {total['skipped']} skipped "
        f"{summary['skipped'] or ''}"
    )
    return "\n".join(lines)


def render_table(summary: dict[str, Any]) -> list[str]:
    """Return the counts as a table in Markdown."""
    return _render_counts({**summary["targets"], "all": summary["total"]})


def render_short_table(summary: dict[str, Any]) -> list[str]:
    """Return the counts as a table in which all damaged files of an index, or a model, are one."""
    grouped: dict[str, Counter[str]] = {}
    for label, counts in summary["targets"].items():
        grouped.setdefault(_shorten_label(label), Counter()).update(counts)
    return _render_counts({**grouped, "all": summary["total"]})


def _shorten_label(label: str) -> str:
    kind, _, file = label.partition(": ")
    if kind != DAMAGED:
        return label
    return f"{DAMAGED} of {'a model' if file.endswith(SOURCES['model']) else 'an index'}"


def _render_counts(groups: Mapping[str, Mapping[str, int]]) -> list[str]:
    lines = head("faults", *COLUMNS)
    for label, counts in groups.items():
        lines.append(row(label, *[f"{counts[column]:,}" for column in COLUMNS]))
    return lines
