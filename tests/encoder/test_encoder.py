"""The shipped encoder: golden numbers, batches, overlong texts, damaged folders, devices."""

from __future__ import annotations

import errno
import hashlib
import io
import json
import re
import sys
from pathlib import Path
from typing import Any

import numpy as np
import onnxruntime
import pytest

from hybrid_search import best_spans, connect, encoder
from hybrid_search.encoder import SHIPPED, Encoder, devices, onnx
from hybrid_search.encoder.devices import CPU, CUDA, TENSORRT, Device
from hybrid_search.encoder.model_folder import read
from hybrid_search.encoder.onnx import OnnxEncoder
from hybrid_search.encoder.precisions import graph_name
from hybrid_search.errors import (
    DeviceError,
    HybridSearchError,
    MissingExtraError,
    ModelError,
    UsageError,
)
from hybrid_search.search import phrase_vector
from hybrid_search.text import spans
from hybrid_search.text.types import Encoding, Floats
from hybrid_search.text.words import words

REFUND = "I would like a refund for my order."
RIVER = "The river bank was muddy."

GOLDEN = [
    (REFUND, "und", [0.2598, 0.3631, 0.0105, -0.0022], 8.65),
    (REFUND, "order", [0.2267, 0.1848, -0.0421, 0.0222], 8.57),
    (RIVER, "river", [0.0823, -0.0518, 0.0225, 0.0887], 5.86),
    (RIVER, "muddy", [-0.0675, -0.1139, -0.1382, -0.1040], 8.14),
]
"""Text, token, the first components of its unit vector and its norm, by the float16 graph.

The int8 graph was off by at most .01 and 1%, whatever else was in the batch.
"""

SIMILAR = [
    ("a refund", "money back", 0.868),
    ("a refund", "opening hours", 0.090),
    ("cancel my account", "close my account", 0.920),
    ("the river bank", "the central bank", 0.499),
    ("not working", "broken", 0.531),
]
"""Cosines of two phrases by the float16 graph; int8 was off by at most .011."""

GRAPH = graph_name("int8")
FILES = [
    "int8.onnx",
    "int8-unsigned.onnx",
    "float16.onnx",
    "weights.data",
    "tokenizer.json",
    "config.json",
    "calibration.json",
    "boundaries.npz",
    "codebook.npz",
    "encoder.json",
]


def row_cosines(first: Floats, second: Floats) -> Floats:
    """Return the cosine of each row of one array with the same row of the other."""
    values: Floats = (
        (first * second).sum(axis=1)
        / np.linalg.norm(first, axis=1)
        / np.linalg.norm(second, axis=1)
    )
    return values


CARD_TOKENS = 4096
"""Padded tokens of a batch."""


def turn_texts(calls: list[dict[str, Any]], count: int) -> list[str]:
    return [turn["text"] for call in calls for turn in call["turns"]][:count]


def has_same_vectors(first: list[Encoding], second: list[Encoding]) -> bool:
    return all(np.array_equal(a.vectors, b.vectors) for a, b in zip(first, second, strict=True))


@pytest.mark.parametrize("neighbour_count", [0, 1, 40])
@pytest.mark.parametrize(("text", "token", "components", "norm"), GOLDEN)
def test_golden_numbers_hold_alone_and_in_a_batch(
    real_encoder: Encoder,
    calls: list[dict[str, Any]],
    text: str,
    token: str,
    components: list[float],
    norm: float,
    neighbour_count: int,
) -> None:
    encoding = real_encoder.encode([text, *turn_texts(calls, neighbour_count)])[0]
    (token_index,) = np.flatnonzero(encoding.offsets[:, 0] == text.index(token))
    vector = encoding.vectors[token_index]
    assert np.linalg.norm(vector) == pytest.approx(norm, rel=0.04)
    assert (vector[:4] / np.linalg.norm(vector)).tolist() == pytest.approx(components, abs=0.02)


