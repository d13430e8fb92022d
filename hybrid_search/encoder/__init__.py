"""Encoders: from texts to one vector per token.

Input: texts, which are turns of passages or a phrase. Output: an `Encoding` for each, the token
vectors with their offsets, and the `EncoderInfo` that an index records. ONNX Runtime is imported
when the first encoder is loaded.

Modules in reading order: `base` (the `Encoder` protocol), `model_folder` (the content of a model
folder), `installed_models` (model folders by name), `prior_file` (the model's span prior),
`devices` and `precisions` (where the model runs, and which graph), `onnx` (the encoder),
`truncated` (smaller vectors) and `passage_codes` (passages through an encoder).

Another runtime is a new module beside `onnx` that implements `Encoder`; a new precision goes into
`precisions.RUNNABLE`, a new device into `devices.PROVIDERS`.
"""

from __future__ import annotations

from functools import lru_cache
from pathlib import Path

from hybrid_search import config
from hybrid_search.encoder.base import Encoder, EncoderInfo
from hybrid_search.encoder.installed_models import find_model, list_models
from hybrid_search.encoder.model_folder import SHIPPED
from hybrid_search.encoder.truncated import truncate_encoder

__all__ = [
    "SHIPPED",
    "Encoder",
    "EncoderInfo",
    "find_model",
    "list_models",
    "load",
    "truncate_encoder",
]

config.disable_telemetry()  # repeated here in case another distribution replaced our root module


@lru_cache(maxsize=4)
def load(folder: Path = SHIPPED, device: str = "auto", precision: str = "auto") -> Encoder:
    """Return the encoder of the model folder at `folder`, loaded once per process.

    Its vectors have the model's full dimension; use `truncate_encoder` for smaller ones. Raises
    ModelError, DeviceError, UsageError and MissingExtraError, as `OnnxEncoder` does.
    """
    from hybrid_search.encoder.onnx import OnnxEncoder

    return OnnxEncoder(folder, device, precision=precision)
