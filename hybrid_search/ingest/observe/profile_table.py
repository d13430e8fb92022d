"""The table of ``--profile``: where the time of a run went, stage by stage."""

from __future__ import annotations

from hybrid_search.ingest.summary import Summary


def table(summary: Summary) -> str:
    """Return a table of the stages: seconds, share of all work, share of the run time.

    Rates, and the stage that the others wait for, follow below it.
    """
    work, seconds = sum(summary.stages.values()), summary.seconds
    rows = [f"{'stage':<8}{'seconds':>10}{'of work':>9}{'busy':>7}"]
    rows += [
        f"{name:<8}{spent:>10.1f}{_share(spent, work):>9}{_share(spent, seconds):>7}"
        for name, spent in summary.stages.items()
    ]
    busy = _share(work, seconds)
    rows.append(f"{'all':<8}{work:>10.1f}{_share(work, work):>9}{busy:>7}  in {seconds:.1f} s")
    fill = f", batches {_share(summary.tokens, summary.cells)} full" if summary.cells else ""
    tokens, passages = _rate(summary.tokens, seconds), _rate(summary.passages, seconds)
    rows.append(f"{tokens} tokens/s, {passages} passages/s{fill}")
    if work:
        longest = max(summary.stages, key=lambda name: summary.stages[name])
        busy = _share(summary.stages[longest], seconds)
        rows.append(f"the others wait for {longest}, which is busy {busy} of the time")
    return "\n".join(rows)


def _share(part: float, total: float) -> str:
    return f"{part / total:.0%}" if total else "-"


def _rate(count: int, seconds: float) -> str:
    return f"{count / seconds:,.0f}" if seconds else "0"
