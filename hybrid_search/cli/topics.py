"""The command ``topics``: check a file of topics before mining."""

from __future__ import annotations

from collections.abc import Sequence
from enum import StrEnum
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from hybrid_search.cli import options
from hybrid_search.config import ModelOptions

if TYPE_CHECKING:
    from hybrid_search.topics.topic_distances import PhrasePair, TopicDistances


class Action(StrEnum):
    """The action on the file."""

    check = "check"


def topics(
    action: Annotated[  # noqa: ARG001 (the only one, and typer has checked it)
        Action, typer.Argument(help="check: validate, and compare the phrases.")
    ],
    file: Annotated[Path, typer.Argument(help="A file of topics, in YAML or JSON.")],
    *,
    model: ModelOptions,
    as_json: options.Json = False,
) -> None:
    """Check a file of topics, and show how far their phrases are from each other.

    A topic collides if a phrase of another topic is nearer to it than its own phrases are to each
    other: mentions of the one are then found for the other as well.
    """
    from hybrid_search.api import connect
    from hybrid_search.topics.topics import Topics

    loaded_topics = Topics.load(file)
    with connect("memory:", **model) as client:
        distances = client.check_topics(loaded_topics)
    if as_json:
        options.print_json({"topics": [row.to_dict() for row in distances]})
    else:
        _show(distances)


def _show(distances: Sequence[TopicDistances]) -> None:
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
