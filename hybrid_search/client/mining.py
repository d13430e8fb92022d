"""The methods of a client that work with topics: mine an index, compare phrases, tune.

What only one of them needs is imported in it, so that the first query does not wait for it.
"""

from __future__ import annotations

from collections.abc import Iterator
from datetime import datetime
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

from hybrid_search.client.admin import IndexAdmin
from hybrid_search.config import DEFAULT_INDEX
from hybrid_search.ingest.executors.base import LOCAL
from hybrid_search.ingest.shards import ALL_DOCUMENTS, Shard
from hybrid_search.phrases.match import Match
from hybrid_search.phrases.topics import Topics, TopicSource
from hybrid_search.search import parameters
from hybrid_search.search.query import RANGES

if TYPE_CHECKING:
    from hybrid_search.phrases.judging_queue import JudgingQueue
    from hybrid_search.phrases.run import Report
    from hybrid_search.phrases.topic_distances import TopicDistances
    from hybrid_search.phrases.tuning import Tuning
    from hybrid_search.phrases.types import MinedBlock


class TopicMining(IndexAdmin):
    """Finds the mentions of topics in the indexes of one backend."""

    def mine(
        self,
        topics: TopicSource,
        *,
        index: str = DEFAULT_INDEX,
        engine: str = LOCAL,
        workers: int | None = None,
        feedback: int = 0,
    ) -> Iterator[Match]:
        """Yield the mentions of some topics in a whole index, document by document.

        Every span of every passage is compared with every phrase. A clause is at most one mention
        of a topic, by its best span.

        Args:
            topics: What to look for, as `hybrid_search.Topics.load` takes it: a file, or dicts.
            index: The index.
            engine: Where spans are scored: ``local``, or ``ray`` for the actors of a Ray cluster.
            workers: How many actors of the cluster; one a core if not given.
            feedback: Before the index is mined, each phrase is moved to the best spans of so many
                of the documents that it finds there, 0 to 100: 10 is usual, 0 is none.

        Raises:
            UsageError: If a topic is not valid, or names a metadata field that is not in the index.
            IndexMissingError: If there is no such index.
            ModelError: If the index was written with another model.

        >>> topics = [{"name": "refund", "phrases": ["I want my money back"]}]
        >>> with hybrid_search.connect() as client:
        ...     next(client.mine(topics)).text
        "I'd like my money back"
        """
        blocks = self.mine_blocks(
            topics, index=index, engine=engine, workers=workers, feedback=feedback
        )
        for block in blocks:
            yield from block.matches

    def check_topics(self, topics: TopicSource) -> list[TopicDistances]:
        """Return how far the phrases of topics are from each other, topic by topic.

        Args:
            topics: As in `mine`. No index is used.

        Raises:
            UsageError: If a topic is not valid, or a phrase has no word.

        >>> topics = [{"name": name, "phrases": [name]} for name in ("refund", "money back")]
        >>> with hybrid_search.connect() as client:
        ...     client.check_topics(topics)[0].nearest_other.other
        'money back'
        """
        from hybrid_search.phrases.topic_distances import measure_distances

        valid_topics = topics if isinstance(topics, Topics) else Topics.load(topics)
        return measure_distances(self.encoder, valid_topics)

    def queue_judging(
        self,
        topics: TopicSource,
        judgments: str | Path | None = None,
        *,
        index: str = DEFAULT_INDEX,
        report: Report | None = None,
    ) -> JudgingQueue:
        """Return spans to be judged, the one whose answer would tell most first.

        The index is mined with a low threshold, and a sample of each topic's spans is drawn.

        Args:
            topics: As in `mine`.
            judgments: A file of judgments; what it has is not asked about again. It need not exist.
            index: The index.
            report: Called with the progress of mining.

        Raises:
            UsageError: If a topic or a line of the file is not valid.

        >>> topics = [{"name": "refund", "phrases": ["I want my money back"]}]
        >>> with hybrid_search.connect() as client:
        ...     queue = client.queue_judging(topics)
        >>> queue.choose().topic
        'refund'
        """
        from hybrid_search.phrases.judging_run import build_queue
        from hybrid_search.phrases.judgments import read_judgments

        path = Path(judgments) if judgments is not None else None
        earlier = read_judgments(path) if path and path.exists() else []
        loaded_topics = topics if isinstance(topics, Topics) else Topics.load(topics)
        open_blocks = partial(self.mine_blocks, index=index)
        return build_queue(open_blocks, loaded_topics, earlier, report)

    def tune(
        self, topics: str | Path, judgments: str | Path, *, index: str = DEFAULT_INDEX
    ) -> Tuning:
        """Fit the probabilities of topics to judgments, for the next `mine` with their file.

        Args:
            topics: A file of topics. The probabilities are written beside it, as
                ``topics.tuned.json`` beside ``topics.yaml``.
            judgments: A file of judgments, as `hybrid_search.phrases.judgments` describes it.
            index: The index that the judged spans are in.

        Returns:
            The map of each topic that has enough judgments, that of all others, and the alpha at
            which queries for the topics rank the judged documents best.

        Raises:
            UsageError: If a file is not valid, or all judgments are of one kind.

        >>> with hybrid_search.connect() as client:  # doctest: +SKIP
        ...     client.tune("topics.yaml", "judgments.jsonl").others.judgments
        120
        """
        from hybrid_search.phrases.judgments import read_judgments
        from hybrid_search.phrases.tune_run import tune_topics
        from hybrid_search.phrases.tuning import write_tuning

        loaded_topics = Topics.load(topics)
        encoders = self._encoders_of(index)
        tuning, _ = tune_topics(
            self.backend,
            encoders.full,
            encoders.load_calibration,
            loaded_topics,
            read_judgments(Path(judgments)),
            index,
        )
        if loaded_topics.tuning_file:
            write_tuning(loaded_topics.tuning_file, tuning)
        return tuning

    def mine_blocks(
        self,
        topics: TopicSource,
        *,
        index: str = DEFAULT_INDEX,
        after: Any = None,
        shard: Shard = ALL_DOCUMENTS,
        engine: str = LOCAL,
        workers: int | None = None,
        feedback: int = 0,
        written_since: datetime | None = None,
        count_unlikely: bool = False,
    ) -> Iterator[MinedBlock]:
        """Yield the matches of `mine` block by block, with how far the run has come.

        Args:
            topics: As in `mine`.
            index: As in `mine`.
            after: The `position` of a block of an earlier run; this one goes on behind it.
            shard: Look only at the documents of this shard.
            engine: As in `mine`.
            workers: As in `mine`.
            feedback: As in `mine`.
            written_since: Look only at documents that were written then or later; on servers.
            count_unlikely: Count what is below the thresholds too, to estimate what is missed.

        Returns:
            The blocks; the last one says how many documents and passages were looked at.

        >>> topics = [{"name": "refund", "phrases": ["I want my money back"]}]
        >>> with hybrid_search.connect() as client:
        ...     list(client.mine_blocks(topics))[-1].documents
        5
        """
        from hybrid_search.phrases import mining
        from hybrid_search.phrases.scoring import choose_scoring

        parameters.check_integer("feedback", feedback, *RANGES["feedback"])
        valid_topics = topics if isinstance(topics, Topics) else Topics.load(topics)
        encoders = self._encoders_of(index)
        return mining.mine(
            self.backend,
            encoders.full,
            encoders.load_calibration,
            valid_topics,
            index,
            after,
            shard,
            choose_scoring(engine, workers),
            feedback,
            written_since,
            count_unlikely=count_unlikely,
        )
