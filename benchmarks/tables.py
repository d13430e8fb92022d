"""Fill the tables of the pages from the committed results: ``python -m benchmarks.tables``.

A table stands between ``<!-- table: NAME -->`` and ``<!-- end -->``. `papers.tables` does the same
for docs/papers.md.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from typing import Any

from benchmarks import results
from benchmarks.faults import report
from benchmarks.markdown import head, row, table
from benchmarks.peers import report as peers_report
from benchmarks.percentiles import format_percentiles
from benchmarks.quality import codes, meaning, mining_tables, models, windows
from benchmarks.quality.measures import NDCG
from benchmarks.quality.tasks import ALL, TASKS
from benchmarks.servers.attached import ALPHAS, TOP
from hybrid_search.backends.server.dialects import DIALECTS

PAGES = [
    results.ROOT.parent / name
    for name in (
        "README.md",
        "docs/attach.md",
        "docs/benchmarks.md",
        "docs/languages.md",
        "docs/robustness.md",
        "export/README.md",
    )
]

CALLS = ("calls_sgd", "calls_qmsum")

LARGER = "ten times calls_sgd"
"""The column or row of the index with copies of calls, in which words are exchanged."""

SHARDS = 5
"""Primary shards with which a server was measured on them."""


BETWEEN = {f"hybrid {alpha}" for alpha in (0.2, 0.4, 0.6, 0.8)}
"""Alphas that were measured, and lie between those of the page."""


def _read_rankings() -> dict[str, Any]:
    """Read the figures of every way of ranking, by task."""
    return {
        name: results.read_result(f"retrieval-{name}", results.QUALITY)["rankings"]
        for name in TASKS
    }


def summary() -> str:
    """Return the README's table: one figure each for ranking, recall, speed and size."""
    rankings = [ranking for _, ranking in sorted(_read_rankings().items())]
    means = [
        sum(ranking[way]["ndcg@10"] for ranking in rankings) / len(rankings)
        for way in ("hybrid 0.5", "bm25", "one vector a passage")
    ]
    recall_result = results.read_result("recall-calls_sgd", results.QUALITY)
    latency_result = results.read_result("latency-calls_sgd", results.SPEED)
    query_time = latency_result["milliseconds"]["query, alpha 0.5"]
    tokens = results.read_result("ingest-calls_sgd", results.SPEED)["tokens/s"]
    size_result = results.read_result("size-calls_sgd", results.SPEED)
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
    """Render nDCG@10 of each way of ranking on each task, and the mean."""
    rankings = _read_rankings()
    lines = head("nDCG@10", *TASKS, "mean")
    for way in (way for way in next(iter(rankings.values())) if way not in BETWEEN):
        values = [rankings[name][way]["ndcg@10"] for name in TASKS]
        mean = sum(values) / len(values)
        label = f"**{way}** (default)" if way == "hybrid 0.5" else way
        lines.append(row(label, *[f"{value:.3f}" for value in (*values, mean)]))
    return "\n".join(lines)


def intervals() -> str:
    """Render nDCG@10 of the default with its 95% interval, and how far it is above its rivals."""
    way = "hybrid 0.5"
    rivals = ("bm25", "one vector a passage")
    differences = [f"hybrid 0.5 - {rival}" for rival in rivals]

    def cells(name: str) -> list[str]:
        result = results.read_result(f"retrieval-{name}", results.QUALITY)
        figures = result["rankings"][way]
        gains = [result["differences"][difference] for difference in differences]
        return [
            _format_interval(figures["ndcg@10"], figures["ndcg@10 interval"], ".3f"),
            *[_format_interval(gain["mean"], gain["interval"], "+.3f") for gain in gains],
        ]

    return table("nDCG@10 (95% interval)", (way, *differences), ALL, cells)


def _format_interval(mean: float, interval: tuple[float, float], form: str) -> str:
    return f"{mean:{form}} ({interval[0]:{form}} to {interval[1]:{form}})"