@pytest.mark.parametrize(("first", "second", "cosine"), SIMILAR)
def test_golden_cosines_of_phrases_hold(
    real_encoder: Encoder, first: str, second: str, cosine: float
) -> None:
    assert phrase_vector.similarity(real_encoder, first, second) == pytest.approx(cosine, abs=0.015)


def test_the_encoder_is_what_its_folder_says(real_encoder: Encoder) -> None:
    saved_settings = json.loads((SHIPPED / "encoder.json").read_text())
    full_encoder = encoder.load(device="cpu")
    info = full_encoder.info
    assert (info.name, info.dimension, info.fingerprint) == (
        saved_settings["name"],
        saved_settings["dimension"],
        saved_settings["fingerprint"],
    )
    assert info.precision == "int8"
    assert real_encoder.info.dimension == (saved_settings.get("sizes") or [info.dimension])[0]
    assert full_encoder.encode(["hello"])[0].vectors.shape == (1, saved_settings["dimension"])


def test_the_encoder_is_loaded_once() -> None:
    assert encoder.load(device="cpu") is encoder.load(device="cpu")


def test_the_provider_is_the_one_that_was_asked_for() -> None:
    loaded = encoder.load(device="cpu")
    assert isinstance(loaded, OnnxEncoder)
    assert loaded.provider == "CPUExecutionProvider"


def test_tokens_name_the_characters_that_they_were_made_of(real_encoder: Encoder) -> None:
    text = "Hé, 😀 won’t refund!"
    tokens = [text[start:end] for start, end in real_encoder.encode([text])[0].offsets]
    assert tokens == ["Hé", ",", "😀", "won", "’", "t", "ref", "und", "!"]


def test_an_empty_text_has_no_tokens(real_encoder: Encoder) -> None:
    for encoding in real_encoder.encode(["", "  \n"]):
        assert encoding.vectors.shape == (0, real_encoder.info.dimension)
        assert encoding.offsets.shape == (0, 2)


def test_no_texts_have_no_encodings(real_encoder: Encoder) -> None:
    assert real_encoder.encode([]) == []


def test_each_text_of_a_batch_gets_its_own_tokens(
    real_encoder: Encoder, calls: list[dict[str, Any]]
) -> None:
    texts = ["", *turn_texts(calls, 25), "ok", "word " * 300, ""]
    for text, encoding in zip(texts, real_encoder.encode(texts), strict=True):
        assert np.array_equal(encoding.offsets, real_encoder.encode([text])[0].offsets)
        assert len(encoding.vectors) == len(encoding.offsets)


def test_the_same_batch_gives_the_same_bits(
    real_encoder: Encoder, calls: list[dict[str, Any]]
) -> None:
    texts = turn_texts(calls, 120)
    assert has_same_vectors(real_encoder.encode(texts), real_encoder.encode(texts))


def test_the_order_within_a_batch_changes_no_bit(
    real_encoder: Encoder, calls: list[dict[str, Any]]
) -> None:
    texts = turn_texts(calls, 12)  # one batch: at most 40 tokens each, under 2,048 with padding
    order = np.random.default_rng(1).permutation(len(texts)).tolist()
    base = real_encoder.encode(texts)
    assert has_same_vectors(
        real_encoder.encode([texts[number] for number in order]), [base[number] for number in order]
    )


def test_what_is_beside_a_text_in_its_batch_moves_its_cosines_by_the_noise_of_int8(
    real_encoder: Encoder, calls: list[dict[str, Any]]
) -> None:
    # The int8 graph scales its activations by the largest of the whole batch, so a token's vector
    # depends on what is beside it: token by token the cosine between the two was .998 on average
    # and .992 at worst, which says little. What a user sees is a span's cosine with a phrase. Alone
    # against in a batch it differed by .004 (root mean square; .022 at worst), and by .006 from the
    # model in float32: a batch adds no error of another size. Of float32 itself not one bit
    # changed. Twice the measured values are allowed.
    texts = turn_texts(calls, 120)
    together, alone = real_encoder.encode(texts), [real_encoder.encode([text])[0] for text in texts]
    differences, best = [], []
    for query in [
        phrase_vector.query_vector(real_encoder, phrase_text)
        for phrase_text in ("refund request", "speak to a manager", "thank you")
    ]:
        for text, batched, single in zip(texts, together, alone, strict=True):
            a, b = span_cosines(query, text, batched), span_cosines(query, text, single)
            differences.append(a - b)
            best.append(abs(a.max() - b.max()))
    assert np.sqrt(np.mean(np.concatenate(differences) ** 2)) < 0.008
    assert np.mean(best) < 0.007


