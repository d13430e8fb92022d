"""Output of ``plan`` for people, as two tables."""

from __future__ import annotations

from rich.table import Table

from hybrid_search.cli import options
from hybrid_search.maintenance.plan.estimate import Plan


def show_plan(estimate: Plan) -> None:
    """Print an estimate, and the span policies that were compared for it."""
    console, load, hours = options.open_output(), estimate.load, estimate.hours
    sample = estimate.sample
    console.print(
        f"sample: {sample.documents:,} documents, {sample.tokens:,} tokens, "
        f"{estimate.tokens_a_second:,.0f} tokens/s on this machine"
    )
    if estimate.skipped:
        console.print(f"{estimate.skipped:,} lines were left out: they are not valid documents")
    rows = {
        "tokens": f"{load.tokens:,}",
        "passages": f"{load.passages:,}",
        "covering spans": f"{load.spans:,} vectors of {estimate.graph_dimension} dimensions, "
        f"policy {estimate.policy}",
        "embedded index": f"{load.embedded_bytes / 1e9:,.2f} GB",
        "server": f"{load.server_bytes / 1e9:,.2f} GB without replicas, {estimate.shards:,} "
        "primary shards of 50 GiB at most",
        "encoder alone, here": f"{hours.encoder:,.2f} h",
        "ingest, embedded, here": f"{hours.embedded:,.2f} h",
        "one server of two cores": f"{hours.server:,.2f} h to write the vectors",
        "GPU": f"{hours.gpu[0]:,.2f} to {hours.gpu[1]:,.2f} h",
    }
    table = Table(
        title=f"{load.documents:,} documents", show_header=False, box=None, title_justify="left"
    )
    for name, value in rows.items():
        table.add_row(name, value)
    console.print(table)
    _show_policies(estimate)


def _show_policies(estimate: Plan) -> None:
    depth = estimate.policies[0].window
    table = Table(
        "policy",
        "vectors a word",
        "bytes per 1,000 words on a server",
        "recall@10",
        f"recall@10, best {depth} scored exactly",
        box=None,
    )
    for policy in estimate.policies:
        table.add_row(
            policy.policy,
            f"{policy.vectors_a_word:.3f}",
            f"{estimate.bytes_per_1000_words(policy):,}",
            f"{policy.recall:.3f}",
            f"{policy.scored:.3f}",
        )
    options.open_output().print(table)
