"""Time how fast texts become vectors: ``python -m benchmarks.speed.encode``.

sentence-transformers as it comes, torch with our batches, and our sessions in int8, or float16 on
a card, with batches of like length and in the order that the texts came in. All encode the same
texts in turn, round by round, so that a busy neighbour slows each alike; the least seconds of a
round count. The torch models are the base, which has the same layers; ours has a linear head of one
per cent of the multiplications more, and returns every token. Needs the extra ``export`` and
sentence-transformers.
"""

from __future__ import annotations

import argparse
import os
import time
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any
from unittest import mock

from benchmarks import results
from benchmarks.libraries import import_library
from benchmarks.quality.base_model import base_folder
from benchmarks.quality.tasks import rows
from hybrid_search.encoder import find_model, onnx

PASSAGE = 128
"""Tokens of a passage, special ones included."""

BATCH = 32
"""Texts in a batch that ignores their length, as in sentence-transformers."""

BLOCK = 256
"""Texts that our encoder is given at once.

About 64 passages of a call have as many turns and windows.
"""

Way = Callable[[Sequence[str]], object]


def passages(data: Path, tokenizer: Any, tokens: int) -> list[str]:
    """Return paragraphs of squad_dev cut into texts of `PASSAGE` tokens, `tokens` in all.

    Paragraphs are joined first. A word cut in two may give a text one token more or less.
    """
    ids = [
        token_id
        for row in rows(data / "squad_dev/passages.jsonl.gz")
        for token_id in tokenizer.encode(row["text"], add_special_tokens=False).ids
    ]
    size = PASSAGE - 2
    pieces = (
        tokenizer.decode(ids[start : start + size]) for start in range(0, len(ids) - size, size)
    )
    return [text for _, text in zip(range(tokens // PASSAGE), pieces, strict=False)]


def turns(data: Path, tokenizer: Any, tokens: int) -> list[str]:
    """Return turns of calls_sgd in their order, until they have `tokens`."""
    texts: list[str] = []
    for text in (
        turn["text"] for row in rows(data / "calls_sgd/calls.jsonl.gz") for turn in row["turns"]
    ):
        texts.append(text)
        tokens -= len(tokenizer.encode(text, add_special_tokens=True).ids)
        if tokens <= 0:
            break
    return texts


def onnx_way(model: Path, precision: str, device: str, *, buckets: bool = True) -> Way:
    """Return our encoder as a way; without `buckets` texts are batched in their own order."""
    loaded = onnx.OnnxEncoder(model, device, precision=precision)

    def encode(texts: Sequence[str]) -> None:
        for start in range(0, len(texts), BLOCK):
            loaded.encode(texts[start : start + BLOCK])

    def encode_in_order(texts: Sequence[str]) -> None:
        with mock.patch.object(onnx, "_batches", batch_in_order):
            encode(texts)

    return encode if buckets else encode_in_order


def batch_in_order(windows: Sequence[Any], *_: int) -> Iterator[Sequence[Any]]:
    """Return batches of `BATCH` texts, whatever their length."""
    return (windows[start : start + BATCH] for start in range(0, len(windows), BATCH))


def sentence_transformers(folder: str, device: str) -> Way:
    """Return one vector a text, by ``SentenceTransformer.encode`` as it comes."""
    model = import_library("sentence_transformers").SentenceTransformer(folder, device=device)
    return lambda texts: model.encode(list(texts))


def torch_batches(folder: str, device: str, half: bool = False) -> Way:
    """Return every token's vector by torch, with our batches of like length."""
    torch, transformers = import_library("torch"), import_library("transformers")
    tokenizer = transformers.AutoTokenizer.from_pretrained(folder)
    model = transformers.AutoModel.from_pretrained(folder).to(device).eval()
    model, most = (
        model.half() if half else model,
        onnx.BATCH_TOKENS if device == "cpu" else onnx.CARD_TOKENS,
    )

    def encode(texts: Sequence[str]) -> None:
        for start in range(0, len(texts), BLOCK):
            token_lists = sorted(
                tokenizer(list(texts[start : start + BLOCK]))["input_ids"], key=len
            )
            for batch in onnx._batches(
                token_lists, 0, most
            ):  # token lists have a length, like windows
                inputs = tokenizer.pad({"input_ids": batch}, return_tensors="pt").to(device)
                with torch.inference_mode():
                    model(**inputs).last_hidden_state.float().cpu().numpy()

    return encode


def ways(model: Path, device: str) -> dict[str, Way]:
    """Return every way to encode, by name."""
    base = base_folder()
    kind = "cuda" if device in ("cuda", "tensorrt") else "cpu"
    precision = "float16" if kind == "cuda" else "int8"
    ways_by_name = {
        "sentence-transformers": sentence_transformers(base, kind),
        "torch, buckets": torch_batches(base, kind),
    }
    if kind == "cuda":
        ways_by_name["torch float16, buckets"] = torch_batches(base, kind, half=True)
    ways_by_name[f"{precision}, in order"] = onnx_way(model, precision, device, buckets=False)
    ways_by_name[f"{precision}, buckets"] = onnx_way(model, precision, device)
    return ways_by_name


def race(
    ways_by_name: dict[str, Way],
    texts: Sequence[str],
    rounds: int,
    clock: Callable[[], float] = time.perf_counter,
) -> dict[str, float]:
    """Return the least seconds of each way over `rounds` in turn, by `clock`.

    One round before, on a few texts, warms each way up and is not counted.
    """
    seconds: dict[str, list[float]] = {name: [] for name in ways_by_name}
    for number in range(rounds + 1):
        for name, way in ways_by_name.items():
            started_at = clock()
            way(texts if number else texts[:BLOCK])
            if number:
                seconds[name].append(clock() - started_at)
    return {name: min(way_seconds) for name, way_seconds in seconds.items()}


def operations(lengths: Sequence[int], layers: int, hidden: int, inner: int) -> int:
    """Return the multiplications and additions of a transformer on texts of these lengths.

    Lengths are in tokens, without padding; embeddings and norms are left out. A token takes four
    matrices of attention and two of the feed-forward net in each layer; each pair of tokens of a
    text a product of queries and keys, and one of weights and values.
    """
    weights, pairs = 4 * hidden**2 + 2 * hidden * inner, 2 * hidden
    return 2 * layers * sum(length * weights + length**2 * pairs for length in lengths)


def measure(
    model: Path, data: Path, tokens: int, rounds: int, device: str, peak: float | None = None
) -> dict[str, Any]:
    """Return tokens a second of each way on passages and on turns, also as a multiple.

    The multiple is of sentence-transformers' rate. With `peak`, the operations a second that the
    device is sold for (in 10^12), also what share of it the texts' own operations reach.
    """
    tokenizer, ways_by_name = onnx._tokenizer(model / "tokenizer.json"), ways(model, device)
    shape = _shape() if peak else None
    result: dict[str, Any] = {
        "cores": os.cpu_count(),
        "device": device,
        "rounds": rounds,
        "peak, 10^12/s": peak,
        "texts": {},
    }
    for name, cut in (("passages of 128 tokens", passages), ("turns", turns)):
        texts = cut(data, tokenizer, tokens)
        started_at = time.perf_counter()
        encodings = tokenizer.encode_batch(texts, add_special_tokens=True)
        tokenizing = time.perf_counter() - started_at
        lengths = [len(encoding.ids) for encoding in encodings]
        count, least = (
            sum(lengths),
            operations(lengths, *shape) / peak / 1e12 if peak and shape else None,
        )
        seconds = race(ways_by_name, texts, rounds)
        rates = {
            way: _rates(way_seconds, seconds["sentence-transformers"], count, least)
            for way, way_seconds in seconds.items()
        }
        result["texts"][name] = {
            "texts": len(texts),
            "tokens": count,
            "tokenizing alone, tokens/s": round(count / tokenizing),
            "ways": rates,
        }
    return result


def _rates(seconds: float, first: float, count: int, least: float | None) -> dict[str, float]:
    """Return the rates of a way that took `seconds`.

    `least` are the seconds that the device would take at its peak.
    """
    share = {} if least is None else {"share of the peak": round(least / seconds, 4)}
    return {"tokens/s": round(count / seconds), "times": round(first / seconds, 2), **share}


def _shape() -> tuple[int, int, int]:
    """Return layers, hidden and inner size of the base, which ours shares."""
    config = import_library("transformers").AutoConfig.from_pretrained(base_folder())
    return config.num_hidden_layers, config.hidden_size, config.intermediate_size


def main() -> None:
    """Run the command."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument(
        "--model",
        help="a folder made by python -m export.to_onnx, or an installed model's name; default: the"
        " shipped one",
    )
    parser.add_argument("--data", type=Path, default=results.DATA, help="the folder of data sets")
    parser.add_argument("--tokens", type=int, default=40_000, help="of each kind of texts")
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--device", default="cpu", choices=("cpu", "cuda", "tensorrt"))
    parser.add_argument(
        "--peak",
        type=float,
        help="10^12 operations a second of the GPU in dense float16, to report the share reached;"
        " 989 for an H200",
    )
    options = parser.parse_args()
    results.write(
        f"encode-{options.device}",
        measure(
            find_model(options.model),
            options.data,
            options.tokens,
            options.rounds,
            options.device,
            options.peak,
        ),
        results.SPEED,
    )


if __name__ == "__main__":
    main()