def span_cosines(query: Floats, text: str, encoding: Encoding) -> Floats:
    word_bounds = words(text)
    tokens, counts = (
        spans.token_bounds(encoding.offsets, word_bounds),
        spans.counts(len(word_bounds), len(word_bounds)),
    )
    inverse = spans.inverse(spans.norms(encoding.vectors, tokens, counts))
    sums = spans.running_sums(encoding.vectors @ query[:, None])[:, 0]
    products = sums[tokens[:, 1]] - sums[tokens[:, 0]]
    return spans.cosines(products, np.arange(len(counts)), counts, inverse)


def thousand_words(calls: list[dict[str, Any]]) -> str:
    return " ".join(" ".join(turn_texts(calls, 200)).split()[:1000])


def test_an_over_long_text_has_one_vector_a_token_and_true_offsets(
    real_encoder: Encoder, calls: list[dict[str, Any]]
) -> None:
    text = thousand_words(calls)
    (encoding,) = real_encoder.encode([text])
    assert len(encoding.vectors) == len(encoding.offsets) > 1000
    starts, ends = encoding.offsets.T
    assert np.all(starts < ends) and np.all(ends[:-1] <= starts[1:])
    covered = "".join(text[start:end] for start, end in encoding.offsets)
    # no character is lost between two windows, none is there twice
    assert covered == "".join(text.split())
    lengths = np.linalg.norm(encoding.vectors, axis=1)
    # every row was written: .9 to 13 was measured
    assert lengths.min() > 0.5 and lengths.max() < 30


