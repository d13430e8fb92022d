"""The commands ``similar``, ``cluster`` and ``discover``: groups of what is said."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Unpack

import typer

from hybrid_search.api import connect
from hybrid_search.cli import options
from hybrid_search.config import DEFAULT_INDEX
from hybrid_search.discover.options import SEED, DiscoverOptions, SimilarOptions, describe_distance
from hybrid_search.observability.escapes import blank_controls

if TYPE_CHECKING:
    from hybrid_search.discover.types import Discovery, Occurrence, PhraseGroup, SimilarPhrase

SHOWN_GROUPS = 30
"""Number of groups that ``cluster`` shows to people; ``--json`` has all."""


def similar(
    phrase: Annotated[str, typer.Argument(help="What to look for.")],
    index: options.Index = DEFAULT_INDEX,
    *,
    place: options.Place,
    as_json: options.Json = False,
    **chosen: Unpack[SimilarOptions],
) -> None:
    """Find the different wordings that say the same as a phrase, with how often each is said.

    Every span of every passage is compared with the phrase; a clause counts by its best span. The
    nearest come first, each with its near duplicates folded into it.
    """
    with connect(**place) as client:
        phrases = client.similar(phrase, index=index, **chosen)
        if not phrases:
            options.explain_nothing(client, index)
    if as_json:
        options.print_json({"phrases": [item.to_dict() for item in phrases]})
    else:
        _show_similar(phrases, chosen["min_cosine"])


def cluster(
    file: Annotated[
        Path,
        typer.Argument(help="Matches of mine (a name that ends in .jsonl), or a phrase a line."),
    ],
    topic: Annotated[str | None, typer.Option(help="Only the matches of this topic.")] = None,
    index: Annotated[
        str | None,
        typer.Option(
            help="Index that the contexts are in. Default: phrases are encoded alone, matches are "
            f"those of {DEFAULT_INDEX}."
        ),
    ] = None,
    distance: Annotated[float, options.make_option(describe_distance(0.4))] = 0.4,
    seed: Annotated[int, options.make_option(SEED)] = 0,
    *,
    place: options.Place,
    as_json: options.Json = False,
) -> None:
    """Put phrases or mentions into groups, each with a name and the words that tell it apart.

    The vector of a phrase is the mean over the contexts in which it is said.
    """
    with connect(**place) as client:
        groups = client.cluster(file, index=index, topic=topic, distance=distance, seed=seed)
    if as_json:
        options.print_json({"groups": [group.to_dict() for group in groups]})
    else:
        _show_groups(groups[:SHOWN_GROUPS])
        if len(groups) > SHOWN_GROUPS:
            options.print_lines(f"and {len(groups) - SHOWN_GROUPS:,} more: --json has all")


def discover(
    index: options.Index = DEFAULT_INDEX,
    topics: Annotated[
        Path | None, typer.Option(help="A file of topics, in YAML or JSON: what is known already.")
    ] = None,
    *,
    place: options.Place,
    as_json: options.Json = False,
    **chosen: Unpack[DiscoverOptions],
) -> None:
    """Discover what is said often that no topic covers, in groups.

    A group counts by the documents that say it, but by no more than its different wordings, and
    less if it is near to a topic. Exit status: 0; 1 if damaged passages were left out; 2 if nothing
    could run.
    """
    with connect(**place) as client:
        discovery = client.discover(topics, index=index, **chosen)
    if as_json:
        options.print_json(discovery.to_dict())
    else:
        _show_discovery(discovery)
    if discovery.damaged:
        options.exit_with(1)


def _show_similar(phrases: Sequence[SimilarPhrase], min_cosine: float) -> None:
    if not phrases:
        options.print_lines(
            f"no wording has a cosine of at least {min_cosine:g}: a smaller --min-cosine shows more"
        )
    for item in phrases:
        folded = f", {item.wordings} wordings" if item.wordings > 1 else ""
        options.print_lines(
            f"{item.cosine:.3f}  {blank_controls(item.text)}\n"
            f"       {item.count:,} times in {item.documents:,} documents{folded}; "
            f"{_describe_place(item.example)}"
        )


def _show_groups(groups: Sequence[PhraseGroup]) -> None:
    for number, group in enumerate(groups, 1):
        documents = f" in {group.documents:,} documents" if group.documents else ""
        topic = f"; nearest topic {group.topic} ({group.topic_cosine:.2f})" if group.topic else ""
        options.print_lines(
            f"{number}. {blank_controls(group.name)}\n"
            f"   {group.count:,} times{documents}, {group.wording_count:,} wordings; "
            f"{', '.join(group.words)}{topic}"
        )
        for example in group.examples:
            options.print_lines(f"   {blank_controls(example.text)}  {_describe_place(example)}")


def _show_discovery(discovery: Discovery) -> None:
    _show_groups(discovery.groups)
    options.print_lines(
        f"{discovery.clauses:,} clauses of {discovery.documents:,} documents "
        f"({discovery.sampled:.3g} of all), {discovery.covered:,} more are covered by topics, "
        f"{discovery.small_talk:,} are pleasantries or details; "
        f"{discovery.compared:,} of {discovery.wordings:,} wordings were compared with each other, "
        f"seed {discovery.seed}",
        err=True,
    )


def _describe_place(place: Occurrence) -> str:
    speaker = f", {place.speaker}" if place.speaker else ""
    return blank_controls(f"[{place.id} {place.start}:{place.end}{speaker}]")
