"""The options of ``ingest``, shared with few or no other commands."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, cast

import typer

from hybrid_search.ingest.sources.read_options import SAME, Columns, ReadOptions, Rows
from hybrid_search.observability import logs

LOOPBACK = "127.0.0.1"

# input

Sources = Annotated[
    list[str] | None,
    typer.Argument(
        help="Files, folders and globs of JSON, CSV, Parquet and the exports of recognisers and "
        "ticket systems, .gz too; - for standard input. None: the bundled sample."
    ),
]
Sample = Annotated[
    bool,
    typer.Option("--sample", help="Ingest the bundled sample; a server takes it only by this."),
]
ColumnNames = Annotated[
    str | None,
    typer.Option(
        "--columns",
        help="KEY=COLUMN,...: which columns or dotted keys give id, text, turns, speaker, start, "
        "end or any other key.",
    ),
]
RowKind = Annotated[
    str,
    typer.Option("--rows", help="turn: make a call of all rows with the same id. Else: document."),
]
FormatName = Annotated[
    str | None,
    typer.Option("--format", help="The format of the sources. Default: recognised, file by file."),
]
EncodingName = Annotated[
    str | None,
    typer.Option(
        "--encoding", help="The encoding of the sources, as in windows-1252. Default: recognised."
    ),
]
SplitSpeakers = Annotated[
    bool,
    typer.Option("--split-speakers", help='Make turns of lines such as "Agent: Hello" of a text.'),
]
StripHtml = Annotated[
    bool, typer.Option("--strip-html", help="Take the tags of HTML out of texts.")
]
StripQuotes = Annotated[
    bool,
    typer.Option("--strip-quotes", help="Take quoted mails and signatures out of texts."),
]
Where = Annotated[
    list[str] | None,
    typer.Option(
        help="KEY=VALUE that the metadata must have, also KEY!=VALUE, KEY>=VALUE, KEY<VALUE and so "
        "on; other documents are passed over. May be repeated."
    ),
]
FromIndex = Annotated[
    str | None, typer.Option(help="Read the documents of this index of a server, instead of files.")
]
FromUrl = Annotated[
    str | None, typer.Option(help="The server of --from-index. Default: that of --url.")
]
Retry = Annotated[
    Path | None,
    typer.Option(help="A rejects file, whose documents are tried again instead of a source."),
]
Follow = Annotated[
    Path | None,
    typer.Option(
        help="Ingest each file that is moved into this folder, "
        "then move it into done/ or failed/ inside."
    ),
]

# output

Rejects = Annotated[
    Path | None,
    typer.Option(
        help="File for refused documents. Default: INDEX.rejected.jsonl beside an embedded index, "
        "else here; of a shard INDEX.I-of-N.rejected.jsonl"
    ),
]
Policy = Annotated[
    str | None,
    typer.Option(help="Windows whose vectors find passages, as in 5/1. Default: the index's."),
]
Codes = Annotated[
    int | None,
    typer.Option(
        help="Bits in which a number of a stored vector is kept: 2, 3, 4, 8. Default: the index's."
    ),
]
CheckpointFile = Annotated[
    Path | None,
    typer.Option(
        "--checkpoint",
        help="File that notes how many lines are done: "
        "the same command after a kill begins behind them.",
    ),
]
Patience = Annotated[
    float | None,
    typer.Option(
        help="Seconds to wait for a server that takes nothing, 0: a few tries. "
        "Default: HYBRID_SEARCH_PATIENCE, else 600.",
        min=0,
    ),
]

# where it runs

ShardName = Annotated[
    str | None,
    typer.Option(
        "--shard",
        metavar="I/N",
        help="Take the documents of shard I of N, from 0/N to N-1/N, by the hash of their ids: "
        "for N processes that write to one server. "
        "An embedded index takes one writer at a time: there shards run one after the other.",
    ),
]
ExecutorName = Annotated[
    str,
    typer.Option(
        "--engine", help="Where texts are encoded: local, or ray: by actors of a Ray cluster."
    ),
]
Workers = Annotated[
    int | None,
    typer.Option(
        help="Actors of --engine ray. Default: one a GPU of the cluster, else one a core.", min=1
    ),
]

# monitoring

LogFormat = Annotated[
    logs.Format, typer.Option(help="Standard error as text for people, or a JSON object a line.")
]
LogLevel = Annotated[
    logs.Level | None,
    typer.Option(help="The least that is logged. Default: warning; info with --log-format json."),
]
MetricsPort = Annotated[
    int | None,
    typer.Option(
        help="Serve /metrics for Prometheus and /healthz at this port; 0: any that is free.",
        min=0,
        max=65535,
    ),
]
MetricsHost = Annotated[str, typer.Option(help="The address to serve them at.")]
Profile = Annotated[
    bool, typer.Option("--profile", help="Say at the end where the time went, stage by stage.")
]


def parse_read_options(
    columns: str | None,
    rows: str,
    format: str | None,
    encoding: str | None,
    *,
    split_speakers: bool,
) -> ReadOptions:
    """Return the read options; without ``--columns`` every column keeps its name."""
    return ReadOptions(
        Columns.parse(columns) if columns else SAME,
        cast("Rows", rows),  # checked by ReadOptions
        format,
        encoding,
        split_speakers,
    )
