"""Options for those who spread an ingest over many processes or machines."""

from __future__ import annotations

from typing import Annotated

import typer

ShardName = Annotated[
    str | None,
    typer.Option(
        "--shard",
        metavar="I/N",
        help="Take the documents of shard I of N, from 0/N to N-1/N, by the hash of their ids: for N processes that write to one server. "
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
