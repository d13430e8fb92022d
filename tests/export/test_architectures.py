"""Encoders of several architectures, saved as training saves them, with a head.

They are exported through the parity gate and run by the product; transformers and
sentence-transformers load the folders as they are.
"""

from __future__ import annotations

import json
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from hybrid_search.text.types import Floats

# torch's exporter warns of its own future
pytestmark = [pytest.mark.export, pytest.mark.filterwarnings("ignore")]

torch = pytest.importorskip("torch", reason="the extra [export] is not installed: make test-export")
transformers = pytest.importorskip("transformers")
tokenizers = pytest.importorskip("tokenizers")
safetensors_torch = pytest.importorskip("safetensors.torch")
sentence_transformers = pytest.importorskip("sentence_transformers")

from export import check, graph, to_onnx  # noqa: E402 (after torch)
from export.training.model import SpanEncoder  # noqa: E402
from export.training.sentence_folder import MAX_LENGTH  # noqa: E402
from hybrid_search.encoder import SHIPPED  # noqa: E402
from hybrid_search.encoder.onnx import OnnxEncoder  # noqa: E402

HIDDEN, SIZES = 32, (16, 8, 32)
SHAPE = {
    "hidden_size": HIDDEN,
    "num_hidden_layers": 2,
    "num_attention_heads": 2,
    "intermediate_size": 64,
    "max_position_embeddings": 258,
}
DISTILBERT_SHAPE = {
    "dim": HIDDEN,
    "n_layers": 2,
    "n_heads": 2,
    "hidden_dim": 64,
    "max_position_embeddings": 258,
}
ARCHITECTURES = {
    "bert": ("word pieces", SHAPE),
    "distilbert": ("word pieces", DISTILBERT_SHAPE),
    "mpnet": ("byte pairs", SHAPE),
    "roberta": ("byte pairs", SHAPE),
    "modernbert": ("byte pairs", {**SHAPE, "local_attention": 16}),
}
"""For each ``model_type`` its tokenizer and the settings that make it tiny."""

INPUTS = ["input_ids", "attention_mask"]
TEXTS = [
    "I want my money back.",
    "Unrelated, and much longer: the weather in the north was fine all week, they said.",
    "Ok.",
]


def fast_tokenizer(padding: str, **source: Any) -> Any:
    """transformers' tokenizer, with the inputs that all the models take."""
    tokenizer = transformers.PreTrainedTokenizerFast(model_input_names=INPUTS, **source)
    tokenizer.pad_token = padding
    return tokenizer


def word_pieces() -> Any:
    """The shipped tokenizer: [CLS] and [SEP] around a text."""
    return fast_tokenizer("[PAD]", tokenizer_file=str(SHIPPED / "tokenizer.json"))


def byte_pairs() -> Any:
    """A tokenizer like RoBERTa's: <s> and </s> around a text, and padding is token 1."""
    tokenizer = tokenizers.ByteLevelBPETokenizer()
    special_tokens = ["<s>", "<pad>", "</s>", "<unk>"]
    tokenizer.train_from_iterator(check.corpus()[1], special_tokens=special_tokens)
    tokenizer.post_processor = tokenizers.processors.RobertaProcessing(("</s>", 2), ("<s>", 0))
    return fast_tokenizer("<pad>", tokenizer_object=tokenizer._tokenizer)


TOKENIZERS = {"word pieces": word_pieces, "byte pairs": byte_pairs}


