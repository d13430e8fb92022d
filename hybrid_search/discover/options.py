"""The parameters of `similar`, and of `discover`: a table for each."""

# The annotations of a table are read at run time, so they are not postponed here.
import math
from collections.abc import Mapping, Sequence
from typing import Annotated, Any, TypedDict

from hybrid_search.parameters import Parameter
from hybrid_search.search.query import PARAMETERS

SPEAKERS = Parameter("Only what this speaker says counts.", default=(), option="--speaker")
SEED = Parameter(
    "Of the samples of a large index.", default=0, limits=(0, math.inf), panel="Groups"
)


def describe_distance(default: float) -> Parameter:
    """Return the parameter for the distance in a group."""
    words = "Largest mean distance, 1 - cosine, of what is in one group."
    return Parameter(words, default=default, limits=(0, 2), panel="Groups")


class SimilarOptions(TypedDict, total=False):
    """Which wordings are returned."""

    size: Annotated[int, Parameter("How many wordings to return.", default=20, limits=(1, 1_000))]
    min_cosine: Annotated[
        float,
        Parameter(
            "Leave out spans with a smaller cosine.", default=0.6, limits=(-1, 1), panel="Groups"
        ),
    ]
    fold: Annotated[
        float,
        Parameter(
            "Wordings with at least this cosine are one.",
            default=0.85,
            limits=(-1, 1),
            panel="Groups",
        ),
    ]
    speakers: Annotated[Sequence[str], SPEAKERS]
    where: Annotated[Mapping[str, Any] | None, PARAMETERS["where"]]
    context: Annotated[str | None, PARAMETERS["context"]]


class DiscoverOptions(TypedDict, total=False):
    """The clauses that are looked at, and how they are grouped."""

    groups: Annotated[
        int, Parameter("How many groups to return.", default=30, limits=(1, math.inf))
    ]
    speakers: Annotated[Sequence[str], SPEAKERS]
    where: Annotated[Mapping[str, Any] | None, PARAMETERS["where"]]
    least_words: Annotated[
        int,
        Parameter("Leave out clauses with fewer words.", default=3, limits=(1, 20), panel="Groups"),
    ]
    # chosen with calls_sgd: with 0.4 or 0.5 formulas of politeness fill several groups
    distance: Annotated[float, describe_distance(0.6)]
    seed: Annotated[int, SEED]
