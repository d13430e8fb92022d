"""Lists of names in messages: all names if there are few, else those most like a given one."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from difflib import get_close_matches

from hybrid_search.errors import shorten

ALL_NAMES = 20
"""Up to this many names are listed in full."""
CLOSE_NAMES = 5
"""Number of names listed if there are more than `ALL_NAMES`."""
COMPARED_NAMES = 10_000
"""Maximum number of names compared, which takes a tenth of a second."""


def list_names(names: Collection[str], word: str = "") -> str:
    """Return `names` for a message; if there are many, only those like `word` and a count.

    Without a similar name, the first names are listed.
    """
    if len(names) <= ALL_NAMES:
        return ", ".join(map(shorten, names)) or "none"
    ordered = sorted(names)
    close = get_close_matches(word, ordered[:COMPARED_NAMES], CLOSE_NAMES)
    shown = close or ordered[:CLOSE_NAMES]
    return f"{', '.join(map(shorten, shown))} and {len(ordered) - len(shown):,} more"


def describe_fields(fields: Mapping[str, str], name: str) -> str:
    """Return the end of a message about a field that an index lacks, or that has no plain values.

    `fields` maps each field of the index to its type.
    """
    usable = sorted(field for field, kind in fields.items() if kind != "object")
    return f"the index has no such field. Its fields: {list_names(usable, name)}"
