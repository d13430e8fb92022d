"""Suggestions for names that do not exist."""

from __future__ import annotations

from collections.abc import Sequence
from difflib import get_close_matches

SIMILARITY = 0.65
"""From here on a word is taken for another one misspelled: "alfa" for "alpha" (0.67), and "tokens"
not for "token_file" (0.63). From 0 to 1, as `difflib` measures it.
"""

SYNONYM_SIMILARITY = 0.8
"""The same for a misspelled synonym: "serach" for "search" (0.83)."""

SYNONYMS: tuple[frozenset[str], ...] = tuple(
    frozenset(words.split())
    for words in (
        # parameters
        "size k n limit top_k topk top count max_results num_results n_results",
        "where filter filters pre_filter",
        "index collection collection_name index_name",
        "offset skip from_ start",
        "min_score threshold score_threshold cutoff",
        "fusion ranker reranker method",
        "group_by groupby collapse",
        "sort sort_by order_by",
        "facet facets aggs aggregations",
        "explain debug",
        "url host hosts uri path db",
        "model embedding_model encoder",
        "out output outfile",
        "columns fields mapping id text turns speaker start end",
        # commands
        "ingest index add load import upload insert upsert",
        "query search find ask",
        "indexes indices list ls collections",
        "show get open view cat",
        "serve server start run ui",
        "setup create init",
        "delete remove rm drop",
        "verify check fsck",
    )
)
"""Synonyms in other search systems, grouped by the name used here."""


def find_near_name(name: str, known_names: Sequence[str]) -> str | None:
    """Return the known name with a similar meaning or spelling, or None.

    Dashes count as underscores; leading dashes are ignored.
    """
    names_by_word = {_normalize(known): known for known in known_names}
    word = _normalize(name)
    for group in SYNONYMS:
        if word in group and (meant := [known for known in names_by_word if known in group]):
            return names_by_word[meant[0]]
    spelled = get_close_matches(word, names_by_word, 1, SIMILARITY)
    if spelled:
        return names_by_word[spelled[0]]
    synonyms = frozenset[str]().union(
        *(group for group in SYNONYMS if group & names_by_word.keys())
    )
    misspelled = get_close_matches(word, sorted(synonyms), 1, SYNONYM_SIMILARITY)
    return find_near_name(misspelled[0], known_names) if misspelled else None


def hint_name(name: str, known_names: Sequence[str]) -> str:
    """Return the end of a message about an unknown name: a suggestion, or all known names."""
    near_name = find_near_name(name, known_names)
    return f"did you mean {near_name!r}?" if near_name else f"use {', '.join(known_names)}"


def _normalize(name: str) -> str:
    return name.lstrip("-").replace("-", "_").lower()
