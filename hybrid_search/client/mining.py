"""`Client` methods for topics: mine an index, compare phrases, tune probabilities.

Modules that a single method needs are imported inside it, to keep the first query fast.
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
from hybrid_search.search.query import PARAMETERS

if TYPE_CHECKING:
    from hybrid_search.phrases.judging_queue import JudgingQueue
    from hybrid_search.phrases.run import Report
    from hybrid_search.phrases.topic_distances import TopicDistances
    from hybrid_search.phrases.tuning import Tuning
    from hybrid_search.phrases.types import MinedBlock


class TopicMining(IndexAdmin):
    """Search for the mentions of topics in the indexes of one backend."""

    def mine(
        self,
        topics: TopicSource,
        *,
        index: str = DEFAULT_INDEX,
        engine: str = LOCAL,
        workers: int | None = None,
        feedback: int = 0,
    ) -> Iterator[Match]:
        """Yield every mention of the given topics in an index, document by document.

        Every span of every passage is compared with every phrase. Each clause counts as at most one
        mention of a topic, represented by its best span.

        Args:
            topics: The topics, in any form that `hybrid_search.Topics.load` accepts: a file, or
                dicts.
            index: The index.
            engine: Where to score spans: ``local``, or ``ray`` for the actors of a Ray cluster.
            workers: How many actors to start in the cluster (default: one per core).
            feedback: Before mining, move each phrase towards the best spans of this many documents
                that it finds in the index, 0 to 100: 10 is usual, 0 turns it off.

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
        """Return the distances between the phrases of topics, topic by topic.

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
        """Return a queue of spans to judge, most informative first.

        Mines the index with a low threshold, and draws a sample of each topic's spans.

        Args:
            topics: As in `mine`.
            judgments: A file of judgments, which need not exist. Spans judged there are not queued
                again.
            index: The index.
            report: Called with the progress of the mining run.

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
        """Fit the probabilities of topics to judgments; `mine` uses them from then on.

        Args:
            topics: A file of topics. The probabilities are written next to it, e.g.
                ``topics.tuned.json`` for ``topics.yaml``.
            judgments: A file of judgments, in the format of `hybrid_search.phrases.judgments`.
            index: The index with the judged spans.

        Returns:
            The map of each topic with enough judgments, one map for all other topics, and the alpha
            at which queries for the topics rank the judged documents best.

        Raises:
            UsageError: If a file is not valid, or all judgments have the same answer.

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
        """Yield the matches of `mine` in blocks, each with the progress of the run.

        Args:
            topics: As in `mine`.
            index: As in `mine`.
            after: The `position` of a block of an earlier run; mining resumes after it.
            shard: Mine only the documents of this shard.
            engine: As in `mine`.
            workers: As in `mine`.
            feedback: As in `mine`.
            written_since: Mine only documents written at this time or later. Servers only.
            count_unlikely: Also count spans below the thresholds, to estimate how many mentions are
                missed.

        Returns:
            The blocks; the last one has the number of documents and passages mined.

        >>> topics = [{"name": "refund", "phrases": ["I want my money back"]}]
        >>> with hybrid_search.connect() as client:
        ...     list(client.mine_blocks(topics))[-1].documents
        5
        """
        from hybrid_search.phrases import mining
        from hybrid_search.phrases.scoring import choose_scoring

        PARAMETERS["feedback"].convert(feedback)
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
