"""What OpenSearch's script returns of a passage, computed by our own arithmetic."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

from hybrid_search.backends.server import passage_codec
from hybrid_search.text.token_codes import best_passages

Json = dict[str, Any]


def add_cosine(hit: Json, body: Mapping[str, Any]) -> Json:
    """Return a hit with the cosine of its best span, if `body` has our script."""
    if "script_fields" not in body:
        return hit
    vector = body["script_fields"]["cosine"]["script"]["params"]["vector"]
    codes = passage_codec.decode_codes(hit)
    cosines = best_passages(np.array(vector, np.float32), {0: codes}, 1).cosines
    cosine = float(cosines[0].max(initial=-1)) if cosines else -2.0
    return {**hit, "fields": {**hit["fields"], "cosine": [cosine]}}