def recall() -> str:
    """Render the recall of the index of covering windows against exhaustive search."""
    columns = ("passages", "phrases", "recall@10", "same best passage")
    measured = {name: results.read_result(f"recall-{name}", results.QUALITY) for name in CALLS}
    measured[LARGER] = results.read_result("larger-calls_sgd", results.SPEED)

    def cells(name: str) -> list[Any]:
        result = measured[name]
        shares = [f"{result[column]:.3f}" for column in columns[2:]]
        return [f"{result['passages']:,}", result["phrases"], *shares]

    return table("against exhaustive search", columns, measured, cells)


def ingest() -> str:
    """Render end-to-end ingest beside the encoder alone and the store alone."""
    result = results.read_result("ingest-calls_sgd", results.SPEED)
    names = (
        "calls",
        "passages",
        "tokens",
        "ingest, s",
        "tokens/s",
        "ingest / (e + s)",
        "peak memory, MB",
    )
    return table("ingest of calls_sgd", [""], names, lambda name: [f"{result[name]:,}"])


def encode_models() -> str:
    """Render the speed of each model of this project beside sentence-transformers with its base."""
    measured = results.read_result("encode-models", results.SPEED)["texts"]
    models_by_text = {name: texts["models"] for name, texts in measured.items()}
    names = next(iter(models_by_text.values()))
    return table(
        "tokens/s, int8: ours; sentence-transformers with the base; times",
        models_by_text,
        names,
        lambda name: [_format_pair(by_name[name]) for by_name in models_by_text.values()],
    )


def _format_pair(figures: dict[str, Any]) -> str:
    return f"{figures['tokens/s']:,}; {figures['base, tokens/s']:,}; {figures['times']:.2f}"


def latency() -> str:
    """Render the milliseconds of warm queries, in all and by leg."""
    names = [*(f"latency-{name}" for name in CALLS), "larger-calls_sgd"]
    milliseconds = [results.read_result(name, results.SPEED)["milliseconds"] for name in names]
    return table(
        "milliseconds, p50 / p95",
        (*CALLS, LARGER),
        milliseconds[0],
        lambda way: [format_percentiles(by_way[way]) for by_way in milliseconds],
    )


def concurrency() -> str:
    """Render how many queries an embedded index answers for many clients at once."""
    queries = results.read_result("concurrency-calls_sgd", results.SPEED)["queries"]
    return table(
        "calls_sgd, alpha 0.5",
        ("queries a second", "milliseconds, p50 / p95"),
        [way for way in queries if "asyncio" not in way],
        lambda way: [f"{queries[way]['a second']:.1f}", format_percentiles(queries[way])],
    )


def size() -> str:
    """Render bytes on disk."""
    sizes = [results.read_result(f"size-{name}", results.SPEED) for name in CALLS]
    names = ("words", "bytes per 1,000 words")
    return table("on disk", CALLS, names, lambda name: [f"{figures[name]:,}" for figures in sizes])


def server_latency() -> str:
    """Render the hybrid query beside a plain match and plain kNN, measured in the same run."""
    measured = _read_servers("latency", "_288")
    columns = {
        f"{DIALECTS[engine].title} {result['version']}, {state}": figures
        for engine, result in measured.items()
        for state, figures in result["states"].items()
    }
    figures_by_column = list(columns.values())
    lines = head("p50 / p95, ms", *columns)
    for way in (way for way in figures_by_column[0]["milliseconds"] if "asyncio" not in way):
        times = [figures["milliseconds"].get(way) for figures in figures_by_column]
        cells = [
            format_percentiles(percentiles) if percentiles else "not there" for percentiles in times
        ]
        lines.append(row(way, *cells))
    sizes = [figures["bytes of answers a query"]["hybrid"] / 1e6 for figures in figures_by_column]
    lines.append(row("MB of answers, hybrid", *[f"{size:.1f}" for size in sizes]))
    recalls = [f"{figures['recall@10']:.3f}" for figures in figures_by_column]
    lines.append(row("recall@10", *recalls))
    shares = [figures["share of the exhaustive page"]["hybrid"] for figures in figures_by_column]
    lines.append(row("share of the exhaustive page, hybrid", *map("{:.3f}".format, shares)))
    return "\n".join(lines)


