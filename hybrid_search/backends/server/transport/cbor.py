"""Answers in CBOR (RFC 8949): 500 passages with their token codes are there a fifth sooner than in
JSON, whose strings have to be searched for quotes on both sides.
"""

from __future__ import annotations

from typing import Any

import cbor2

CBOR = "application/cbor"


def decode_cbor(data: bytes) -> Any:
    """What `data` says. Raises ValueError for what is no CBOR."""
    try:
        return cbor2.loads(data)
    except cbor2.CBORDecodeError as error:  # some of these are ValueErrors, some not
        raise ValueError(f"no CBOR: {error}") from error
