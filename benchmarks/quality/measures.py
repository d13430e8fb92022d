"""nDCG@10, MRR@10 and recall by pytrec_eval, which is NIST's trec_eval: Van Gysel and de Rijke,
"Pytrec_eval", SIGIR 2018.

Something that was ranked more than once, as the passages that one long turn was cut into, stands
where it came first.
"""

from __future__ import annotations

from collections.abc import Hashable, Iterable, Mapping, Sequence
from typing import Any

import pytrec_eval

from benchmarks.quality import bootstrap

DEPTH = 10
NDCG = "ndcg@10"

MEASURES = {
    NDCG: ("ndcg_cut_10", DEPTH),
    "mrr@10": ("recip_rank", DEPTH),
    "recall@10": ("recall_10", DEPTH),
    "recall@100": ("recall_100", 100),
}
"""trec_eval's name of each measure, and how much of a ranking it is shown: a reciprocal rank has no
cut of its own.
"""

Ranking = Sequence[Hashable]
Grades = Mapping[Any, int]
"""How right something is: 0 not at all. What has no grade has 0."""


def evaluate(ranked: Sequence[Ranking], right: Sequence[Grades]) -> dict[str, list[float]]:
    """Each of `MEASURES` of each ranking, best first, by the grades beside it; all from 0 to 1, and
    0 where nothing is right.

    To nDCG a grade is the gain (Järvelin and Kekäläinen, 2002, with log2(rank + 1) for the
    discount); to the others all from 1 on are as right.
    """
    return {name: _values(name, ranked, right) for name in MEASURES}


def ndcg(ranked: Ranking, right: Iterable[Hashable]) -> float:
    """nDCG@10 of one ranking, where all that is right is as right."""
    return _values(NDCG, [ranked], [dict.fromkeys(right, 1)])[0]


def _values(name: str, ranked: Sequence[Ranking], right: Sequence[Grades]) -> list[float]:
    """trec_eval orders by score, and by id where scores are equal: here none are."""
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
    """The mean of each group, in the order in which groups are met."""
    values_by_group: dict[str, list[float]] = {}
    for value, group in zip(values, groups, strict=True):
        values_by_group.setdefault(group, []).append(value)
    return {
        group: sum(group_values) / len(group_values)
        for group, group_values in values_by_group.items()
    }


def grouped_mean(values: Sequence[float], groups: Sequence[str]) -> float:
    """The mean over groups of each group's mean."""
    means = means_by_group(values, groups).values()
    return sum(means) / len(means)


def row(values: Mapping[str, Sequence[float]], groups: Sequence[str]) -> dict[str, Any]:
    """The mean over groups of each measure of `values` (as `evaluate` gives them), and the 95%
    interval of that of nDCG@10.
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
    """By how much the nDCG@10 of `first` is above that of `second`, and its 95% interval, paired by
    group.
    """
    pair = (
        list(means_by_group(system_values[NDCG], groups).values())
        for system_values in (first, second)
    )
    return bootstrap.difference(*pair)
