"""Write matches as a Parquet file, batch by batch."""

from __future__ import annotations

from collections.abc import Iterable
from itertools import islice
from pathlib import Path

from hybrid_search.errors import MissingExtraError
from hybrid_search.system import install_command
from hybrid_search.topics.match import Match, flatten, read_rows

try:
    import pyarrow as pa
    from pyarrow.parquet import ParquetWriter
except ModuleNotFoundError as missing:
    raise MissingExtraError(
        f"Parquet files need pyarrow: {install_command('parquet')}"
    ) from missing

BATCH_ROWS = 10_000
"""Rows of a Parquet file that are in memory at once."""

SCHEMA = pa.schema(
    [
        ("topic", pa.string()),
        ("phrase", pa.string()),
        ("id", pa.string()),
        ("turn", pa.int32()),
        ("speaker", pa.string()),
        ("start", pa.int32()),
        ("end", pa.int32()),
        ("text", pa.string()),
        ("cosine", pa.float64()),
        ("probability", pa.float64()),
        ("start_ms", pa.int64()),
        ("end_ms", pa.int64()),
        ("metadata", pa.string()),
        ("model", pa.string()),
        ("times", pa.string()),
    ]
)


def build_table(matches: Iterable[Match]) -> pa.Table:
    """Return the table of some matches, with the columns of a Parquet file."""
    return pa.Table.from_pylist(list(flatten(matches)), schema=SCHEMA)


def write_parquet(rows_file: Path, path: Path) -> None:
    """Write the matches in a file of JSON lines to a Parquet file, some of them at a time."""
    rows = read_rows(rows_file)
    with ParquetWriter(path, SCHEMA) as writer:
        while batch := list(islice(rows, BATCH_ROWS)):
            writer.write_table(pa.Table.from_pylist(batch, schema=SCHEMA))
