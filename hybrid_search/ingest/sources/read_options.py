"""`ReadOptions`: how sources are read, the same for files, an index of a server and Python."""

from __future__ import annotations

import csv
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Literal, Self, get_args

from hybrid_search.errors import UsageError

Rows = Literal["document", "turn"]
"""What a row or object is: a document, or one turn of the call that its id names."""


@dataclass(frozen=True, slots=True)
class Columns:
    """The column or dotted key that gives each named key of a document.

    Every other column is the key of its own name.
    """

    of: Mapping[str, str] = field(default_factory=dict)

    @classmethod
    def parse(cls, text: str) -> Self:
        """Return the mapping in ``KEY=COLUMN,KEY=COLUMN``.

        A pair whose column has a comma in its name stands in double quotes.

        Raises:
            UsageError: If `text` is not of this form, or has a key twice.
        """
        pairs = [pair.partition("=") for pair in next(csv.reader([text]), [])]
        keys = [key.strip() for key, _, _ in pairs]
        are_pairs = all(equals and key.strip() and column for key, equals, column in pairs)
        if not are_pairs or len(set(keys)) < len(keys):
            raise UsageError(
                f"--columns takes KEY=COLUMN,... with each key once, as in id=call_id,text=body, "
                f"not {text!r}"
            )
        return cls({key: column for key, (_, _, column) in zip(keys, pairs, strict=True)})


SAME = Columns()
"""Every column gives the key of its own name."""


@dataclass(frozen=True, slots=True)
class ReadOptions:
    """How sources are read.

    Attributes:
        columns: The columns or dotted keys of the keys of a document.
        rows: ``turn`` makes a call of all rows with the same id.
        format: The name of the format of all sources; None: each is recognised by its content.
        encoding: The encoding of all sources; None: each is recognised.
        split_speakers: Whether lines such as "Agent: ..." of a text become turns.
    """

    columns: Columns = SAME
    rows: Rows = "document"
    format: str | None = None
    encoding: str | None = None
    split_speakers: bool = False

    def __post_init__(self) -> None:
        """Raise UsageError if a value is not one of those that there are."""
        if self.rows not in get_args(Rows):
            raise UsageError(f"rows is {self.rows!r}: it is one of {', '.join(get_args(Rows))}")

    @property
    def keep_objects(self) -> bool:
        """Return whether an object of a source is a document just as it is."""
        return not (self.columns.of or self.rows == "turn" or self.split_speakers)


AS_IS = ReadOptions()
"""Every source is recognised, and its keys are those of documents."""
