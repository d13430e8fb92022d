"""`ReadOptions`: how to read sources, the same for files, a server's index and Python."""

from __future__ import annotations

import csv
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Literal, get_args

from hybrid_search.errors import UsageError

Rows = Literal["document", "turn"]
"""The meaning of a row or object: a document, or one turn of the call with its id."""


Columns = Mapping[str, str]
"""The column or dotted key of each key of a document; every other column keeps its name."""


def parse_columns(text: str) -> Columns:
    """Return the columns in a text of the form ``KEY=COLUMN,KEY=COLUMN``.

    A pair whose column name has a comma must be in double quotes.

    Raises:
        UsageError: If `text` does not have this form, or has a key twice.
    """
    pairs = [pair.partition("=") for pair in next(csv.reader([text]), [])]
    keys = [key.strip() for key, _, _ in pairs]
    are_pairs = all(equals and key.strip() and column for key, equals, column in pairs)
    if not are_pairs or len(set(keys)) < len(keys):
        raise UsageError(
            f"--columns takes KEY=COLUMN,... with each key once, as in id=call_id,text=body, "
            f"not {text!r}"
        )
    return {key: column for key, (_, _, column) in zip(keys, pairs, strict=True)}


@dataclass(frozen=True, slots=True)
class ReadOptions:
    """How sources are read."""

    columns: Columns = field(default_factory=dict)
    rows: Rows = "document"
    format: str | None = None
    """The format of all sources; None to recognise each by its content."""
    encoding: str | None = None
    """The encoding of all sources; None to detect each."""
    split_speakers: bool = False
    """Whether lines such as "Agent: ..." of a text become turns."""

    def __post_init__(self) -> None:
        """Raise UsageError if a value is not one of the allowed ones."""
        if self.rows not in get_args(Rows):
            raise UsageError(f"rows is {self.rows!r}: it is one of {', '.join(get_args(Rows))}")

    @property
    def keep_objects(self) -> bool:
        """Return whether objects of a source are documents already."""
        return not (self.columns or self.rows == "turn" or self.split_speakers)


AS_IS = ReadOptions()
"""Every source is recognised by its content, and keys are used unchanged."""
