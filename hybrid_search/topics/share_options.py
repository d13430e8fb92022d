"""The table of the parameters of shares, for Python and the command line."""

# The annotations of a table are read at run time, so they are not postponed here.
from collections.abc import Sequence
from pathlib import Path
from typing import Annotated, TypedDict

from hybrid_search.parameters import Parameter


class ShareOptions(TypedDict, total=False):
    """The calls whose shares are estimated, and the answers about them."""

    judgments: Annotated[
        Path,
        Parameter(
            "File with answers about calls, by judge --shares, which correct the shares; it need "
            "not exist.",
            default=Path("judgments.jsonl"),
        ),
    ]
    by: Annotated[
        Sequence[str],
        Parameter(
            "Metadata field: the shares among the calls with each value are estimated, too.",
            default=(),
            value="FIELD",
        ),
    ]
    date: Annotated[
        str | None,
        Parameter("Metadata field of dates by which weeks are counted.", value="FIELD"),
    ]