def test_an_over_long_text_is_read_in_windows_from_its_first_token_to_its_last(
    real_encoder: Encoder, calls: list[dict[str, Any]]
) -> None:
    text = thousand_words(calls)
    (encoding,) = real_encoder.encode([text])
    offsets = encoding.offsets
    # Windows of 256 - 2 special tokens that share 32 begin at every 222nd token; each half of what
    # is shared comes from the nearer one.
    last = 222 * -(-(len(offsets) - 254) // 222)
    first_window, last_window = real_encoder.encode(
        [text[: offsets[253, 1]], text[offsets[last, 0] :]]
    )
    assert row_cosines(encoding.vectors[: 254 - 16], first_window.vectors[: 254 - 16]).mean() > 0.95
    assert row_cosines(encoding.vectors[last + 16 :], last_window.vectors[16:]).mean() > 0.95


@pytest.mark.parametrize("tokens", [1, 253, 254, 255, 476, 477])
def test_texts_about_as_long_as_a_window_lose_no_token(real_encoder: Encoder, tokens: int) -> None:
    # 254 fit into one window; two of them, sharing 32, hold 254 + 222 = 476
    (encoding,) = real_encoder.encode(["word " * tokens])
    assert encoding.offsets.tolist() == [[5 * number, 5 * number + 4] for number in range(tokens)]
    assert np.linalg.norm(encoding.vectors, axis=1).min() > 0.5


def test_what_is_no_text_is_a_type_error(real_encoder: Encoder) -> None:
    with pytest.raises(TypeError):
        real_encoder.encode([3])  # type: ignore[list-item]


def copy_model_folder(folder: Path, **contents: bytes) -> Path:
    """Make a model folder of the shipped files, some with other bytes: ``weights_data=b"..."``."""
    folder.mkdir()
    for name in FILES:
        content = contents.get(re.sub(r"\W", "_", name))
        if content is None:
            (folder / name).symlink_to(SHIPPED / name)
        else:
            (folder / name).write_bytes(content)
    return folder


def settings_json(**changed: Any) -> bytes:
    """Return ``encoder.json`` with some settings changed; None leaves one out."""
    values = {**json.loads((SHIPPED / "encoder.json").read_text()), **changed}
    return json.dumps({name: value for name, value in values.items() if value is not None}).encode()


def refusal_message(folder: Path) -> str:
    with pytest.raises(ModelError) as error:
        OnnxEncoder(folder, "cpu")
    return str(error.value)


def test_a_whole_copy_of_the_folder_works(tmp_path: Path, real_encoder: Encoder) -> None:
    encodings = encoder.truncate_encoder(
        OnnxEncoder(copy_model_folder(tmp_path / "model"), "cpu"), None
    ).encode([REFUND])
    assert has_same_vectors(encodings, real_encoder.encode([REFUND]))


def test_a_folder_that_is_not_there_is_named(tmp_path: Path) -> None:
    message = refusal_message(tmp_path / "nowhere")
    assert str(tmp_path / "nowhere") in message
    assert "encoder.json is missing" in message


@pytest.mark.parametrize("name", FILES)
def test_a_missing_file_is_named(tmp_path: Path, name: str) -> None:
    folder = copy_model_folder(tmp_path / "model")
    (folder / name).unlink()
    assert f"{name} is missing" in refusal_message(folder)


def test_a_damaged_model_is_named_with_both_digests(tmp_path: Path) -> None:
    data = bytearray((SHIPPED / "weights.data").read_bytes())
    data[-1] ^= 1
    message = refusal_message(copy_model_folder(tmp_path / "model", weights_data=bytes(data)))
    assert "weights.data is damaged" in message
    assert hashlib.sha256(data).hexdigest()[:12] in message
    assert read(SHIPPED).sha256["weights.data"][:12] in message


@pytest.mark.parametrize("name", ["encoder.json", "weights.data", "calibration.json"])
def test_a_file_that_this_user_may_not_read_is_named(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, name: str
) -> None:
    open_file = io.open

    def refuse(file: Any, *arguments: Any, **options: Any) -> Any:
        if Path(file).name == name:  # permissions do not bind a superuser, who may run this
            raise PermissionError(errno.EACCES, "Permission denied", file)
        return open_file(file, *arguments, **options)

    monkeypatch.setattr(io, "open", refuse)
    message = refusal_message(copy_model_folder(tmp_path / "model"))
    assert f"{name} cannot be read (Permission denied)" in message
    assert "let this user read the model folder" in message


def test_a_changed_calibration_is_named(tmp_path: Path) -> None:
    changed = b'{"precisions": {"int8": {"slope": 40}}}'
    message = refusal_message(copy_model_folder(tmp_path / "model", calibration_json=changed))
    assert "calibration.json is damaged" in message
    assert message.endswith("Copy it again from where the model came from.")


def test_the_calibration_of_a_model_that_was_made_without_one_is_not_compared(
    tmp_path: Path,
) -> None:
    digests = {
        name: digest
        for name, digest in read(SHIPPED).sha256.items()
        if name not in ("calibration.json", "boundaries.npz", "codebook.npz", "config.json")
    }
    changed = {"calibration_json": b"{}", "encoder_json": settings_json(sha256=digests)}
    assert read(copy_model_folder(tmp_path / "model", **changed)).sha256 == digests


def test_a_file_whose_name_in_the_settings_is_damaged_is_missed(tmp_path: Path) -> None:
    digests = {
        name.replace("boundaries", "boundqries"): digest
        for name, digest in read(SHIPPED).sha256.items()
    }
    changed = settings_json(sha256=digests)
    message = refusal_message(copy_model_folder(tmp_path / "model", encoder_json=changed))
    assert "boundqries.npz is missing" in message


def test_a_file_that_the_settings_do_not_vouch_for_is_refused(tmp_path: Path) -> None:
    digests = {"float16.onnx": read(SHIPPED).sha256["float16.onnx"]}
    assert "tokenizer.json is damaged" in (
        message := refusal_message(
            copy_model_folder(tmp_path / "model", encoder_json=settings_json(sha256=digests))
        )
    )
    assert "encoder.json says nothing" in message


@pytest.mark.parametrize("name", [GRAPH, "tokenizer.json"])
def test_a_file_that_is_none_of_its_kind_is_named_whatever_its_digest(
    tmp_path: Path, name: str
) -> None:
    digests = {**read(SHIPPED).sha256, name: hashlib.sha256(b"nonsense").hexdigest()}
    changed = {re.sub(r"\W", "_", name): b"nonsense", "encoder_json": settings_json(sha256=digests)}
    assert f"{name} cannot be" in refusal_message(copy_model_folder(tmp_path / "model", **changed))


@pytest.mark.parametrize("content", [b"", b"{", b"[]", b"\xff\xfe", b"null"])
def test_settings_that_are_not_a_json_object_are_named(tmp_path: Path, content: bytes) -> None:
    assert "encoder.json: the file " in refusal_message(
        copy_model_folder(tmp_path / "model", encoder_json=content)
    )


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("schema", 1),
        ("pooling", "cls"),
        ("context", "document"),
        ("dimension", 0),
        ("max_length", "long"),
        ("fingerprint", ""),
    ],
)
def test_a_setting_that_is_not_understood_is_named_with_its_value(
    tmp_path: Path, name: str, value: object
) -> None:
    message = refusal_message(
        copy_model_folder(tmp_path / "model", encoder_json=settings_json(**{name: value}))
    )
    assert f"encoder.json: {name} must " in message
    assert f"(found {value!r})" in message


