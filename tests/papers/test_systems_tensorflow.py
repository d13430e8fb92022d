"""The Universal Sentence Encoder, on a small SavedModel of the same form. Needs tensorflow, which
no extra brings: pip install tensorflow-cpu.
"""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

pytestmark = pytest.mark.export

tensorflow = pytest.importorskip(
    "tensorflow", reason="tensorflow is not installed: pip install tensorflow-cpu"
)

from benchmarks.quality.systems import SpanEncoder, TextEncoder  # noqa: E402
from papers.systems import registry, use  # noqa: E402 (tensorflow is asked for first)


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> str:
    """Called with a list of texts, as the published one is; a text's vector counts its letters and
    its words.
    """

    class Counts(tensorflow.Module):  # type: ignore[misc, name-defined] # the library has no types
        @tensorflow.function(input_signature=[tensorflow.TensorSpec([None], tensorflow.string)])
        def __call__(self, texts):  # type: ignore[no-untyped-def]
            words = tensorflow.strings.split(texts).row_lengths()
            return tensorflow.cast(
                tensorflow.stack(
                    [tensorflow.strings.length(texts), tensorflow.cast(words, tensorflow.int32)],
                    axis=1,
                ),
                tensorflow.float32,
            )

    model_folder = tmp_path_factory.mktemp("use")
    tensorflow.saved_model.save(Counts(), str(model_folder))
    return str(model_folder)


def test_texts_have_unit_vectors_in_their_order(
    folder: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(use, "TOGETHER", 2)
    system = registry.load("use-v5", folder, tmp_path)
    assert isinstance(system, TextEncoder)
    assert not isinstance(system, SpanEncoder)  # it has no tokens
    by_hand = np.array([[4, 1], [3, 2], [12, 4]])  # letters and words
    vectors = system.encode_texts(["four", "a b", "a b and more"])
    assert vectors == pytest.approx(by_hand / np.linalg.norm(by_hand, axis=1, keepdims=True))


def test_a_folder_that_is_no_model_is_refused(tmp_path: Path) -> None:
    with pytest.raises(SystemExit, match="give --weights, the folder of the unpacked SavedModel"):
        registry.load("use-v5", str(tmp_path), tmp_path)
