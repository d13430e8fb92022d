"""nDCG@10, MRR@10 and recall by pytrec_eval, the Python binding of NIST's trec_eval.

Van Gysel and de Rijke, "Pytrec_eval", SIGIR 2018. An item that a ranking holds more than once, like
the passages into which one long turn was cut, counts at its first place.
"""

from __future__ import annotations

from collections.abc import Hashable, Iterable, Mapping, Sequence
from typing import Any

import pytrec_eval

from benchmarks.quality import bootstrap

DEPTH = 10
NDCG = "ndcg@10"
MAP = "map"
R_PRECISION = "r-precision"

MEASURES = {
    NDCG: ("ndcg_cut_10", DEPTH),
    "mrr@10": ("recip_rank", DEPTH),
    "recall@10": ("recall_10", DEPTH),
    "recall@50": ("recall_50", 50),
    "recall@100": ("recall_100", 100),
    MAP: ("map", None),
    R_PRECISION: ("Rprec", None),
}
"""trec_eval's name of each measure, and the length to which a ranking is cut; None is no cut.

A reciprocal rank has no cut-off of its own. MAP is the mean of average precision, the precision at
each relevant item; R-precision is that among as many as are relevant.
"""

RETRIEVAL = (NDCG, "mrr@10", "recall@10", "recall@100")
"""What is reported of retrieval tasks."""

Ranking = Sequence[Hashable]
Grades = Mapping[Any, int]
"""How relevant an item is, from 0 (not at all); items without a grade have 0."""


def evaluate(
    ranked: Sequence[Ranking], right: Sequence[Grades], names: Iterable[str] = RETRIEVAL
) -> dict[str, list[float]]:
    """Return the measures of these names, of `MEASURES`, of each ranking by the grades beside it.

    Rankings are best first. All measures are from 0 to 1, and 0 where nothing is relevant. To nDCG
    a grade is the gain (Järvelin and Kekäläinen, 2002, with log2(rank + 1) for the discount); to
    the others all grades from 1 are equal.
    """
    return {name: _values(name, ranked, right) for name in names}


def ndcg(ranked: Ranking, right: Iterable[Hashable]) -> float:
    """Return nDCG@10 of one ranking, all relevant items being equally relevant."""
    return _values(NDCG, [ranked], [dict.fromkeys(right, 1)])[0]


def _values(name: str, ranked: Sequence[Ranking], right: Sequence[Grades]) -> list[float]:
    """Return one measure of every ranking.

    trec_eval orders by score, and by id among equal scores; the scores given here are all
    different.
    """
    measure, depth = MEASURES[name]
    qrels, run = {}, {}
    for number, (ranking, grades) in enumerate(zip(ranked, right, strict=True)):
        top = list(dict.fromkeys(ranking))[:depth]
        ids = {item: str(place) for place, item in enumerate(dict.fromkeys([*top, *grades]))}
        qrels[str(number)] = {ids[item]: grade for item, grade in grades.items()}
        run[str(number)] = {ids[item]: -float(rank) for rank, item in enumerate(top)}
    scores_by_query = pytrec_eval.RelevanceEvaluator(qrels, {measure}).evaluate(run)
    return [
        scores_by_query.get(str(number), {measure: 0.0})[measure] for number in range(len(ranked))
    ]


def means_by_group(values: Sequence[float], groups: Sequence[str]) -> dict[str, float]:
    """Return the mean of each group, in the order in which groups first appear."""
    values_by_group: dict[str, list[float]] = {}
    for value, group in zip(values, groups, strict=True):
        values_by_group.setdefault(group, []).append(value)
    return {
        group: sum(group_values) / len(group_values)
        for group, group_values in values_by_group.items()
    }


def grouped_mean(values: Sequence[float], groups: Sequence[str]) -> float:
    """Return the mean of the groups' means."""
    means = means_by_group(values, groups).values()
    return sum(means) / len(means)


def row(values: Mapping[str, Sequence[float]], groups: Sequence[str]) -> dict[str, Any]:
    """Return the mean over groups of each measure, and the 95% interval of that of nDCG@10.

    `values` are as `evaluate` returns them.
    """
    means = {
        name: round(grouped_mean(measure_values, groups), 4)
        for name, measure_values in values.items()
    }
    return {
        **means,
        f"{NDCG} interval": bootstrap.summary(list(means_by_group(values[NDCG], groups).values()))[
            "interval"
        ],
    }


def difference(
    first: Mapping[str, Sequence[float]],
    second: Mapping[str, Sequence[float]],
    groups: Sequence[str],
) -> dict[str, Any]:
    """Return how far nDCG@10 of `first` is above that of `second`, with its 95% interval.

    Paired by group.
    """
    pair = (
        list(means_by_group(system_values[NDCG], groups).values())
        for system_values in (first, second)
    )
    return bootstrap.difference(*pair)