def server_larger() -> str:
    """Render recall, latency and bytes of servers on ten times the passages."""
    measured = _read_servers("larger", f"_{SHARDS}")
    servers = [
        f"{DIALECTS[engine].title} {result['version']}, shards: {result['shards']}"
        for engine, result in measured.items()
    ]
    cells = {
        "recall@10": lambda figures: f"{figures['recall@10']:.3f}",
        "same best passage": lambda figures: f"{figures['same best passage']:.3f}",
        "hybrid, 1 client, ms": lambda figures: format_percentiles(
            figures["milliseconds"]["hybrid"]
        ),
        "GB": lambda figures: f"{figures['bytes'] / 1e9:.0f}",
    }
    return table(
        LARGER,
        servers,
        cells,
        lambda name: [cells[name](figures) for figures in measured.values()],
    )


def compare_attached() -> str:
    """Render spans beside an index of another program, and one of our own of the same calls."""
    (result,) = _read_servers("attached").values()
    common = result[f"of the {TOP} best calls in common"]
    sizes, recalls = result["bytes"], result[f"recall@{TOP} of spans"]
    times, changes = result["milliseconds"], result["changes"]
    ranking = result[f"{NDCG} by call"]
    rows = {
        "nDCG@10 by call: BM25, hybrid, spans": [
            ", ".join(f"{by_index[index]:.3f}" for by_index in ranking.values())
            for index in ("own", "attached")
        ],
        f"recall@{TOP} of the calls with the best spans": map(
            "{:.3f}".format, (recalls["own"], recalls["attached"])
        ),
        "hybrid query, ms: p50 / p95": map(format_percentiles, (times["own"], times["attached"])),
        "MB": (
            f"{sizes['own'] / 1e6:,.0f}",
            f"{sizes['sidecar'] / 1e6:,.0f}, beside {sizes['other'] / 1e6:,.0f} that were there",
        ),
        f"of the {TOP} best calls in common: BM25, hybrid, spans": (
            "",
            ", ".join(f"{common[name]:.2f}" for name in ALPHAS),
        ),
        f"{changes['changes']:,} changes followed, s": ("", f"{changes['seconds']:,.0f}"),
    }
    columns = ("an index of our own", "attached")
    return table(f"{result['calls']:,} calls", columns, rows, lambda name: rows[name])


def _read_servers(measurement: str, variant: str = "") -> dict[str, dict[str, Any]]:
    """Return the results of a variant of a measurement by engine, of the servers that have one."""
    names = {engine: f"{measurement}_{engine}{variant}-calls_sgd" for engine in DIALECTS}
    return {
        engine: results.read_result(name, results.SERVERS)
        for engine, name in names.items()
        if results.has_result(name, results.SERVERS)
    }


def faults() -> str:
    """Render what the fault campaign tried and what came of it."""
    campaign = results.read_result("campaign", results.FAULTS)
    return "\n".join(report.render_short_table(campaign))


TABLES: dict[str, Callable[[], str]] = {
    "summary": summary,
    "retrieval": retrieval,
    "intervals": intervals,
    "recall": recall,
    "ingest": ingest,
    "encode_models": encode_models,
    "latency": latency,
    "concurrency": concurrency,
    "size": size,
    "server_latency": server_latency,
    "server_larger": server_larger,
    "attached": compare_attached,
    "faults": faults,
    **codes.TABLES,
    **meaning.TABLES,
    **mining_tables.TABLES,
    **models.TABLES,
    **peers_report.TABLES,
    **windows.TABLES,
}


def fill_tables(text: str, tables: Mapping[str, Callable[[], str]] = TABLES) -> str:
    """Return `text` with every table between its markers rendered anew."""

    def render_table(match: re.Match[str]) -> str:
        return f"<!-- table: {match[1]} -->\n{tables[match[1]]()}\n<!-- end -->"

    return re.sub(r"<!-- table: (\w+) -->.*?<!-- end -->", render_table, text, flags=re.DOTALL)


if __name__ == "__main__":
    for page in PAGES:
        page.write_text(fill_tables(page.read_text(encoding="utf-8")), encoding="utf-8")
