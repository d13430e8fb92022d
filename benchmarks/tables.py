"""The tables of the pages, made from results/*.json: ``python -m benchmarks.tables`` writes them between their markers."""

from __future__ import annotations

import re
from collections.abc import Callable
from functools import partial
from typing import Any

from benchmarks import results
from benchmarks.markdown import head, row
from benchmarks.quality import models, papers, significance
from benchmarks.quality.tasks import ALL, TASKS
from hybrid_search import mappings

PAGES = [results.ROOT.parent / name for name in ("README.md", "docs/papers.md", "docs/servers.md", "export/README.md")]


def retrieval() -> str:
    """nDCG@10 of each way of ranking on each task, and the mean."""
    held = {name: results.newest(f"retrieval-{name}")["rankings"] for name in TASKS}
    lines = head("nDCG@10", *TASKS, "mean")
    for way in next(iter(held.values())):
        values = [held[name][way]["ndcg@10"] for name in TASKS]
        shown = [f"{value:.3f}" for value in (*values, sum(values) / len(values))]
        label = f"**{way}** (default)" if way == "hybrid 0.5" else way
        lines.append(row(label, *shown))
    return "\n".join(lines)


def reciprocal() -> str:
    """MRR@10 of the legs, the default and the baseline."""
    held = {name: results.newest(f"retrieval-{name}")["rankings"] for name in TASKS}
    lines = head("MRR@10", *TASKS)
    lines += [row(way, *[f"{held[name][way]['mrr@10']:.3f}" for name in TASKS]) for way in ("bm25", "spans", "hybrid 0.5", "one vector a passage")]
    return "\n".join(lines)


def intervals() -> str:
    """nDCG@10 with its 95% interval, and how far the default is above the others."""
    ways, rivals = ("bm25", "spans", "one vector a passage", "hybrid 0.5"), ("bm25", "one vector a passage")
    lines = head("nDCG@10 (95% interval)", *ways, *[f"hybrid 0.5 - {rival}" for rival in rivals])
    for name in ALL:
        held = results.newest(f"retrieval-{name}")
        scores = [_within(held["rankings"][way]["ndcg@10"], held["rankings"][way]["ndcg@10 interval"], ".3f") for way in ways]
        apart = [held["differences"][f"hybrid 0.5 - {rival}"] for rival in rivals]
        lines.append(row(name, *scores, *[_within(each["mean"], each["interval"], "+.3f") for each in apart]))
    return "\n".join(lines)


def _within(mean: float, interval: tuple[float, float], form: str) -> str:
    return f"{mean:{form}} ({interval[0]:{form}} to {interval[1]:{form}})"


def recall() -> str:
    """The index of covering spans against exhaustive search."""
    lines = head("against exhaustive search", "passages", "phrases", "recall@10", "same best passage")
    for name in ("calls_sgd", "calls_qmsum"):
        held = results.newest(f"recall-{name}")
        values = (f"{held['passages']:,}", held["phrases"], f"{held['recall@10']:.3f}", f"{held['same best passage']:.3f}")
        lines.append(row(name, *map(str, values)))
    return "\n".join(lines)


def ingest() -> str:
    """End-to-end ingest beside the encoder alone and the store alone."""
    held = results.newest("ingest-calls_sgd")
    names = [name for name, value in held.items() if isinstance(value, int | float)]
    return "\n".join([*head("ingest of calls_sgd", ""), *[row(name, f"{held[name]:,}") for name in names]])


def encode() -> str:
    """Our sessions beside sentence-transformers and torch on a CPU."""
    held = results.newest("encode-cpu")["texts"]
    lines = head("tokens/s on two cores (times sentence-transformers)", *held)
    ways = next(iter(held.values()))["ways"]
    return "\n".join([*lines, *[row(way, *[_rate(each["ways"][way]) for each in held.values()]) for way in ways]])


def _rate(held: dict[str, Any]) -> str:
    return f"{held['tokens/s']:,} ({held['times']:.2f})"


