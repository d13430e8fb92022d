"""Arrow tables: Parquet files in batches, and any object with the Arrow interface."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Any, BinaryIO

from hybrid_search.errors import InputError, MissingExtraError, show_value
from hybrid_search.ingest.sources.records import Record, clean_fields, dump
from hybrid_search.ingest.sources.tables import Table
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


def open_parquet(file: BinaryIO) -> Table:
    """Return the table in a Parquet file; it raises OSError if it cannot be read to the end."""

    def read() -> Iterator[Record]:
        try:
            parquet = ParquetFile(file, buffer_size=BUFFER_BYTES)
            yield from _read_batches(parquet.iter_batches(_batch_rows(parquet.metadata)))
        except pa.ArrowException as error:
            raise OSError(f"not a readable Parquet file: {error}") from error

    try:
        return Table(ParquetFile(file).schema_arrow.names, read)
    except pa.ArrowException as error:
        raise OSError(f"not a readable Parquet file: {error}") from error


def as_table(source: Any) -> Table:
    """Return the table in an object with ``__arrow_c_stream__``."""
    table = pa.table(source)
    return Table(table.column_names, lambda: _read_batches(table.to_batches(BATCH_ROWS)))


def _batch_rows(metadata: Any) -> int:
    """Return how many rows of the largest row group take `BATCH_BYTES`."""
    groups = [metadata.row_group(number) for number in range(metadata.num_row_groups)]
    mean = max((group.total_byte_size / max(1, group.num_rows) for group in groups), default=1.0)
    return max(1, min(BATCH_ROWS, int(BATCH_BYTES / max(1.0, mean))))


def _read_batches(batches: Iterable[Any]) -> Iterator[Record]:
    number = 0
    for batch in batches:
        fields = [field.with_type(_limit_to_microseconds(field.type)) for field in batch.schema]
        columns = batch.cast(pa.schema(fields), safe=False).columns
        for row in range(batch.num_rows):
            number += 1
            yield _read_row(number, dict(zip(batch.schema.names, columns, strict=True)), row)


def _read_row(number: int, columns: dict[str, Any], row: int) -> Record:
    fields: dict[str, Any] = {}
    name = ""
    try:
        for name, column in columns.items():
            fields |= clean_fields({name: column[row].as_py()})
    except UnicodeDecodeError:
        fault = f"not UTF-8 in {show_value(name)}"
    except InputError as error:
        fault = str(error)
    except (ValueError, OverflowError):
        fault = f"{show_value(name)} cannot be read: times lie within the years 1 to 9999"
    else:
        return Record(number, fields={key: item for key, item in fields.items() if item != ""})
    return Record(number, dump(fields), fault=fault)


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
