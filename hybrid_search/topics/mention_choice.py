"""Choose mentions among the spans that are near enough: at most one for each clause.

Two spans of a topic exclude each other if they touch the same clause. The best is chosen first,
then the best of the remaining ones, and so on; all topics and documents at once, round by round.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from hybrid_search.topics.topic_matrix import TopicMatrix
from hybrid_search.topics.types import Candidates, Integers

LARGEST_OFFSET = 2**31
"""Larger than any place in a document."""


def choose_mentions(candidates: Candidates, matrix: TopicMatrix) -> tuple[Candidates, Candidates]:
    """Return the mentions among the candidates, in the order of documents, places and topics.

    A clause whose best span is nearest to a phrase under `not` has no mention.

    `candidates` are all of some whole documents. Two are returned: the mentions, and the spans that
    would be mentions with lower thresholds.
    """
    best = candidates.select(choose_rows(candidates))
    meant = best.select(matrix.is_meant[best.phrases])
    is_mention = meant.scores >= matrix.limits[meant.topics]
    return meant.select(is_mention), meant.select(~is_mention)


def choose_rows(candidates: Candidates) -> Integers:
    """Return the rows of the best candidates of each clause, int64 ``[mentions]``.

    They are in the order of documents, places and topics. Of equally good ones the first in the
    document wins, then the shortest.

    `candidates` are all of some whole documents.
    """
    chains = _find_chains(candidates)
    order = np.lexsort((candidates.ends, candidates.starts, -candidates.scores, chains))
    rounds = [np.zeros(0, dtype=np.int64)]
    while len(order):
        is_first = np.diff(chains[order], prepend=-1) != 0
        winners = order[is_first]
        rounds.append(winners)
        rivals = winners[np.cumsum(is_first) - 1]
        order = order[~_share_clause(candidates, order, rivals)]
    rows = np.concatenate(rounds)
    columns = (candidates.topics, candidates.ends, candidates.starts, candidates.documents)
    return rows[np.lexsort([column[rows] for column in columns])]


def _find_chains(candidates: Candidates) -> Integers:
    """Return the number of each candidate's chain, int64 ``[n]``.

    Only candidates of the same chain exclude each other. A chain is a run of candidates of one
    topic and document in which each touches a clause that an earlier one touches.
    """
    order = np.lexsort((candidates.clause_starts, candidates.documents, candidates.topics))
    topics, documents = candidates.topics[order], candidates.documents[order]
    is_new_group = (np.diff(topics, prepend=-1) != 0) | (np.diff(documents, prepend=-1) != 0)
    # each group's offsets lie above those of the group before: one running maximum serves all
    shifts = np.cumsum(is_new_group) * LARGEST_OFFSET
    starts = candidates.clause_starts[order] + shifts
    furthest_ends = np.maximum.accumulate(candidates.clause_ends[order] + shifts)
    begins_chain = np.ones(len(order), dtype=bool)
    begins_chain[1:] = starts[1:] >= furthest_ends[:-1]
    chains = np.empty(len(order), dtype=np.int64)
    chains[order] = np.cumsum(begins_chain)
    return chains


def _share_clause(candidates: Candidates, rows: Integers, rivals: Integers) -> NDArray[np.bool_]:
    """Return which of `rows` touch a clause that the rival beside them touches."""
    starts, ends = candidates.clause_starts, candidates.clause_ends
    return (starts[rows] < ends[rivals]) & (starts[rivals] < ends[rows])
