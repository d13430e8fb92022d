"""A result as a table with one row per span, for CSV and pandas."""

from __future__ import annotations

import csv
import io
import json
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any

from hybrid_search.errors import MissingExtraError
from hybrid_search.observability.escapes import defuse_cell
from hybrid_search.search.hit import Hit, Span
from hybrid_search.system import install_command

if TYPE_CHECKING:
    from pandas import DataFrame

HIT_COLUMNS = (
    "id",
    "passage",
    "score",
    "probability",
    "bm25",
    "cosine",
    "bm25_rank",
    "cosine_rank",
)
SPAN_COLUMNS = ("turn", "speaker", "start_ms", "end_ms", "start", "end", "text")
COLUMNS = ("hit", *HIT_COLUMNS, *SPAN_COLUMNS, "span_cosine", "metadata")


def list_rows(hits: Iterable[Hit]) -> Iterator[dict[str, Any]]:
    """Yield a dict of `COLUMNS` for each span; a hit without spans gets one row."""
    for number, hit in enumerate(hits, 1):
        if not hit.spans:
            yield _build_row(number, hit, None)
        for span in hit.spans:
            yield _build_row(number, hit, span)


def _build_row(number: int, hit: Hit, span: Span | None) -> dict[str, Any]:
    return {
        "hit": number,
        **{name: getattr(hit, name) for name in HIT_COLUMNS},
        **{name: getattr(span, name, None) for name in SPAN_COLUMNS},
        "span_cosine": span.cosine if span else None,
        "metadata": hit.metadata,
    }


def format_csv(hits: Iterable[Hit]) -> str:
    """Return the rows as CSV with a header; metadata is JSON, and formulas are escaped."""
    buffer = io.StringIO()
    writer = csv.writer(buffer, lineterminator="\n")
    writer.writerow(COLUMNS)
    for row in list_rows(hits):
        values = row | {"metadata": json.dumps(dict(row["metadata"]), ensure_ascii=False)}
        writer.writerow(map(defuse_cell, values.values()))
    return buffer.getvalue()


def build_frame(hits: Sequence[Hit]) -> DataFrame:
    """Return the rows as a pandas data frame, with a column for each metadata key.

    Raises:
        MissingExtraError: If pandas is not installed.
    """
    try:
        import pandas as pd
    except ModuleNotFoundError as missing:
        raise MissingExtraError(
            f"to_pandas needs the package pandas: {install_command('pandas')}"
        ) from missing
    columns = [name for name in COLUMNS if name != "metadata"]
    keys = dict.fromkeys(f"metadata.{key}" for hit in hits for key in hit.metadata)
    rows = [_spread_metadata(row) for row in list_rows(hits)]
    return pd.DataFrame(rows, columns=[*columns, *keys])


def _spread_metadata(row: Mapping[str, Any]) -> dict[str, Any]:
    metadata = {f"metadata.{key}": value for key, value in row["metadata"].items()}
    return {**row, **metadata}
