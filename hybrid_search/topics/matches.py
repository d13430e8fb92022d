"""`Matches`: a table of mentions. It is imported with the package, so it stays light."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Self

from hybrid_search.topics.match import Match, read_matches

if TYPE_CHECKING:
    from pyarrow import Table


@dataclass(frozen=True, slots=True)
class Matches:
    """Some matches in their order; iterates over them.

    >>> topics = [{"name": "refund", "phrases": ["put the money back on my card"]}]
    >>> with hybrid_search.connect() as client:
    ...     matches = hybrid_search.Matches.collect(client.mine(topics))
    >>> matches.to_arrow().column("topic")[0].as_py()
    'refund'
    """

    matches: tuple[Match, ...]

    def __iter__(self) -> Iterator[Match]:
        return iter(self.matches)

    def __len__(self) -> int:
        return len(self.matches)

    @classmethod
    def collect(cls, matches: Iterable[Match]) -> Self:
        """Return all of some matches, as `Client.mine` yields them."""
        return cls(tuple(matches))

    @classmethod
    def load(cls, path: str | Path) -> Self:
        """Return the matches of a file that ``hybrid-search mine`` wrote in JSON lines.

        UsageError is raised if it cannot be read, or a line is not a match.
        """
        return cls.collect(read_matches(Path(path)))

    def to_arrow(self) -> Table:
        """Return an Arrow table with a column for each attribute of `Match`; metadata is JSON.

        ``to_arrow().to_pandas()`` and ``polars.from_arrow(...)`` make data frames of it.

        MissingExtraError is raised if pyarrow is not installed (extra ``parquet``).
        """
        from hybrid_search.topics.match_parquet import build_table

        return build_table(self.matches)
