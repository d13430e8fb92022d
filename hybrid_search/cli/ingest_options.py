"""The options of ``ingest``, shared with few or no other commands."""

# The annotations of a table are read at run time, so they are not postponed here.
import math
from pathlib import Path
from typing import Annotated, TypedDict, cast

import typer

from hybrid_search.cli import options
from hybrid_search.config import Patience
from hybrid_search.ingest.options import ROWS, SPLIT_SPEAKERS
from hybrid_search.ingest.sources.read_options import ReadOptions, Rows, parse_columns
from hybrid_search.parameters import Parameter

Sources = Annotated[
    list[str] | None,
    typer.Argument(
        help="Files, folders and globs of JSON, CSV, Parquet and the exports of recognisers and "
        "ticket systems, .gz too; - for standard input. None: the bundled sample."
    ),
]


class SourceOptions(TypedDict, total=False):
    """Sources in place of files."""

    sample: Annotated[
        bool, Parameter("Ingest the bundled sample; a server takes it only by this.", default=False)
    ]
    from_index: Annotated[
        str | None, Parameter("Read the documents of this index of a server, instead of files.")
    ]
    from_url: Annotated[
        str | None,
        Parameter("The server of --from-index. Default: that of --url.", value="URL"),
    ]
    retry: Annotated[
        Path | None,
        Parameter("A rejects file, whose documents are tried again instead of a source."),
    ]
    follow: Annotated[
        Path | None,
        Parameter(
            "Ingest each file that is moved into this folder, then move it into done/ or failed/ "
            "inside.",
            value="FOLDER",
        ),
    ]


class Reading(TypedDict, total=False):
    """How sources are read."""

    format: Annotated[
        str | None, Parameter("The format of the sources. Default: recognised, file by file.")
    ]
    encoding: Annotated[
        str | None,
        Parameter("The encoding of the sources, as in windows-1252. Default: recognised."),
    ]
    columns: Annotated[
        str | None,
        Parameter(
            "KEY=COLUMN,...: which columns or dotted keys give id, text, turns, speaker, start, "
            "end or any other key.",
            value="KEY=COLUMN",
        ),
    ]
    rows: Annotated[str, ROWS]
    split_speakers: Annotated[bool, SPLIT_SPEAKERS]


class Workers(TypedDict, total=False):
    """Which documents a process takes, and how many actors work on them."""

    shard: Annotated[
        str | None,
        Parameter(
            "Take the documents of shard I of N, from 0/N to N-1/N, by the hash of their ids: for "
            "N processes that write to one server. An embedded index takes one writer at a time: "
            "there shards run one after the other.",
            value="I/N",
        ),
    ]
    workers: Annotated[
        int | None,
        Parameter(
            "Actors of --engine ray. Default: one a GPU of the cluster, else one a core.",
            limits=(1, math.inf),
        ),
    ]


class Watching(TypedDict, total=False):
    """How a run is watched."""

    metrics_port: Annotated[
        int | None,
        Parameter(
            "Serve /metrics for Prometheus at this port; 0: any that is free.", limits=(0, 65535)
        ),
    ]
    metrics_host: Annotated[
        str, Parameter("The address to serve them at.", default="127.0.0.1", value="HOST")
    ]


class IngestPlace(options.NewPlace, total=False):
    """Where documents are written, and how long to wait for a server."""

    patience: Patience


CheckpointFile = Annotated[
    Path | None,
    typer.Option(
        help="File that notes how many lines are done: "
        "the same command after a kill begins behind them."
    ),
]
Executor = Annotated[
    str, typer.Option(help="Where texts are encoded: local, or ray: by actors of a Ray cluster.")
]


def parse_reading(reading: Reading) -> ReadOptions:
    """Return the read options; without ``--columns`` every column keeps its name."""
    columns = reading["columns"]
    return ReadOptions(
        parse_columns(columns) if columns else {},
        cast("Rows", reading["rows"]),  # checked by ReadOptions
        reading["format"],
        reading["encoding"],
        reading["split_speakers"],
    )
