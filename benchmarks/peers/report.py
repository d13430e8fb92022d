"""Render the tables of what ships here beside the others."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from benchmarks import results
from benchmarks.markdown import head, row
from benchmarks.peers.bandwidth import BYTES, SHARE
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
    return [peer.store.value, peer.weights.value, *scores]


def _format_scores(name: str, task: str) -> str:
    if not is_measured(name, task, None):
        return NOT_RUN
    result = _read(name, task)
    low, high = result["ndcg@10 interval"]
    return f"{result['ndcg@10']:.3f} ({low:.3f} to {high:.3f}), {result['mrr@10']:.3f}"


def cost_table() -> str:
    """Render what a peer shows of a hit, its times, its bytes, and the lines that a user writes."""
    columns = (
        "store",
        "shows",
        "word F1, IoU of it",
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
        "the words that match" if marks["offsets"] else "the passage",
        f"{marks['f1']['mean']:.3f}, {marks['iou']['mean']:.3f}",
        f"{times['p50']:.1f} / {times['p95']:.1f}",
        f"{measured['CPU ms of a query']:.1f}",
        f"{measured['passages/s']:,.0f}, {measured['passages per CPU s']:,.0f}",
        f"{measured['bytes per 1,000 words']:,}",
        str(measured["lines of code"]),
    ]


def version_table() -> str:
    """Render the versions that were measured, what they follow, and how they were used."""
    return _render(("versions", "as in", "to know"), _describe_versions)


def _describe_versions(name: str, peer: Peer) -> list[str]:
    versions = _read(name, COSTS)["versions"]
    page = peer.documentation
    label = f"[its documentation]({page})" if page.startswith("https:") else "[query](query.md)"
    return [", ".join(f"{key} {value}" for key, value in versions.items()), label, peer.note]


def set_table() -> str:
    """Render how much of every set was searched."""
    lines = head("set", "documents", "passages", "words", "queries")
    for task in DOCUMENTS:
        result = _read(next(iter(PEERS)), task)
        counts = [result[name] for name in ("documents", "passages", "words", "queries")]
        lines.append(row(task, *[f"{count:,}" for count in counts]))
    return "\n".join(lines)


def bandwidth_table() -> str:
    """Render the bandwidth of the memory beside what the span leg reads."""
    result = results.read_result("bandwidth", results.PEERS)
    parts = [f"{count / 1e6:.1f} MB of {name}" for name, count in result[BYTES].items()]
    lines = head(f"{result['passages']:,} passages of {result['set']}, {result['cores']} cores", "")
    rows = {
        "memory, read in order": f"{result['memory, GB/s']:.1f} GB/s",
        "the span leg reads for a query": ", ".join(parts),
        "and takes": f"{result['span leg, ms']:.1f} ms",
        "that is": f"{result['span leg, GB/s']:.2f} GB/s",
        "share of the memory's bandwidth": f"{result[SHARE]:.1%}",
    }
    return "\n".join([*lines, *[row(label, figure) for label, figure in rows.items()]])


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
    "peers_bandwidth": bandwidth_table,
}
