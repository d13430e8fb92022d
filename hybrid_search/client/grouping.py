"""The methods of a client that put what is said into groups: similar, cluster, discover.

What only one of them needs is imported in it, so that the first query does not wait for it.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

from hybrid_search.client.mining import TopicMining
from hybrid_search.config import DEFAULT_INDEX
from hybrid_search.errors import UsageError, show_value
from hybrid_search.phrases.topics import Topics, TopicSource

if TYPE_CHECKING:
    from hybrid_search.phrases.grouping.phrase_source import PhraseSource
    from hybrid_search.phrases.grouping.types import Discovery, PhraseGroup, SimilarPhrase


class PhraseGrouping(TopicMining):
    """Groups what is said in the indexes of one backend."""

    def similar(
        self,
        phrase: str,
        *,
        index: str = DEFAULT_INDEX,
        size: int = 20,
        min_cosine: float = 0.6,
        fold: float = 0.85,
        speakers: Sequence[str] = (),
        where: Mapping[str, Any] | None = None,
        context: str | None = None,
    ) -> list[SimilarPhrase]:
        """Return the different wordings that say the same as a phrase, the nearest first.

        Every span of every passage is compared with the phrase. A clause counts by its best span.

        Args:
            phrase: The phrase.
            index: The index.
            size: How many wordings, 1 to 1,000.
            min_cosine: Spans with a smaller cosine are left out, -1 to 1.
            fold: Wordings with at least this cosine with each other are one, -1 to 1.
            speakers: Only what these speakers say counts; empty for all.
            where: Only documents with this metadata count, as in `query`.
            context: A text that holds the phrase, to say in which sense it is meant.

        Returns:
            Each with how many clauses and documents have it, and the nearest place.

        Raises:
            UsageError: If a value is not allowed, or a field is not in the index.
            IndexMissingError: If there is no such index.
            ModelError: If the index was written with another model.

        >>> with hybrid_search.connect() as client:
        ...     wording = client.similar("put the money back on my card")[0]
        >>> wording.text, wording.documents, wording.example.id
        ("I'd like my money back", 1, 'shop-001')
        """
        from hybrid_search.phrases.grouping import similar

        options = similar.SimilarOptions(
            size, min_cosine, fold, _check_speakers(speakers), where, context
        )
        encoder = self._encoders_of(index).full
        return similar.find_similar_phrases(self.backend, encoder, index, phrase, options)

    def cluster(
        self,
        source: PhraseSource,
        *,
        index: str | None = None,
        topic: str | None = None,
        distance: float = 0.4,
        seed: int = 0,
    ) -> list[PhraseGroup]:
        """Put phrases or mentions into groups, each with a name. Needs the extra ``cluster``.

        The vector of a phrase is the mean over the contexts in which it is said: for matches the
        places where they were found, for phrases all places of the index that have their words.

        Args:
            source: A file: matches if its name ends in ``.jsonl``, otherwise a phrase a line. Or
                phrases, or what `mine` yields.
            index: The index that the contexts are in. Without one phrases are encoded alone, and
                matches are those of the default index.
            topic: Only the matches of this topic.
            distance: The largest mean distance, 1 - cosine, of what is in one group, 0 to 2.
            seed: Of the sample, if there are more than 5,000 different wordings.

        Returns:
            All groups, the largest first.

        Raises:
            UsageError: If a value or a line of the file is not allowed.
            IndexMissingError: If there is no such index.
            MissingExtraError: If scikit-learn is not installed.

        >>> phrases = ["I want a refund", "give me my money back", "please hold the line"]
        >>> with hybrid_search.connect() as client:
        ...     [group.count for group in client.cluster(phrases, distance=0.6)]
        [2, 1]
        """
        from hybrid_search.phrases.grouping import cluster
        from hybrid_search.phrases.grouping.phrase_source import read_source

        phrases = read_source(source, topic)
        if phrases.mentions and index is None:
            index = DEFAULT_INDEX
        encoders = self._encoders if index is None else self._encoders_of(index)
        encoder = encoders.full
        return cluster.cluster(self.backend, encoder, index, phrases, distance, seed)

    def discover(
        self,
        topics: TopicSource | None = None,
        *,
        index: str = DEFAULT_INDEX,
        groups: int = 30,
        speakers: Sequence[str] = (),
        where: Mapping[str, Any] | None = None,
        least_words: int = 3,
        distance: float = 0.6,
        seed: int = 0,
    ) -> Discovery:
        """Return what is said often that no topic covers, in groups. Needs the extra ``cluster``.

        The clauses of the index that are no mention of a topic are put into groups. A group counts
        by the documents that say it, but by no more than its different wordings, and less if it is
        near to a topic.

        Args:
            topics: What is known already, as in `mine`; None for nothing.
            index: The index.
            groups: How many groups to return, at least 1.
            speakers: Only what these speakers say counts; empty for all.
            where: Only documents with this metadata count, as in `query`.
            least_words: Clauses with fewer words are left out, 1 to 20.
            distance: The largest mean distance, 1 - cosine, of what is in one group, 0 to 2.
            seed: Of the samples that are taken of a large index. The same seed gives the same
                groups.

        Returns:
            The groups, and what they were computed from: the share of the documents, and how many
            wordings were compared with each other.

        Raises:
            UsageError: If a value is not allowed, a topic is not valid, or a field is not in the
                index.
            IndexMissingError: If there is no such index.
            ModelError: If the index was written with another model, or with one that does not tell
                where clauses end.
            MissingExtraError: If scikit-learn is not installed.

        >>> with hybrid_search.connect() as client:
        ...     discovery = client.discover(speakers=["customer"], groups=5)
        >>> len(discovery.groups), discovery.sampled
        (5, 1.0)
        """
        from hybrid_search.phrases.grouping import discover

        options = discover.DiscoverOptions(
            groups, _check_speakers(speakers), where, least_words, distance, seed
        )
        known = topics if topics is None or isinstance(topics, Topics) else Topics.load(topics)
        encoders = self._encoders_of(index)
        return discover.discover(
            self.backend, encoders.full, encoders.load_calibration, index, known, options
        )


def _check_speakers(speakers: Sequence[str]) -> tuple[str, ...]:
    """Return the speakers. Raises UsageError for a single string, which is a list of letters."""
    if isinstance(speakers, str) or not all(isinstance(name, str) for name in speakers):
        raise UsageError(
            f"speakers is {show_value(speakers)}: give a list of names, as in ['customer']"
        )
    return tuple(speakers)
