"""The commands ``topics`` and ``tune``: check topics, and fit their probabilities to judgments."""

from __future__ import annotations

from collections.abc import Sequence
from enum import StrEnum
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from hybrid_search.api import connect
from hybrid_search.cli import options
from hybrid_search.config import DEFAULT_INDEX

if TYPE_CHECKING:
    from hybrid_search.topics.rule_check import RuleExplanation
    from hybrid_search.topics.topic_distances import PhrasePair, TopicDistances
    from hybrid_search.topics.tuning import TunedMap, Tuning


class Action(StrEnum):
    """The action on the file."""

    check = "check"


def topics(
    action: Annotated[  # noqa: ARG001 (the only one, and typer has checked it)
        Action, typer.Argument(help="check: validate, and compare the phrases.")
    ],
    file: Annotated[Path, typer.Argument(help="A file of topics, in YAML or JSON.")],
    index: Annotated[
        str | None, typer.Option(help="An index in which the rules of the file are counted.")
    ] = None,
    *,
    place: options.Place,
    as_json: options.Json = False,
) -> None:
    """Check a file of topics, and show how far their phrases are from each other.

    A topic collides if a phrase of another topic is nearer to it than its own phrases are to each
    other: mentions of the one are then found for the other as well. Rules are explained in words,
    with --index also in how many documents they hold, and which part decides that.
    """
    from hybrid_search.topics.topics import Topics

    loaded_topics = Topics.load(file)
    used_place: options.Place = place if index else {**place, "url": "memory:"}
    with connect(**used_place) as client:
        distances = client.check_topics(loaded_topics)
        rules = client.explain_rules(loaded_topics, index=index)
    if as_json:
        topic_rows = [row.to_dict() for row in distances]
        options.print_json({"topics": topic_rows, "rules": [row.to_dict() for row in rules]})
    else:
        _show_distances(distances)
        _show_rules(rules)


def _show_rules(rules: Sequence[RuleExplanation]) -> None:
    for row in rules:
        options.print_lines(row.sentence)
        if row.documents is not None:
            options.print_lines(f"  it holds in {row.documents:,} documents")
        for part, count in row.without.items():
            decides = "  DECIDES" if part == row.decides else ""
            options.print_lines(f"  without {part}: {count:,}{decides}")


def _show_distances(distances: Sequence[TopicDistances]) -> None:
    for row in distances:
        collision = "  COLLIDES" if row.collides else ""
        options.print_lines(f"{row.topic}: {row.phrases} phrases{collision}")
        _show_pair("own phrases, furthest", row.furthest, has_topic=False)
        _show_pair("not meant, nearest", row.nearest_not, has_topic=False)
        _show_pair("other topics, nearest", row.nearest_other, has_topic=True)


def _show_pair(label: str, pair: PhrasePair | None, *, has_topic: bool) -> None:
    if pair is not None:
        topic = f" ({pair.topic})" if has_topic else ""
        options.print_lines(f"  {label}: {pair.cosine:.3f}  {pair.phrase} | {pair.other}{topic}")


BAR_COLUMNS = 20
"""Length of the bar of a reliability plot if all answers are yes."""


def tune(
    topics: Annotated[Path, typer.Option(help="The file of topics that were judged.")],
    judgments: Annotated[
        Path,
        typer.Option(
            help='Judgments, one {"topic", "phrase", "id", "start", "end", "text", "answer", '
            '"model", "at"} a line.'
        ),
    ],
    index: options.Index = DEFAULT_INDEX,
    *,
    place: options.Place,
    as_json: options.Json = False,
) -> None:
    """Fit the probabilities of topics to judgments; mine uses them from then on.

    They are written beside the file of topics: topics.tuned.json beside topics.yaml. A topic with
    at least 20 judgments of both kinds has a map of its own; all others share one that needs as
    many, and at least 5 of each of three topics.
    """
    with connect(**place) as client:
        tuning = client.tune(topics, judgments, index=index)
    if as_json:
        options.print_json(tuning.to_dict())
    else:
        _show_tuning(tuning)


def _show_tuning(tuning: Tuning) -> None:
    for name, tuned in tuning.topics.items():
        _show_map(name, tuned)
    if tuning.others:
        _show_map("all other topics", tuning.others)
    else:
        _show_no_map(tuning)


def _show_no_map(tuning: Tuning) -> None:
    from hybrid_search.topics.tuning import FEWEST, FEWEST_OF_TOPIC, FEWEST_TOPICS

    are_of_few = tuning.judgments >= FEWEST and tuning.judged_topics < FEWEST_TOPICS
    few = f"about too few topics ({tuning.judged_topics})" if are_of_few else "too few"
    if not tuning.topics:
        options.print_lines(
            f"nothing was tuned: {tuning.judgments} judgments are {few}. A topic needs {FEWEST} of "
            f"both kinds; all topics together need as many, and at least {FEWEST_OF_TOPIC} of each "
            f"of {FEWEST_TOPICS}"
        )
        return
    options.print_lines(
        f"{tuning.judgments} judgments are {few} for all other topics, which keep the model's "
        f"map: they need {FEWEST} of both kinds, and at least {FEWEST_OF_TOPIC} of each of "
        f"{FEWEST_TOPICS} topics"
    )


def _show_map(name: str, tuned: TunedMap) -> None:
    low, high = tuned.midpoint_interval
    options.print_lines(
        f"{name}: {tuned.judgments} judgments ({tuned.mentions} yes), probability 0.5 at score "
        f"{tuned.midpoint:.3f} ({low:.3f} to {high:.3f}; {3 * tuned.judgments} more judgments "
        f"would halve that), calibration error {tuned.error:.3f}"
    )
    options.print_lines("  judged  probability  yes")
    for count, probability, share in tuned.reliability:
        bar = "#" * round(BAR_COLUMNS * share)
        options.print_lines(f"  {count:>6,}  {probability:>11.2f}  {share:<4.2f}  {bar}".rstrip())
    if tuned.is_chance:
        options.print_lines(
            "  the answers hardly go with the score (a yes has the larger one in "
            f"{tuned.concordance:.2f} of all pairs with a no), so this map is not used: judge more "
            "of them, or look at the answers and the phrases again"
        )
    if tuned.threshold is not None:
        options.print_lines(f"  threshold for the wanted precision: {tuned.threshold:.3f}")
