"""The files by which sentence-transformers loads a trained folder as it is.

Its mean counts the special tokens around a text, and ours does not. So its module of word weights
comes first, in which these weigh nothing and all other tokens weigh one; the head follows the mean.
All modules are sentence-transformers' own: it runs no code from the folder.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from safetensors.torch import save_file
from tokenizers import Tokenizer
from torch import Tensor

MAX_LENGTH = 256
"""Tokens that a model reads at once, special tokens included. sentence-transformers drops the rest
of a text, and the product reads it in further windows.
"""

TRANSFORMER, WEIGHTS, POOLING, DENSE = "", "1_WordWeights", "2_Pooling", "3_Dense"


def write(folder: Path, hidden: int, head: Tensor | None) -> None:
    """Write the files into `folder`, which has an encoder and its tokenizer.json.

    The encoder's vectors have `hidden` numbers; `head` is a matrix ``[dimension, hidden]``.
    """
    modules = {"Transformer": TRANSFORMER, "WordWeights": WEIGHTS, "Pooling": POOLING}
    _write_json(folder / "sentence_bert_config.json", {"max_seq_length": MAX_LENGTH})
    _write_json(folder / WEIGHTS / "config.json", _word_weights(folder / "tokenizer.json"))
    pooling = {"word_embedding_dimension": hidden, "pooling_mode_mean_tokens": True}
    _write_json(folder / POOLING / "config.json", pooling)
    if head is not None:
        modules["Dense"] = DENSE
        _write_dense(folder / DENSE, head)
    _write_json(
        folder / "modules.json",
        [
            {
                "idx": number,
                "name": str(number),
                "path": path,
                "type": f"sentence_transformers.models.{module}",
            }
            for number, (module, path) in enumerate(modules.items())
        ],
    )


def _word_weights(tokenizer_file: Path) -> dict[str, Any]:
    """Return the settings of the module that weighs the special tokens around a text with 0."""
    tokenizer = Tokenizer.from_file(str(tokenizer_file))
    tokenizer.no_padding()  # the empty text is to become the special tokens alone
    vocabulary = tokenizer.get_vocab(with_added_tokens=True)
    tokens = [""] * (max(vocabulary.values()) + 1)
    for token, number in vocabulary.items():
        tokens[number] = token
    special_tokens = tokenizer.encode("", add_special_tokens=True).tokens
    weights = dict.fromkeys(special_tokens, 0.0)
    return {"vocab": tokens, "word_weights": weights, "unknown_word_weight": 1.0}


def _write_dense(folder: Path, head: Tensor) -> None:
    settings = {
        "in_features": head.shape[1],
        "out_features": head.shape[0],
        "bias": False,
        "activation_function": "torch.nn.modules.linear.Identity",
    }
    _write_json(folder / "config.json", settings)
    save_file({"linear.weight": head}, folder / "model.safetensors")


def _write_json(path: Path, content: dict[str, Any] | Sequence[Any]) -> None:
    path.parent.mkdir(exist_ok=True)
    path.write_text(json.dumps(content, ensure_ascii=False) + "\n", encoding="utf-8")
