"""Write matches as a Parquet file, batch by batch."""

from __future__ import annotations

from collections.abc import Iterable
from itertools import islice
from pathlib import Path

from hybrid_search.errors import MissingExtraError
from hybrid_search.system import install_command
from hybrid_search.topics.match import Match, read_matches, to_row

try:
    import pyarrow as pa
    from pyarrow.parquet import ParquetWriter
except ModuleNotFoundError as missing:
    raise MissingExtraError(
        f"Parquet files need pyarrow: {install_command('parquet')}"
    ) from missing

BATCH_ROWS = 10_000
"""Rows of a Parquet file that are in memory at once."""

_NUMBERS = {
    **dict.fromkeys(("turn", "start", "end"), pa.int32()),
    **dict.fromkeys(("cosine", "probability"), pa.float64()),
    **dict.fromkeys(("start_ms", "end_ms"), pa.int64()),
}
SCHEMA = pa.schema([(name, _NUMBERS.get(name, pa.string())) for name in Match.__slots__])


def build_table(matches: Iterable[Match]) -> pa.Table:
    """Return the table of some matches, with the columns of a Parquet file."""
    return pa.Table.from_pylist(list(map(to_row, matches)), schema=SCHEMA)


def write_parquet(rows_file: Path, path: Path) -> None:
    """Write the matches in a file of JSON lines to a Parquet file, some of them at a time."""
    matches = read_matches(rows_file)
    with ParquetWriter(path, SCHEMA) as writer:
        while batch := list(islice(matches, BATCH_ROWS)):
            writer.write_table(build_table(batch))
