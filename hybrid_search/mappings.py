"""What a server is told about an index of passages: ``mappings/ENGINE/passages.json``, filled in. The only module that knows where the files lie.

In those files a value ``"$name"`` is a placeholder. Everything else is sent as it stands there.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import asdict
from pathlib import Path
from typing import Any

from hybrid_search.backends.base import IndexSpec
from hybrid_search.errors import UsageError

ENGINES = ("opensearch", "elasticsearch")

_PACKAGED = Path(__file__).parent / "_mappings"
FOLDER = _PACKAGED if _PACKAGED.is_dir() else Path(__file__).parent.parent / "mappings"
"""A wheel carries the folder inside the package; in a checkout it is beside it."""


def body(engine: str, spec: IndexSpec, *, analyzer: str = "english") -> dict[str, Any]:
    """The body of the request that makes an index of passages for `spec` on a server of this kind, a new one at each call.

    `analyzer` cuts `text` into terms: one that the server has. Raises UsageError for a kind of server that there is none for.
    """
    if engine not in ENGINES:
        raise UsageError(f"there are no mappings for {engine!r}: use {' or '.join(ENGINES)}")
    template = json.loads((FOLDER / engine / "passages.json").read_text(encoding="utf-8"))
    filled: dict[str, Any] = _filled(template, {**asdict(spec), "analyzer": analyzer})
    return filled


def _filled(node: Any, values: Mapping[str, Any]) -> Any:
    """`node` with each ``"$name"`` in it replaced by the value of that name."""
    if isinstance(node, dict):
        return {key: _filled(value, values) for key, value in node.items()}
    if isinstance(node, list):
        return [_filled(value, values) for value in node]
    return values[node[1:]] if isinstance(node, str) and node.startswith("$") else node
