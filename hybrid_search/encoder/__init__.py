"""Encoders by name of their folder.

ONNX Runtime is imported when the first one is loaded, not before.
"""

from __future__ import annotations

from functools import lru_cache
from pathlib import Path

from hybrid_search.encoder.base import Encoder, EncoderInfo
from hybrid_search.encoder.model_folder import SHIPPED
from hybrid_search.encoder.truncated import truncate_encoder

__all__ = ["SHIPPED", "Encoder", "EncoderInfo", "load", "truncate_encoder"]


@lru_cache(maxsize=4)
def load(folder: Path = SHIPPED, device: str = "auto", precision: str = "auto") -> Encoder:
    """The encoder of the model folder at `folder`, loaded once a process; its vectors are whole
    (`sized` cuts them).

    Raises ModelError, DeviceError, UsageError, MissingExtraError.
    """
    from hybrid_search.encoder.onnx import OnnxEncoder

    return OnnxEncoder(folder, device, precision=precision)
