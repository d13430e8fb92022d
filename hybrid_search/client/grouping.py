"""`Client` methods that group what is said: similar, cluster, discover.

Modules that a single method needs are imported inside it, to keep the first query fast.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Unpack

from hybrid_search.client.mining import TopicMining
from hybrid_search.config import DEFAULT_INDEX
from hybrid_search.parameters import expand_options
from hybrid_search.phrases.grouping_options import DiscoverOptions, SimilarOptions
from hybrid_search.phrases.topics import Topics, TopicSource

if TYPE_CHECKING:
    from hybrid_search.phrases.grouping.phrase_source import PhraseSource
    from hybrid_search.phrases.grouping.types import Discovery, PhraseGroup, SimilarPhrase


class PhraseGrouping(TopicMining):
    """Grouping of what is said in the indexes of one backend."""

    @expand_options(SimilarOptions)
    def similar(
        self, phrase: str, *, index: str = DEFAULT_INDEX, **options: Unpack[SimilarOptions]
    ) -> list[SimilarPhrase]:
        """Return the different wordings of a phrase in an index, nearest first.

        Every span of every passage is compared with the phrase. Each clause counts once, by its
        best span.

        Args:
            phrase: The phrase.
            **options: Which wordings.
            index: The index.

        Returns:
            The wordings, each with its number of clauses and documents, and the nearest example.

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
        """Group phrases or mentions, and name each group. Needs the extra ``cluster``.

        The vector of a phrase is its mean over the contexts in which it is said. For matches these
        are the places where they were found; for phrases, every place in the index with the same
        words.

        Args:
            source: A file of matches if its name ends in ``.jsonl``, otherwise a file with one
                phrase per line. Or an iterable of phrases, or of the matches that `mine` yields.
            index: The index to read contexts from. Without one, phrases are encoded alone, and
                matches are looked up in the default index.
            topic: Group only the matches of this topic.
            distance: The largest mean distance (1 - cosine) between members of a group, 0 to 2.
            seed: Seed of the sample that is drawn if there are more than 5,000 different wordings.

        Returns:
            All groups, largest first.

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

    @expand_options(DiscoverOptions)
    def discover(
        self,
        topics: TopicSource | None = None,
        *,
        index: str = DEFAULT_INDEX,
        **options: Unpack[DiscoverOptions],
    ) -> Discovery:
        """Return groups of frequent clauses that no topic covers. Needs the extra ``cluster``.

        Clauses that are not mentions of a topic are grouped. A group is ranked by its number of
        documents, capped at its number of different wordings, and lower if it is close to a topic.

        Args:
            topics: The known topics, as in `mine`; None for no topics.
            **options: What is looked at, and how it is grouped.
            index: The index.

        Returns:
            The groups, the share of documents they were computed from, and how many wordings were
            compared with each other.

        Raises:
            UsageError: If a value is not allowed, a topic is not valid, or a field is not in the
                index.
            IndexMissingError: If there is no such index.
            ModelError: If the index was written with another model, or the model does not predict
                clause boundaries.
            MissingExtraError: If scikit-learn is not installed.

        >>> with hybrid_search.connect() as client:
        ...     discovery = client.discover(speakers=["customer"], groups=5)
        >>> len(discovery.groups), discovery.sampled
        (5, 1.0)
        """
        from hybrid_search.phrases.grouping import discover

        known = topics if topics is None or isinstance(topics, Topics) else Topics.load(topics)
        encoders = self._encoders_of(index)
        return discover.discover(
            self.backend, encoders.full, encoders.load_calibration, index, known, options
        )
