"""The systems that are run by torch, with small random weights of the same architectures made here:
vectors, windows, pooling, checkpoints.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest

pytestmark = [pytest.mark.export, pytest.mark.filterwarnings("ignore")]

torch = pytest.importorskip("torch", reason="the extra [export] is not installed: make test-export")
transformers = pytest.importorskip("transformers")
tokenizers = pytest.importorskip("tokenizers")

from benchmarks.quality import stsb_context  # noqa: E402 (torch is asked for first)
from benchmarks.quality.systems import SpanEncoder  # noqa: E402
from papers.mcphrasy.embedder import Embedder  # noqa: E402
from papers.mcphrasy.system import McPhraSy  # noqa: E402
from papers.systems import huggingface, registry  # noqa: E402
from papers.systems.densephrases import DensePhrases  # noqa: E402

CALL = "the refund was sent to my old card last week and nobody told me so I called again"
WORDS = CALL.split()
SHAPE = {
    "hidden_size": 32,
    "num_hidden_layers": 2,
    "num_attention_heads": 4,
    "intermediate_size": 48,
}
TEXT = "The refund was sent, to my old card"


def wordpieces(folder: Path, cased: bool = False) -> None:
    letters = [chr(code) for code in range(97, 123)]
    special = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]", ".", ","]
    vocabulary = [*special, *WORDS, "The", *letters, *[f"##{letter}" for letter in letters]]
    (folder / "vocab.txt").write_text("\n".join(dict.fromkeys(vocabulary)) + "\n")
    transformers.BertTokenizerFast(
        str(folder / "vocab.txt"), do_lower_case=not cased
    ).save_pretrained(folder)


def bert(folder: Path, positions: int = 64, cased: bool = False) -> Path:
    """What BERT, SBERT, SimCSE, SpanBERT, Phrase-BERT and joint-SB are, in either size."""
    torch.manual_seed(3)
    folder.mkdir()
    wordpieces(folder, cased)
    config = transformers.BertConfig(
        vocab_size=200, max_position_embeddings=positions, initializer_range=0.5, **SHAPE
    )
    transformers.BertModel(config).save_pretrained(folder)
    return folder


def longformer(folder: Path) -> Path:
    """Byte-level pieces, and attention to 8 neighbours."""
    torch.manual_seed(4)
    folder.mkdir()
    pieces = tokenizers.ByteLevelBPETokenizer()
    pieces.train_from_iterator(
        [" ".join(WORDS), TEXT],
        vocab_size=400,
        special_tokens=["<s>", "<pad>", "</s>", "<unk>", "<mask>"],
    )
    pieces.save_model(str(folder))
    transformers.RobertaTokenizerFast(
        str(folder / "vocab.json"), str(folder / "merges.txt")
    ).save_pretrained(folder)
    config = transformers.LongformerConfig(
        vocab_size=500,
        max_position_embeddings=130,
        attention_window=[8, 8],
        pad_token_id=1,
        **SHAPE,
    )
    transformers.LongformerModel(config).save_pretrained(folder)
    return folder


def hidden_states(folder: Path, text: str) -> tuple[Any, list[tuple[int, int]]]:
    """All hidden states and offsets of `text`, by the library alone."""
    tokenizer = transformers.AutoTokenizer.from_pretrained(folder)
    batch = tokenizer(text, return_tensors="pt", return_offsets_mapping=True)
    places = [tuple(offset) for offset in batch.pop("offset_mapping")[0].tolist()]
    with torch.no_grad():
        return transformers.AutoModel.from_pretrained(folder).eval()(**batch).last_hidden_state[
            0
        ].numpy(), places


def unit(vector: Any) -> Any:
    return vector / np.linalg.norm(vector)


@pytest.mark.parametrize("make", [bert, longformer])
def test_vectors_are_those_of_the_library(tmp_path: Path, make: Any) -> None:
    folder = make(tmp_path / "model")
    system = huggingface.HuggingFace(str(folder))
    assert isinstance(system, SpanEncoder)
    states, places = hidden_states(folder, TEXT)
    [alone, short] = system.encode_texts([TEXT, "again"])
    # special tokens too, as sentence-transformers counts
    assert alone == pytest.approx(unit(states.mean(axis=0)), abs=1e-5)
    # padded beside the longer one
    assert short == pytest.approx(unit(hidden_states(folder, "again")[0].mean(axis=0)), abs=1e-5)
    span = (TEXT.index("refund"), TEXT.index(" sent"))
    rows = [row for row, (a, b) in enumerate(places) if a < span[1] and b > span[0]]
    [span_vectors] = system.encode_spans([TEXT], [[span, (0, 0)]])
    assert span_vectors[0] == pytest.approx(unit(states[rows].mean(axis=0)), abs=1e-5)
    assert not span_vectors[1].any()


def test_the_pooling_is_the_folder_s_own_or_what_is_asked_for(tmp_path: Path) -> None:
    folder = bert(tmp_path / "model")
    first = unit(hidden_states(folder, TEXT)[0][0])
    assert huggingface.HuggingFace(str(folder), huggingface.FIRST).encode_texts([TEXT])[
        0
    ] == pytest.approx(first, abs=1e-5)
    (folder / "1_Pooling").mkdir()
    noted = folder / huggingface.POOLING
    noted.write_text(
        json.dumps(
            {
                "word_embedding_dimension": 32,
                "pooling_mode_cls_token": True,
                "pooling_mode_mean_tokens": False,
            }
        )
    )
    assert huggingface.HuggingFace(str(folder)).encode_texts([TEXT])[0] == pytest.approx(
        first, abs=1e-5
    )
    noted.write_text(json.dumps({"pooling_mode_max_tokens": True}))
    with pytest.raises(
        SystemExit,
        match="uses the pooling pooling_mode_max_tokens:"
        " only pooling_mode_mean_tokens or pooling_mode_cls_token is supported",
    ):
        huggingface.HuggingFace(str(folder))


def test_a_long_text_is_read_in_windows_and_every_token_is_there_once(tmp_path: Path) -> None:
    """Sixteen positions: fourteen tokens a window, four of them shared with the next."""
    folder = bert(tmp_path / "model", positions=16)
    system = huggingface.HuggingFace(str(folder))
    assert system.limit == 16
    text = " ".join(WORDS * 3)
    [encoding, short] = system.encode([text, "again"])
    assert [text[a:b] for a, b in encoding.offsets.tolist()] == WORDS * 3
    assert encoding.vectors.shape == (len(WORDS) * 3, 32)
    assert len(short.offsets) == 1
    states, _ = hidden_states(folder, " ".join((WORDS * 3)[:14]))
    # of the first window all but the half that it shares
    assert encoding.vectors[:12] == pytest.approx(states[1:13], abs=1e-5)
    assert system.encode_texts([text]).shape == (1, 32)


def test_longformer_reads_more_than_its_attention_is_wide(tmp_path: Path) -> None:
    system = huggingface.HuggingFace(str(longformer(tmp_path / "model")))
    assert system.limit == 128  # RoBERTa's positions begin at 2
    text = " ".join(WORDS * 2)
    [encoding] = system.encode([text])
    assert "".join(text[a:b] for a, b in encoding.offsets.tolist()) == text.replace(" ", "")


@pytest.mark.parametrize("file", ["pytorch_model.bin", "model.safetensors"])
def test_densephrases_takes_the_phrase_encoder_out_of_its_checkpoint(
    tmp_path: Path, file: str
) -> None:
    from safetensors.torch import save_file

    plain = bert(tmp_path / "plain", cased=True)
    model = transformers.BertModel.from_pretrained(plain)
    weights = {
        f"phrase_encoder.{name}": value.clone() for name, value in model.state_dict().items()
    }
    weights |= {
        f"query_start_encoder.{name}": torch.zeros_like(value)
        for name, value in model.state_dict().items()
    }
    folder = tmp_path / "densephrases"
    folder.mkdir()
    wordpieces(folder, cased=True)
    model.config.save_pretrained(folder)
    save_file(weights, folder / file) if file.endswith("safetensors") else torch.save(
        weights, folder / file
    )
    system = DensePhrases(str(folder))
    states, places = hidden_states(plain, TEXT)
    [span_vectors] = system.encode_spans([TEXT], [[(TEXT.index("refund"), TEXT.index(" sent"))]])
    first, last = (
        next(row for row, (a, b) in enumerate(places) if TEXT[a:b] == word)
        for word in ("refund", "was")
    )
    assert span_vectors[0] == pytest.approx(
        unit(np.concatenate([states[first], states[last]])), abs=1e-5
    )
    assert system.encode_texts([TEXT])[0] == pytest.approx(
        unit(np.concatenate([states[1], states[-2]])), abs=1e-5
    )


def test_weights_that_are_not_densephrases_are_refused(tmp_path: Path) -> None:
    with pytest.raises(SystemExit, match=r"no weight whose name begins with 'phrase_encoder\.'"):
        DensePhrases(str(bert(tmp_path / "model")))
    half = bert(tmp_path / "half")
    (half / "model.safetensors").unlink()
    torch.save(
        {"phrase_encoder.embeddings.word_embeddings.weight": torch.zeros(200, 32)},
        half / "pytorch_model.bin",
    )
    with pytest.raises(SystemExit, match=r"lacks \d+ weights of the phrase encoder"):
        DensePhrases(str(half))


BERTS = "bert bert-large sbert-nli sbert-msmarco phrase-bert spanbert simcse joint-sb"


@pytest.mark.parametrize("name", [*BERTS.split(), "all-minilm-l6-v2"])
def test_every_bert_of_the_papers_is_measured_from_a_folder(tmp_path: Path, name: str) -> None:
    system = registry.load(name, str(bert(tmp_path / "model")), tmp_path)
    (tmp_path / "stsb-context").mkdir()
    rows = [
        f"the card\tI called so my old {word} was sent\tmy old {word}\t{gold}"
        for word, gold in (("card", 5), ("refund", 3), ("week", 1))
    ]
    (tmp_path / stsb_context.FILE).write_text(
        "\n".join(["query\tcontext\ttarget\tscore", *rows]) + "\n"
    )
    measured = stsb_context.measure(
        system, stsb_context.read(tmp_path / stsb_context.FILE), pruned=4
    )["setups"]
    assert list(measured) == [
        "single pass",
        "sentence-wise",
        "target alone",
        "full context",
        "per n-gram, best 4",
    ]
    assert all(-1 <= scores["pearson"] <= 1 for scores in measured.values())


def test_mcphrasy_stands_on_the_models_that_its_embedder_was_trained_on(tmp_path: Path) -> None:
    """Like the paper's on SpanBERT and Phrase-BERT.

    The folders are named in the embedder's file, or are the weights if there is no embedder.
    """
    spanbert, phrasebert = bert(tmp_path / "spanbert"), bert(tmp_path / "phrase-bert")
    none, layers = (
        np.zeros(3, dtype=np.float32),
        (np.ones((2 * SHAPE["hidden_size"], 3), dtype=np.float32), np.eye(3, dtype=np.float32)),
    )
    for name, base in (("right.npz", "spanbert, phrase-bert"), ("wrong.npz", "bert")):
        Embedder(base, layers[0], none, layers[1], none, str(spanbert), str(phrasebert)).save(
            tmp_path / name
        )
    system = registry.load("mcphrasy", str(tmp_path / "right.npz"), tmp_path)
    assert isinstance(system, McPhraSy)
    assert system.store.base.name == "spanbert, phrase-bert"
    alone = registry.load("mcphrasy-mask", str(spanbert), tmp_path)
    assert isinstance(alone, McPhraSy)
    assert alone.store.base.name.startswith("spanbert, ")
    message = "trained on vectors of bert, and these are of spanbert, phrase-bert"
    with pytest.raises(SystemExit, match=message):
        registry.load("mcphrasy", str(tmp_path / "wrong.npz"), tmp_path)


def test_a_folder_that_is_not_there_is_one_line(tmp_path: Path) -> None:
    with pytest.raises(
        SystemExit, match="give --weights FOLDER, or a name that the hub has"
    ) as refused:
        registry.load("bert", str(tmp_path / "nowhere"), tmp_path)
    assert "\n" not in str(refused.value)
