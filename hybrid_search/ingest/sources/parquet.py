"""Read rows of Parquet files as documents, in batches."""

from __future__ import annotations

import json
from collections.abc import Iterator
from datetime import date, datetime, time
from decimal import Decimal
from pathlib import Path
from typing import Any

from hybrid_search.errors import InputError, MissingExtraError
from hybrid_search.ingest.sources.tables import Columns, Row, document
from hybrid_search.system import install_command

try:
    import pyarrow as pa
    from pyarrow.parquet import ParquetFile
except ModuleNotFoundError as missing:
    raise MissingExtraError(
        f"Parquet files need pyarrow: {install_command('parquet')}"
    ) from missing

BATCH_ROWS = 1000
BATCH_BYTES = 8 * 1024 * 1024
"""Bytes of the rows that are in memory at once, reckoned by the mean of their row group."""

BUFFER_BYTES = 1024 * 1024
"""Bytes read ahead of each column; without a buffer a whole row group would be in memory."""


def rows(source: str, columns: Columns) -> Iterator[Row]:
    """Yield the rows of a file, numbered from 1. Raises OSError if it cannot be read to its end."""
    number = 0
    try:
        with ParquetFile(Path(source), buffer_size=BUFFER_BYTES) as file:
            names = file.schema_arrow.names
            keys = columns.keys(names)
            for batch in file.iter_batches(_batch_rows(file.metadata)):
                fields = batch.cast(
                    pa.schema(
                        [
                            field.with_type(_limit_to_microseconds(field.type))
                            for field in batch.schema
                        ]
                    ),
                    safe=False,
                ).columns
                for row_number in range(batch.num_rows):
                    number += 1
                    yield (number, *_read_row(keys, fields, row_number))
    except InputError as error:
        yield 1, json.dumps(names).encode(), str(error)
    except pa.ArrowException as error:
        raise OSError(f"not a readable Parquet file: {error}") from error


def _batch_rows(metadata: Any) -> int:
    """Return how many rows have `BATCH_BYTES` in the largest row group."""
    groups = [metadata.row_group(number) for number in range(metadata.num_row_groups)]
    mean = max((group.total_byte_size / max(1, group.num_rows) for group in groups), default=1.0)
    return max(1, min(BATCH_ROWS, int(BATCH_BYTES / max(1.0, mean))))


def _read_row(keys: list[str], fields: Any, row_number: int) -> tuple[bytes, str | None]:
    """Return (document, None), or (the cells as JSON, why it is not a document)."""
    cells: list[Any] = []
    try:
        for key, field in zip(keys, fields, strict=True):
            cells.append(_to_json_value(field[row_number].as_py(), key))
        return document(keys, cells), None
    except UnicodeDecodeError:
        fault = f"not UTF-8 in {keys[len(cells)]!r}"
    except InputError as error:
        fault = str(error)
    except (ValueError, OverflowError):
        fault = f"{keys[len(cells)]!r} cannot be read: times lie within the years 1 to 9999"
    return json.dumps(dict(zip(keys, cells, strict=False))).encode(), fault


def _to_json_value(value: Any, key: str) -> Any:
    """Return `value` as JSON has it. Raises InputError for types that JSON does not have."""
    if value is None or isinstance(value, (str, bool, int, float)):
        return value
    if isinstance(value, (datetime, date, time)):
        return value.isoformat()
    if isinstance(value, Decimal):
        return int(value) if value == value.to_integral_value() else float(value)
    if isinstance(value, dict):
        return {name: _to_json_value(item, f"{key}.{name}") for name, item in value.items()}
    if isinstance(value, list):
        pairs = bool(value) and all(isinstance(item, tuple) for item in value)  # a map
        return (
            _to_json_value(dict(value), key)
            if pairs
            else [_to_json_value(item, key) for item in value]
        )
    kind = "binary" if isinstance(value, bytes) else f"a {type(value).__name__}"
    raise InputError(
        f"{key!r} is {kind}, which JSON cannot hold: leave the column out, or write it as text"
    )


def _limit_to_microseconds(kind: Any) -> Any:
    """Return the type with times in microseconds at most: Python has no finer ones."""
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