def test_a_setting_that_is_missing_is_named(tmp_path: Path) -> None:
    assert "encoder.json: pooling is missing" in refusal_message(
        copy_model_folder(tmp_path / "model", encoder_json=settings_json(pooling=None))
    )


def test_a_setting_that_is_not_known_is_no_error(tmp_path: Path) -> None:
    assert (
        OnnxEncoder(
            copy_model_folder(tmp_path / "model", encoder_json=settings_json(colour="blue")), "cpu"
        ).info
        == encoder.load(device="cpu").info
    )


def test_a_damaged_folder_is_an_error_where_it_is_used(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("HYBRID_SEARCH_MODEL", str(tmp_path / "nowhere"))
    with pytest.raises(ModelError, match="nowhere"):
        best_spans("refund", "I want a refund")


@pytest.mark.parametrize(
    ("device", "offered", "expected"),
    [
        ("cpu", [CPU], Device(CPU)),
        ("cpu", [CUDA, CPU], Device(CPU)),
        ("cuda", [CUDA, CPU], Device(CUDA)),
        ("cuda:1", [CUDA, CPU], Device(CUDA, 1)),
        ("tensorrt:12", [TENSORRT, CUDA, CPU], Device(TENSORRT, 12)),
        ("auto", [CUDA, CPU], Device(CUDA)),
        ("auto", [CPU], Device(CPU)),
    ],
)
def test_a_device_is_taken_where_it_is_offered(
    device: str, offered: list[str], expected: Device
) -> None:
    assert Device.choose(device, offered) == expected


@pytest.mark.parametrize("device", ["cuda", "tensorrt"])
def test_a_device_that_is_not_offered_is_refused_with_both(device: str) -> None:
    with pytest.raises(DeviceError, match=f"{device!r}.*offers only {CPU}"):
        Device.choose(device, [CPU])


@pytest.mark.parametrize(
    "device",
    ["tpu", "CUDA", "", "cuda:", "cuda:x", "cuda:-1", "cuda:²", "cpu:0", "auto:0", "cuda:0,cuda:1"],
)
def test_an_unknown_device_is_refused_with_those_that_are_known(device: str) -> None:
    message = f"{device!r} is not one of auto, cpu, cuda, tensorrt, nor a card with its number"
    with pytest.raises(UsageError, match=message):
        Device.choose(device, [CUDA, CPU])


def test_the_device_that_runs_must_be_the_one_that_was_asked_for() -> None:
    devices.confirm(CUDA, [CUDA, CPU])
    with pytest.raises(DeviceError, match=f"{CUDA} was requested, but {CPU} runs"):
        devices.confirm(CUDA, [CPU])
    with pytest.raises(DeviceError, match="nothing runs"):
        devices.confirm(CUDA, [])


def test_a_card_is_given_to_the_runtime_by_its_number_and_a_batch_that_fills_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, calls: list[dict[str, Any]]
) -> None:
    """No card is needed: the runtime claims to have one, and runs on the CPU in small batches."""
    monkeypatch.setattr(onnx, "CARD_TOKENS", CARD_TOKENS)
    requested_providers: list[Any] = []
    rows: list[int] = []
    make_session = onnxruntime.InferenceSession

    class Card:
        def __init__(self, path: str, options: Any, providers: list[Any]) -> None:
            requested_providers.append(providers)
            self.session = make_session(path, options, providers=[CPU])
            self.get_outputs = self.session.get_outputs
            self.get_providers = lambda: [providers[0][0], CPU]

        def run(self, names: list[str], inputs: dict[str, Any]) -> Any:
            rows.append(inputs["input_ids"].size)
            return self.session.run(names, inputs)

    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    monkeypatch.setattr(onnxruntime, "get_available_providers", lambda: [TENSORRT, CUDA, CPU])
    monkeypatch.setattr(onnxruntime, "InferenceSession", Card)
    card_encoder = OnnxEncoder(SHIPPED, "cuda:1", precision="float16")
    assert card_encoder.provider == CUDA
    assert requested_providers.pop() == [(CUDA, {"device_id": 1})]
    texts = turn_texts(calls, 120)
    encodings = card_encoder.encode(texts)
    plain = OnnxEncoder(SHIPPED, "cpu", precision="float16").encode(texts)
    assert onnx.BATCH_TOKENS < CARD_TOKENS / 2 < rows[0] <= CARD_TOKENS
    assert (
        max(
            np.abs(card_encoding.vectors - plain_encoding.vectors).max()
            for card_encoding, plain_encoding in zip(encodings, plain, strict=True)
        )
        < 5e-3  # a batch of another width rounds float16 elsewhere
    )
    OnnxEncoder(SHIPPED, "tensorrt:2")
    ((name, options), fallback) = requested_providers.pop()
    assert (name, fallback) == (TENSORRT, (CUDA, {"device_id": 2}))
    assert (
        options["device_id"],
        options["trt_fp16_enable"],
        Path(options["trt_engine_cache_path"]).is_relative_to(tmp_path),
    ) == (2, True, True)


@pytest.mark.skipif(
    CUDA in onnxruntime.get_available_providers(), reason="this ONNX Runtime offers CUDA"
)
def test_cuda_is_refused_where_there_is_none() -> None:
    with pytest.raises(DeviceError, match=f"'cuda' was requested.*{CPU}"):
        encoder.load(device="cuda")
    with (
        connect("memory:", device="cuda") as client,
        pytest.raises(DeviceError, match="'cuda' was requested"),
    ):
        client.best_spans("refund", "I want a refund")


def test_without_an_onnx_runtime_both_extras_are_named(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "onnxruntime", None)
    with pytest.raises(MissingExtraError) as error:
        OnnxEncoder(SHIPPED, "cpu")
    assert "hybrid-span-search[cpu]" in str(error.value)
    assert "hybrid-span-search[gpu]" in str(error.value)
    assert isinstance(error.value, HybridSearchError) and isinstance(error.value, ImportError)
