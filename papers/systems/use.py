"""Universal Sentence Encoder, version 5 (Cer et al., 2018), a TensorFlow SavedModel.

It encodes whole texts and no tokens.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from benchmarks.libraries import import_library
from benchmarks.quality.systems import normalize_rows
from hybrid_search.text.types import Floats

TOGETHER = 256


class UniversalSentenceEncoder:
    """The SavedModel in a folder, as the tar file of universal-sentence-encoder-large/5 unpacks."""

    def __init__(self, folder: str) -> None:
        try:
            self._model = import_library("tensorflow", "tensorflow").saved_model.load(folder)
        except OSError as error:
            raise SystemExit(
                f"{folder}: {str(error).splitlines()[0]}: give --weights,"
                " the folder of the unpacked SavedModel"
            ) from error

    def encode_texts(self, texts: Sequence[str]) -> Floats:
        """Return unit vectors ``[texts, 512]``."""
        parts = [
            np.asarray(self._model(list(texts[start : start + TOGETHER])))
            for start in range(0, len(texts), TOGETHER)
        ]
        return normalize_rows(np.concatenate(parts).astype(np.float32))
