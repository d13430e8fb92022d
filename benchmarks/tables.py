"""The tables of the pages, made from results/*.json: ``python -m benchmarks.tables`` writes them
between their markers.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from functools import partial
from typing import Any

from benchmarks import results
from benchmarks.markdown import head, row
from benchmarks.quality import models, papers, significance
from benchmarks.quality.tasks import ALL, TASKS
from hybrid_search.backends.server import mappings

PAGES = [
    results.ROOT.parent / name
    for name in (
        "README.md",
        "docs/benchmarks.md",
        "docs/papers.md",
        "docs/servers.md",
        "export/README.md",
    )
]


def summary() -> str:
    """Return the README's table: one figure each for ranking, recall, speed and size."""
    rankings = [results.read_newest(f"retrieval-{name}")["rankings"] for name in TASKS]
    means = [
        sum(ranking[way]["ndcg@10"] for ranking in rankings) / len(rankings)
        for way in ("hybrid 0.5", "bm25", "one vector a passage")
    ]
    recall_result = results.read_newest("recall-calls_sgd")
    query_time = results.read_newest("latency-calls_sgd")["milliseconds"]["query, alpha 0.5"]
    tokens = results.read_newest("ingest-calls_sgd")["tokens/s"]
    size_result = results.read_newest("size-calls_sgd")
    passages = f"{recall_result['passages']:,} passages"
    rows = {
        "nDCG@10, mean of three data sets: hybrid, BM25, one vector a passage": ", ".join(
            f"{mean:.3f}" for mean in means
        ),
        f"recall@10 of the index against exhaustive search, {passages}": (
            f"{recall_result['recall@10']:.3f}"
        ),
        f"query, {passages}: median, 95th percentile": (
            f"{query_time['p50']:.0f} ms, {query_time['p95']:.0f} ms"
        ),
        "ingest, from file to finished index": f"{tokens:,} tokens/s",
        "on disk, for 1,000 words": f"{size_result['bytes per 1,000 words']:,} bytes",
    }
    lines = head("measured on two cores", "")
    return "\n".join([*lines, *[row(label, figure) for label, figure in rows.items()]])


def retrieval() -> str:
    """nDCG@10 of each way of ranking on each task, and the mean."""
    rankings = {name: results.read_newest(f"retrieval-{name}")["rankings"] for name in TASKS}
    lines = head("nDCG@10", *TASKS, "mean")
    for way in next(iter(rankings.values())):
        values = [rankings[name][way]["ndcg@10"] for name in TASKS]
        cells = [f"{value:.3f}" for value in (*values, sum(values) / len(values))]
        label = f"**{way}** (default)" if way == "hybrid 0.5" else way
        lines.append(row(label, *cells))
    return "\n".join(lines)


def reciprocal() -> str:
    """MRR@10 of the legs, the default and the baseline."""
    rankings = {name: results.read_newest(f"retrieval-{name}")["rankings"] for name in TASKS}
    lines = head("MRR@10", *TASKS)
    lines += [
        row(way, *[f"{rankings[name][way]['mrr@10']:.3f}" for name in TASKS])
        for way in ("bm25", "spans", "hybrid 0.5", "one vector a passage")
    ]
    return "\n".join(lines)


def intervals() -> str:
    """nDCG@10 with its 95% interval, and how far the default is above the others."""
    ways, rivals = (
        ("bm25", "spans", "one vector a passage", "hybrid 0.5"),
        ("bm25", "one vector a passage"),
    )
    lines = head("nDCG@10 (95% interval)", *ways, *[f"hybrid 0.5 - {rival}" for rival in rivals])
    for name in ALL:
        result = results.read_newest(f"retrieval-{name}")
        scores = [
            _format_interval(
                result["rankings"][way]["ndcg@10"],
                result["rankings"][way]["ndcg@10 interval"],
                ".3f",
            )
            for way in ways
        ]
        differences = [result["differences"][f"hybrid 0.5 - {rival}"] for rival in rivals]
        lines.append(
            row(
                name,
                *scores,
                *[
                    _format_interval(difference["mean"], difference["interval"], "+.3f")
                    for difference in differences
                ],
            )
        )
    return "\n".join(lines)


def _format_interval(mean: float, interval: tuple[float, float], form: str) -> str:
    return f"{mean:{form}} ({interval[0]:{form}} to {interval[1]:{form}})"


def recall() -> str:
    """The index of covering spans against exhaustive search."""
    lines = head(
        "against exhaustive search", "passages", "phrases", "recall@10", "same best passage"
    )
    for name in ("calls_sgd", "calls_qmsum"):
        result = results.read_newest(f"recall-{name}")
        values = (
            f"{result['passages']:,}",
            result["phrases"],
            f"{result['recall@10']:.3f}",
            f"{result['same best passage']:.3f}",
        )
        lines.append(row(name, *map(str, values)))
    return "\n".join(lines)


def ingest() -> str:
    """End-to-end ingest beside the encoder alone and the store alone."""
    result = results.read_newest("ingest-calls_sgd")
    names = [name for name, value in result.items() if isinstance(value, int | float)]
    return "\n".join(
        [*head("ingest of calls_sgd", ""), *[row(name, f"{result[name]:,}") for name in names]]
    )


