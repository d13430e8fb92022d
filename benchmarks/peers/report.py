"""Render the tables of what ships here beside the others."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from benchmarks import results
from benchmarks.markdown import head, row
from benchmarks.peers.corpus import DOCUMENTS, MARKS
from benchmarks.peers.registry import PEERS, Peer

COSTS = "calls_sgd"
"""The set of which times and bytes are shown."""

NOT_RUN = "not run"

Result = dict[str, Any]


def name_result(peer: str, task: str) -> str:
    """Return the name of the result of a peer on a set."""
    return f"{peer}-{task}"


def is_measured(peer: str, task: str, documents: int | None) -> bool:
    """Return whether there is a result of a peer on so many documents of a set.

    None is any number; of marked spans there is only one.
    """
    if not results.has_result(name_result(peer, task), results.PEERS):
        return False
    any_number = task == MARKS or documents is None
    return any_number or documents == _read(peer, task)["documents"]


def ranking_table() -> str:
    """Render nDCG@10 with its interval, and MRR@10, of every peer on every set."""
    columns = ("store", "vectors", *(f"{name}: nDCG@10, MRR@10" for name in DOCUMENTS))
    return _render(columns, _describe_ranking)


def _describe_ranking(name: str, peer: Peer) -> list[str]:
    scores = [_format_scores(name, task) for task in DOCUMENTS]
    weights = next(
        _read(name, task)["weights"] for task in DOCUMENTS if is_measured(name, task, None)
    )
    return [peer.store.value, weights, *scores]


def _format_scores(name: str, task: str) -> str:
    if not is_measured(name, task, None):
        return NOT_RUN
    result = _read(name, task)
    low, high = result["ndcg@10 interval"]
    return f"{result['ndcg@10']:.3f} ({low:.3f}-{high:.3f}), {result['mrr@10']:.3f}"


def cost_table() -> str:
    """Render how right the shown words are, times, bytes, and the lines that a user writes."""
    columns = (
        "store",
        "word F1 of what is shown",
        "query, ms: p50 / p95",
        "CPU ms of a query",
        "ingest: passages/s, per CPU s",
        "bytes per 1,000 words",
        "lines of code",
    )
    return _render(columns, _describe_costs)


def _describe_costs(name: str, peer: Peer) -> list[str]:
    measured, marks = _read(name, COSTS), _read(name, MARKS)
    times = measured["milliseconds"]
    return [
        peer.store.value,
        f"{marks['f1']['mean']:.3f}",
        f"{times['p50']:.1f} / {times['p95']:.1f}",
        f"{measured['CPU ms of a query']:.1f}",
        f"{measured['passages/s']:,.0f}, {measured['passages per CPU s']:,.0f}",
        f"{measured['bytes per 1,000 words']:,}",
        str(measured["lines of code"]),
    ]


def version_table() -> str:
    """Render the versions of the others that were measured, and how they were used."""
    lines = head("peer", "versions", "to know")
    for name, peer in PEERS.items():
        if not peer.has_spans:
            versions = ", ".join(
                f"{key} {value}" for key, value in _read(name, COSTS)["versions"].items()
            )
            lines.append(row(f"[{peer.label}]({peer.documentation})", versions, peer.note))
    return "\n".join(lines)


def set_table() -> str:
    """Render how much of every set was searched."""
    lines = head("set", "documents", "passages", "queries")
    for task in DOCUMENTS:
        result = _read(next(iter(PEERS)), task)
        counts = [result[name] for name in ("documents", "passages", "queries")]
        lines.append(row(task, *[f"{count:,}" for count in counts]))
    return "\n".join(lines)


def _render(columns: Sequence[str], describe: Callable[[str, Peer], list[str]]) -> str:
    """Render a row for each peer."""
    lines = head("peer", *columns)
    for name, peer in PEERS.items():
        label = f"**{peer.label}**" if peer.has_spans else peer.label
        lines.append(row(label, *describe(name, peer)))
    return "\n".join(lines)


def _read(peer: str, task: str) -> Result:
    return results.read_result(name_result(peer, task), results.PEERS)


TABLES: dict[str, Callable[[], str]] = {
    "peers_sets": set_table,
    "peers_ranking": ranking_table,
    "peers_costs": cost_table,
    "peers_versions": version_table,
}
