"""The parameters of `check_quote`, and its answer: a `QuoteCheck` with `QuotePlace`s."""

# The annotations of a table are read at run time, so they are not postponed here.
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from typing import Annotated, Any, Literal, TypedDict

from hybrid_search.parameters import Parameter
from hybrid_search.search.query import MAX_SIZE, PARAMETERS


class QuoteOptions(TypedDict, total=False):
    """The keyword parameters of `check_quote`."""

    index: Annotated[str, PARAMETERS["index"]]
    places: Annotated[
        int,
        Parameter("How many places to list at most.", default=100, limits=(1, MAX_SIZE)),
    ]


@dataclass(frozen=True, slots=True)
class QuotePlace:
    """Words of a document: ``document.text[start:end] == text``, in code points.

    Attributes:
        id: The document's id.
        start: Where the words start in the document's text.
        end: Where they end.
        text: What stands there, with the words that an ellipsis of the quotation leaves out.
        turn: The number of the turn that contains them, from 0.
        speaker: The speaker of the turn, if it has one.
        start_ms: When the words start, in milliseconds, if the turn has times.
        end_ms: When they end.
        times: The origin of these times, as in `Span`.
    """

    id: str
    start: int
    end: int
    text: str
    turn: int
    speaker: str | None = None
    start_ms: int | None = None
    end_ms: int | None = None
    times: Literal["words", "interpolated", "turn"] | None = None


@dataclass(frozen=True, slots=True)
class QuoteCheck:
    """Where a quotation stands in an index, or what comes nearest.

    Attributes:
        places: Each place where the quotation stands, document by document.
        complete: Whether these are all places.
        nearest: If nobody said it, the best spans of a query for it, best first.
        warnings: Which documents could not be read, so that it may stand there.
    """

    places: Sequence[QuotePlace]
    complete: bool = True
    nearest: Sequence[QuotePlace] = ()
    warnings: Sequence[str] = ()

    @property
    def found(self) -> bool:
        """Return whether somebody said it."""
        return bool(self.places)

    def to_dict(self) -> dict[str, Any]:
        """Return the answer as a JSON object."""
        return {
            "found": self.found,
            "places": [asdict(place) for place in self.places],
            "complete": self.complete,
            "nearest": [asdict(place) for place in self.nearest],
            "warnings": list(self.warnings),
        }