@pytest.fixture(scope="module", params=ARCHITECTURES)
def trained(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder as `export.train` writes it: a tiny encoder and a head, seeded random weights."""
    base, folder = tmp_path_factory.mktemp("base"), tmp_path_factory.mktemp(request.param)
    kind, shape = ARCHITECTURES[request.param]
    tokenizer = TOKENIZERS[kind]()
    tokenizer.save_pretrained(base)
    torch.manual_seed(7)
    config = transformers.AutoConfig.for_model(
        request.param, vocab_size=len(tokenizer), pad_token_id=tokenizer.pad_token_id, **shape
    )
    body = transformers.AutoModel.from_config(config)
    head = torch.linalg.qr(torch.randn(HIDDEN, HIDDEN))[0]
    SpanEncoder(body, head).save(folder, base)
    return folder


@pytest.fixture(scope="module")
def exported(trained: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The model folder of `trained`, which the parity gate let pass."""
    folder = tmp_path_factory.mktemp("exported")
    source = to_onnx.Source(str(trained), "tiny", "Apache-2.0", "random weights")
    to_onnx.build(source, folder, "int8", MAX_LENGTH, "turn", sizes=SIZES)
    return folder


@pytest.fixture(scope="module")
def in_float32(trained: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The model folder of `trained` in float32."""
    folder = tmp_path_factory.mktemp("float32")
    source = to_onnx.Source(str(trained), "tiny", "Apache-2.0", "random weights")
    to_onnx.build(source, folder, "float32", MAX_LENGTH, "turn", sizes=SIZES)
    return folder


def product_means(folder: Path) -> Floats:
    """The product's vectors of whole texts, ``[texts, numbers]``: the means of their tokens."""
    encodings = OnnxEncoder(folder, "cpu").encode(TEXTS)
    return np.array([encoding.vectors.mean(axis=0) for encoding in encodings])


def assert_same(vectors: Floats, expected: Floats) -> None:
    """Compare vectors by the norm of their differences.

    Special tokens in the mean move them by 0.06 and more.
    """
    differences = np.linalg.norm(vectors - expected, axis=1) / np.linalg.norm(expected, axis=1)
    assert differences.max() < 0.001


def test_every_architecture_is_exported_with_its_head_and_runs_in_every_precision(
    exported: Path,
) -> None:
    settings = json.loads((exported / "encoder.json").read_text())
    assert settings["parity"].keys() == {"int8", "float16"}
    for precision in settings["parity"]:
        encoder = OnnxEncoder(exported, "cpu", precision=precision)
        assert (encoder.info.dimension, encoder.info.sizes) == (HIDDEN, SIZES)
        assert encoder.encode(TEXTS)[0].vectors.shape[1] == HIDDEN


def test_transformers_loads_a_trained_folder_and_the_head_times_its_mean_is_the_products(
    trained: Path, in_float32: Path
) -> None:
    tokenizer = transformers.AutoTokenizer.from_pretrained(trained)
    model = transformers.AutoModel.from_pretrained(trained)
    head = safetensors_torch.load_file(trained / "head.safetensors")["weight"]
    means = []
    for text in TEXTS:
        inputs = tokenizer(text, return_tensors="pt", return_special_tokens_mask=True)
        is_plain = inputs.pop("special_tokens_mask")[0] == 0
        with torch.no_grad():
            hidden = model(**inputs).last_hidden_state[0, is_plain]
        means.append((hidden.mean(dim=0) @ head.T).numpy())
    assert_same(np.array(means), product_means(in_float32))


def test_sentence_transformers_gives_the_products_vectors_of_a_trained_folder(
    trained: Path, in_float32: Path
) -> None:
    load = partial(sentence_transformers.SentenceTransformer, str(trained), device="cpu")
    vectors = load().encode(TEXTS)
    assert_same(vectors, product_means(in_float32))
    np.testing.assert_array_equal(load(truncate_dim=8).encode(TEXTS), vectors[:, :8])


def test_an_architecture_that_optimum_does_not_know_is_refused(tmp_path: Path) -> None:
    config = transformers.GPT2Config(vocab_size=8, n_embd=8, n_layer=1, n_head=1)
    model = graph.TokenVectors(transformers.GPT2Model(config))
    with pytest.raises(SystemExit, match=r"exports no text encoders of type gpt2; .*bert, "):
        graph.write(model, tmp_path / "model.onnx")