def encode() -> str:
    """Our sessions beside sentence-transformers and torch on a CPU."""
    measurements = results.read_newest("encode-cpu")["texts"]
    lines = head("tokens/s on two cores (times sentence-transformers)", *measurements)
    ways = next(iter(measurements.values()))["ways"]
    return "\n".join(
        [
            *lines,
            *[
                row(
                    way, *[_rate(measurement["ways"][way]) for measurement in measurements.values()]
                )
                for way in ways
            ],
        ]
    )


def _rate(figures: dict[str, Any]) -> str:
    return f"{figures['tokens/s']:,} ({figures['times']:.2f})"


def latency() -> str:
    """Warm queries, in all and by leg."""
    milliseconds = {
        name: results.read_newest(f"latency-{name}")["milliseconds"]
        for name in ("calls_sgd", "calls_qmsum")
    }
    lines = head("milliseconds, p50 / p95", *milliseconds)
    ways = next(iter(milliseconds.values()))
    return "\n".join(
        [
            *lines,
            *[
                row(
                    way,
                    *[
                        f"{milliseconds[name][way]['p50']:.0f} / {milliseconds[name][way]['p95']:.0f}"
                        for name in milliseconds
                    ],
                )
                for way in ways
            ],
        ]
    )


def size() -> str:
    """Bytes on disk."""
    sizes = {name: results.read_newest(f"size-{name}") for name in ("calls_sgd", "calls_qmsum")}
    names = [
        "words",
        "covering spans a word",
        "bytes per 1,000 words",
        "all spans as float32, times as large",
    ]
    lines = head("on disk", *sizes)
    return "\n".join(
        [
            *lines,
            *[row(name, *[f"{figures[name]:,}" for figures in sizes.values()]) for name in names],
        ]
    )


def server_latency() -> str:
    """The hybrid query beside a plain match and plain kNN, on the same server in the same run."""
    measurements = {
        dimension: results.read_newest(f"latency_opensearch_{dimension}-calls_sgd")
        for dimension in (288, 128)
    }
    version = next(iter(measurements.values()))["version"]
    lines = head(
        f"OpenSearch {version}, milliseconds, p50 / p95",
        *[f"{dimension} dimensions" for dimension in measurements],
    )
    ways = next(iter(measurements.values()))["milliseconds"]
    lines += [
        row(
            way,
            *[
                f"{measurement['milliseconds'][way]['p50']:.0f} / {measurement['milliseconds'][way]['p95']:.0f}"
                for measurement in measurements.values()
            ],
        )
        for way in ways
    ]
    figure_names = (
        "passages",
        "covering spans",
        "vectors written a second",
        "recall@10",
        "same best passage",
    )
    return "\n".join(
        [
            *lines,
            *[
                row(name, *[f"{measurement[name]:,}" for measurement in measurements.values()])
                for name in figure_names
            ],
        ]
    )


def quantization() -> str:
    """Bytes and recall of each way to keep vectors."""
    return _server_table(
        "quantization",
        "bytes per 1,000 words, recall@10, same best passage",
        "quantizations",
        _quantization_cell,
    )


def graph() -> str:
    """Recall by the number of spans that the graph is searched for."""
    return _server_table(
        "graph",
        "spans searched for: recall@10",
        "searched",
        lambda figures: f"{figures['recall@10']:.3f}",
    )


def _server_table(
    measurement: str, heading: str, rows: str, cell: Callable[[dict[str, Any]], str]
) -> str:
    """A column for each server that was measured, a row for each of its `rows`."""
    measured = [
        name for name in mappings.ENGINES if results.has_result(f"{measurement}_{name}-calls_sgd")
    ]
    results_by_server = {
        name: results.read_newest(f"{measurement}_{name}-calls_sgd") for name in measured
    }
    versions = [
        f"{mappings.ENGINES[name]} {server_result['version']}"
        for name, server_result in results_by_server.items()
    ]
    lines = head(heading, *versions)
    ways = next(iter(results_by_server.values()))[rows]
    return "\n".join(
        [
            *lines,
            *[
                row(
                    way,
                    *[
                        cell(server_result[rows][way])
                        for server_result in results_by_server.values()
                    ],
                )
                for way in ways
            ],
        ]
    )


def _quantization_cell(figures: dict[str, Any]) -> str:
    return (
        "not there"
        if "absent" in figures
        else f"{figures['bytes per 1,000 words']:,}, {figures['recall@10']:.3f}, {figures['same best passage']:.2f}"
    )


TABLES: dict[str, Callable[[], str]] = {
    "summary": summary,
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
    "significance": significance.render_table,
    **{f"{paper}_paper": partial(papers.render_paper, paper) for paper in papers.PAPERS},
}


def fill_tables(text: str) -> str:
    """`text` with each table between ``<!-- table: NAME -->`` and ``<!-- end -->`` made anew."""

    def render_table(match: re.Match[str]) -> str:
        return f"<!-- table: {match[1]} -->\n{TABLES[match[1]]()}\n<!-- end -->"

    return re.sub(r"<!-- table: (\w+) -->.*?<!-- end -->", render_table, text, flags=re.DOTALL)


if __name__ == "__main__":
    for page in PAGES:
        page.write_text(fill_tables(page.read_text(encoding="utf-8")), encoding="utf-8")
