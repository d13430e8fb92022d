"""Arrow tables: Parquet files in batches, and any object with the Arrow interface."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, BinaryIO

from hybrid_search.errors import InputError, MissingExtraError
from hybrid_search.ingest.sources.json_values import to_json_value
from hybrid_search.ingest.sources.records import Fields, Record, dump
from hybrid_search.system import install_command

try:
    import pyarrow as pa
    from pyarrow.parquet import ParquetFile
except ModuleNotFoundError as missing:
    raise MissingExtraError(
        f"Parquet files and Arrow tables need pyarrow: {install_command('parquet')}"
    ) from missing

BATCH_ROWS = 1000
BATCH_BYTES = 8 * 1024 * 1024
"""Bytes of rows in memory at once, estimated by the mean of their row group."""

BUFFER_BYTES = 1024 * 1024
"""Bytes read ahead of each column; without a buffer a whole row group would be in memory."""


class ParquetTable:
    """A Parquet file, read in batches. Raises OSError if it cannot be read to the end."""

    def __init__(self, file: str | BinaryIO) -> None:
        self._file = file
        with self._open() as parquet:
            self.header: list[str] = parquet.schema_arrow.names

    def records(self) -> Iterator[Record]:
        """Yield the rows, numbered from 1."""
        try:
            with self._open() as parquet:
                yield from _read_batches(parquet.iter_batches(_batch_rows(parquet.metadata)))
        except pa.ArrowException as error:
            raise OSError(f"not a readable Parquet file: {error}") from error

    def _open(self) -> Any:
        try:
            return ParquetFile(self._file, buffer_size=BUFFER_BYTES)
        except pa.ArrowException as error:
            raise OSError(f"not a readable Parquet file: {error}") from error


class ArrowTable:
    """A table in memory, from a `source` with ``__arrow_c_stream__``."""

    def __init__(self, source: Any) -> None:
        self._table = pa.table(source)
        self.header: list[str] = self._table.column_names

    def records(self) -> Iterator[Record]:
        """Yield the rows, numbered from 1."""
        yield from _read_batches(iter(self._table.to_batches(BATCH_ROWS)))


def _batch_rows(metadata: Any) -> int:
    """Return how many rows of the largest row group take `BATCH_BYTES`."""
    groups = [metadata.row_group(number) for number in range(metadata.num_row_groups)]
    mean = max((group.total_byte_size / max(1, group.num_rows) for group in groups), default=1.0)
    return max(1, min(BATCH_ROWS, int(BATCH_BYTES / max(1.0, mean))))


def _read_batches(batches: Iterator[Any]) -> Iterator[Record]:
    number = 0
    for batch in batches:
        fields = [field.with_type(_limit_to_microseconds(field.type)) for field in batch.schema]
        columns = batch.cast(pa.schema(fields), safe=False).columns
        for row in range(batch.num_rows):
            number += 1
            yield _read_row(number, batch.schema.names, [column[row] for column in columns])


def _read_row(number: int, names: list[str], cells: list[Any]) -> Record:
    """Return the record of a row; if a cell is invalid, it has the cells before it as JSON."""
    fields: Fields = {}
    name = ""
    try:
        for name, cell in zip(names, cells, strict=True):
            value = to_json_value(cell.as_py(), name)
            if value is not None and value != "":
                fields[name] = value
        return Record(number, fields)
    except UnicodeDecodeError:
        fault = f"not UTF-8 in {name!r}"
    except InputError as error:
        fault = str(error)
    except (ValueError, OverflowError):
        fault = f"{name!r} cannot be read: times lie within the years 1 to 9999"
    return Record(number, fields, dump(fields), fault)


def _limit_to_microseconds(kind: Any) -> Any:
    """Return the type with times limited to microseconds, the finest in Python."""
    if pa.types.is_timestamp(kind) and kind.unit == "ns":
        return pa.timestamp("us", kind.tz)
    if pa.types.is_time64(kind):
        return pa.time64("us")
    if pa.types.is_struct(kind):
        return pa.struct([field.with_type(_limit_to_microseconds(field.type)) for field in kind])
    if pa.types.is_list(kind) or pa.types.is_large_list(kind):
        make_list = pa.list_ if pa.types.is_list(kind) else pa.large_list
        return make_list(kind.value_field.with_type(_limit_to_microseconds(kind.value_type)))
    return kind
