"""Put phrases or mentions into groups, with a name for each."""

from __future__ import annotations

import logging
from dataclasses import replace

import numpy as np

from hybrid_search.backends.base import Backend
from hybrid_search.discover.contexts import ContextReader, encode_alone
from hybrid_search.discover.groups import (
    NO_GROUP,
    Grouping,
    check_distance,
    describe_groups,
    group_phrases,
)
from hybrid_search.discover.phrase_source import PhraseList
from hybrid_search.discover.phrase_table import PhraseTable
from hybrid_search.discover.types import PhraseGroup
from hybrid_search.encoder.base import Encoder
from hybrid_search.errors import UsageError
from hybrid_search.parameters import check_integer
from hybrid_search.search.pipeline import match_encoder_to_index

_log = logging.getLogger(__name__)


def cluster(
    backend: Backend,
    encoder: Encoder,
    index: str | None,
    phrases: PhraseList,
    distance: float,
    seed: int,
) -> list[PhraseGroup]:
    """Return the groups, that with the most places or lines first.

    Args:
        backend: The store that holds the index.
        encoder: The full encoder of the model.
        index: Where the phrases have their contexts; None to encode phrases alone.
        phrases: What to put into groups.
        distance: The largest mean distance, 1 - cosine, of what is in one group, 0..2.
        seed: Of the sample, if there are more phrases than can be compared.

    Returns:
        All groups, those of a single phrase as well. UsageError is raised for a value that is not
        allowed, and if the index has none of the mentions.
    """
    check_distance(distance)
    check_integer("seed", seed, 0)
    table = _read_table(backend, encoder, index, phrases)
    grouping = _group_rest(group_phrases(table, distance, seed))
    if grouping.compared < len(table.texts):
        _log.warning(
            "%d of %d phrases, drawn with seed %d, were compared with each other; the others went "
            "to the nearest group",
            grouping.compared,
            len(table.texts),
            seed,
        )
    order = np.argsort(-grouping.count_places(), kind="stable")
    return list(describe_groups(grouping, order.tolist()))


def _read_table(
    backend: Backend, encoder: Encoder, index: str | None, phrases: PhraseList
) -> PhraseTable:
    if index is None:
        return encode_alone(encoder, phrases.phrases)
    spec, _ = backend.read_head(index)
    encoder = match_encoder_to_index(encoder, index, spec)
    reader = ContextReader(backend, index, spec.dimension)
    if phrases.phrases:
        return reader.read_phrases(phrases.phrases, encoder)
    table, missing = reader.read_mentions(phrases.mentions)
    if not table.texts:
        raise UsageError(
            f"index {index!r} has none of {missing:,} matches: name the index that was mined, or "
            "mine it again"
        )
    if missing:
        _log.warning(
            "%d matches were left out, because index %s does not have their words any more: mine "
            "it again",
            missing,
            index,
        )
    return table


def _group_rest(grouping: Grouping) -> Grouping:
    """Return the grouping with a group of its own for each phrase that was near to none."""
    rest = np.flatnonzero(grouping.labels == NO_GROUP)
    labels = grouping.labels.copy()
    labels[rest] = len(grouping.means) + np.arange(len(rest))
    means = np.concatenate([grouping.means, grouping.table.vectors[rest]])
    return replace(grouping, labels=labels, means=means)
