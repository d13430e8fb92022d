"""`Client` methods that group what is said: similar, cluster, discover.

Modules that a single method needs are imported inside it, to keep the first query fast.
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
    """Grouping of what is said in the indexes of one backend."""

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
        """Return the different wordings of a phrase in an index, nearest first.

        Every span of every passage is compared with the phrase. Each clause counts once, by its
        best span.

        Args:
            phrase: The phrase.
            index: The index.
            size: How many wordings to return, 1 to 1,000.
            min_cosine: Leave out spans with a lower cosine, -1 to 1.
            fold: Merge wordings whose cosine with each other is at least this, -1 to 1.
            speakers: Consider only what these speakers say; empty for all speakers.
            where: Consider only documents with this metadata, as in `query`.
            context: A text that contains the phrase, to show in which sense it is meant.

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
        """Return groups of frequent clauses that no topic covers. Needs the extra ``cluster``.

        Clauses that are not mentions of a topic are grouped. A group is ranked by its number of
        documents, capped at its number of different wordings, and lower if it is close to a topic.

        Args:
            topics: The known topics, as in `mine`; None for no topics.
            index: The index.
            groups: How many groups to return, at least 1.
            speakers: Consider only what these speakers say; empty for all speakers.
            where: Consider only documents with this metadata, as in `query`.
            least_words: Leave out clauses with fewer words, 1 to 20.
            distance: The largest mean distance (1 - cosine) between members of a group, 0 to 2.
            seed: Seed of the samples that are drawn from a large index. The same seed gives the
                same groups.

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

        options = discover.DiscoverOptions(
            groups, _check_speakers(speakers), where, least_words, distance, seed
        )
        known = topics if topics is None or isinstance(topics, Topics) else Topics.load(topics)
        encoders = self._encoders_of(index)
        return discover.discover(
            self.backend, encoders.full, encoders.load_calibration, index, known, options
        )


def _check_speakers(speakers: Sequence[str]) -> tuple[str, ...]:
    """Return the speakers; raise UsageError for a bare string, which would iterate as letters."""
    if isinstance(speakers, str) or not all(isinstance(name, str) for name in speakers):
        raise UsageError(
            f"speakers is {show_value(speakers)}: give a list of names, as in ['customer']"
        )
    return tuple(speakers)