def latency() -> str:
    """Warm queries, in all and by leg."""
    held = {name: results.newest(f"latency-{name}")["milliseconds"] for name in ("calls_sgd", "calls_qmsum")}
    lines = head("milliseconds, p50 / p95", *held)
    ways = next(iter(held.values()))
    return "\n".join([*lines, *[row(way, *[f"{held[name][way]['p50']:.0f} / {held[name][way]['p95']:.0f}" for name in held]) for way in ways]])


def size() -> str:
    """Bytes on disk."""
    held = {name: results.newest(f"size-{name}") for name in ("calls_sgd", "calls_qmsum")}
    names = ["words", "covering spans a word", "bytes per 1,000 words", "all spans as float32, times as large"]
    lines = head("on disk", *held)
    return "\n".join([*lines, *[row(name, *[f"{each[name]:,}" for each in held.values()]) for name in names]])


def server_latency() -> str:
    """The hybrid query beside a plain match and plain kNN, on the same server in the same run."""
    held = {dimension: results.newest(f"latency_opensearch_{dimension}-calls_sgd") for dimension in (288, 128)}
    version = next(iter(held.values()))["version"]
    lines = head(f"OpenSearch {version}, milliseconds, p50 / p95", *[f"{dimension} dimensions" for dimension in held])
    ways = next(iter(held.values()))["milliseconds"]
    lines += [
        row(way, *[f"{each['milliseconds'][way]['p50']:.0f} / {each['milliseconds'][way]['p95']:.0f}" for each in held.values()]) for way in ways
    ]
    others = ("passages", "covering spans", "vectors written a second", "recall@10", "same best passage")
    return "\n".join([*lines, *[row(name, *[f"{each[name]:,}" for each in held.values()]) for name in others]])


def quantization() -> str:
    """Bytes and recall of each way to keep vectors."""
    return _by_server("quantization", "bytes per 1,000 words, recall@10, same best passage", "quantizations", _kept)


def graph() -> str:
    """Recall by the number of spans that the graph is searched for."""
    return _by_server("graph", "spans searched for: recall@10", "searched", lambda each: f"{each['recall@10']:.3f}")


def _by_server(measurement: str, heading: str, rows: str, cell: Callable[[dict[str, Any]], str]) -> str:
    """A column for each server that was measured, a row for each of its `rows`."""
    measured = [name for name in mappings.ENGINES if results.there(f"{measurement}_{name}-calls_sgd")]
    held = {name: results.newest(f"{measurement}_{name}-calls_sgd") for name in measured}
    versions = [f"{mappings.ENGINES[name]} {each['version']}" for name, each in held.items()]
    lines = head(heading, *versions)
    ways = next(iter(held.values()))[rows]
    return "\n".join([*lines, *[row(way, *[cell(each[rows][way]) for each in held.values()]) for way in ways]])


def _kept(held: dict[str, Any]) -> str:
    return "not there" if "absent" in held else f"{held['bytes per 1,000 words']:,}, {held['recall@10']:.3f}, {held['same best passage']:.2f}"


TABLES: dict[str, Callable[[], str]] = {
    "retrieval": retrieval,
    "reciprocal": reciprocal,
    "intervals": intervals,
    "recall": recall,
    "ingest": ingest,
    "encode": encode,
    "latency": latency,
    "size": size,
    "server_latency": server_latency,
    "quantization": quantization,
    "graph": graph,
    **models.TABLES,
    "significance": significance.rendered,
    **{f"{paper}_paper": partial(papers.rendered, paper) for paper in papers.PAPERS},
}


def filled(text: str) -> str:
    """`text` with each table between ``<!-- table: NAME -->`` and ``<!-- end -->`` made anew."""

    def made(match: re.Match[str]) -> str:
        return f"<!-- table: {match[1]} -->\n{TABLES[match[1]]()}\n<!-- end -->"

    return re.sub(r"<!-- table: (\w+) -->.*?<!-- end -->", made, text, flags=re.DOTALL)


if __name__ == "__main__":
    for page in PAGES:
        page.write_text(filled(page.read_text(encoding="utf-8")), encoding="utf-8")
