"""The encoder on ONNX Runtime and `tokenizers`, without torch.

Texts are tokenized without special tokens, sorted by length and run in batches with about the same
number of padded tokens, which halves the time on turns of mixed length. A text that is too long for
the model is read in overlapping windows; each token's vector comes from the window in which the
token is farther from the edge.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from tokenizers import Tokenizer

from hybrid_search.encoder import codebook_file, devices, model_folder, precisions, prior_file
from hybrid_search.encoder.base import EncoderInfo
from hybrid_search.encoder.devices import Device
from hybrid_search.errors import MissingExtraError, ModelError, UsageError
from hybrid_search.system import available_cores, install_command
from hybrid_search.text.span_prior import SpanPrior
from hybrid_search.text.types import Codebook, Encoding, Floats

BATCH_TOKENS = 1024
"""Padded tokens per batch. Larger batches were not faster on CPUs, and take more memory."""

CARD_TOKENS = 16384
"""Padded tokens per batch on a card, so that a block of an ingest is one or two batches.

Not measured, for lack of a card.
"""

OVERLAP_TOKENS = 32
"""Tokens shared by two windows of an overlong text: about 20 words."""


@dataclass(frozen=True, slots=True)
class _Window:
    """A window: tokens `start` to `end` of text number `text`, with `keep` to `keep_end` used."""

    text: int
    start: int
    end: int
    keep: int
    keep_end: int

    def __len__(self) -> int:
        return self.end - self.start


class OnnxEncoder:
    """An `Encoder` that runs the model in a folder.

    `device` is auto, cpu, cuda, tensorrt or a card with its number (cuda:1); `precision` is auto,
    int8, float16 or float32. `threads` is the number of batches run in parallel, by default the
    cores of this process; a card runs one at a time.

    The constructor raises ModelError if the folder is incomplete or damaged, or lacks the
    precision, DeviceError if the requested device would not be used, and MissingExtraError without
    ONNX Runtime.
    """

    def __init__(
        self,
        folder: Path,
        device: str = "auto",
        threads: int | None = None,
        precision: str = "auto",
    ) -> None:
        self._folder = folder
        self.artifact = model_folder.read(folder)
        runtime = _runtime()
        target = Device.choose(device, runtime.get_available_providers())
        self.precision = precisions.choose(precision, self.artifact.precisions, target)
        graph = (folder / precisions.graph_name(self.precision)).resolve()  # its weights are there
        self._session = _session(runtime, graph, self.artifact.dimension, target, self.precision)
        self.provider = str(self._session.get_providers()[0])
        self._workers = 1 if target.is_accelerated else threads or available_cores()
        self._batch_tokens = CARD_TOKENS if target.is_accelerated else BATCH_TOKENS
        self._tokenizer = _tokenizer(folder / model_folder.TOKENIZER)
        edges = self._tokenizer.encode("", add_special_tokens=True).ids
        self._before, self._after = edges[: len(edges) // 2], edges[len(edges) // 2 :]
        self._limit = self.artifact.max_length - len(edges)
        self._padding = self._tokenizer.token_to_id("[PAD]") or 0

    @property
    def info(self) -> EncoderInfo:
        """The properties of this encoder's model that an index records."""
        model = self.artifact
        return EncoderInfo(
            model.name,
            model.fingerprint,
            model.dimension,
            self.precision,
            model.context,
            model.sizes,
            codebook_file.find_name(self._folder),
            model.languages,
            self.provider,
        )

    def load_prior(self, dimension: int) -> SpanPrior | None:
        """Return the model's prior of spans for a dimension, if it has one."""
        return prior_file.load(self._folder, dimension)

    def load_codebook(self, dimension: int) -> Codebook:
        """Return the model's codebook for a dimension."""
        return codebook_file.load(self._folder, dimension)

    def encode(self, texts: Sequence[str]) -> list[Encoding]:
        """Return the encoding of each text, in order, see `Encoder.encode`.

        Raises UsageError for a text with a lone surrogate.
        """
        tokenized = self._tokenize(texts)
        vectors = [
            np.empty((len(tokens), self.artifact.dimension), dtype=np.float32)
            for tokens in tokenized
        ]
        windows = [
            window
            for text, tokens in enumerate(tokenized)
            for window in _windows(text, len(tokens), self._limit)
        ]
        edges = len(self._before) + len(self._after)
        batches = list(_batches(windows, edges, self._batch_tokens))
        rows = (
            [tokenized[window.text].ids[window.start : window.end] for window in batch]
            for batch in batches
        )
        for batch, hidden in zip(batches, self._run_batches(rows, len(batches)), strict=True):
            for row, window in zip(hidden, batch, strict=True):
                shift = len(self._before) - window.start  # from a text's token to its row
                used_vectors = row[window.keep + shift : window.keep_end + shift]
                vectors[window.text][window.keep : window.keep_end] = used_vectors
        return [
            Encoding(text_vectors, np.array(tokens.offsets, np.int32).reshape(-1, 2))
            for text_vectors, tokens in zip(vectors, tokenized, strict=True)
        ]

    def _tokenize(self, texts: Sequence[str]) -> list[Any]:
        try:
            return list(self._tokenizer.encode_batch(list(texts), add_special_tokens=False))
        except TypeError as error:
            surrogate = re.search("[\ud800-\udfff]", "".join(map(str, texts)))
            if surrogate is None:
                raise
            raise UsageError(
                f"the text holds a lone surrogate, U+{ord(surrogate[0]):04X}, which UTF-8 cannot "
                "encode: remove it"
            ) from error

    def _run_batches(
        self, batches: Iterable[Sequence[Sequence[int]]], count: int
    ) -> Iterator[Floats]:
        """Yield the output of each batch; batches run in parallel, each on one core.

        On a quiet machine, a batch spread over all cores is as fast. But if the store or another
        process uses a core, every layer waits for the slower half: 4,800 tokens/s against 8,500
        with one of two cores busy.
        """
        if min(count, self._workers) < 2:
            yield from map(self._run, batches)
            return
        with ThreadPoolExecutor(self._workers) as pool:
            yield from pool.map(self._run, batches)

    def _run(self, rows: Sequence[Sequence[int]]) -> Floats:
        """Run a batch through the graph: float32 ``[rows, tokens, dimension]``, edges included."""
        framed = [[*self._before, *row, *self._after] for row in rows]
        ids = np.full((len(framed), max(map(len, framed))), self._padding, dtype=np.int64)
        mask = np.zeros_like(ids)
        for number, row in enumerate(framed):
            ids[number, : len(row)] = row
            mask[number, : len(row)] = 1
        hidden: Floats = self._session.run(
            ["token_vectors"], {"input_ids": ids, "attention_mask": mask}
        )[0]
        return hidden.astype(np.float32, copy=False)


def _windows(text: int, count: int, limit: int) -> Iterator[_Window]:
    """Yield windows of at most `limit` of `count` tokens, which share `OVERLAP_TOKENS`."""
    start, keep = 0, 0
    while count - start > limit:
        end = start + limit
        middle = end - OVERLAP_TOKENS // 2
        yield _Window(text, start, end, keep, middle)
        start, keep = end - OVERLAP_TOKENS, middle
    if count:
        yield _Window(text, start, count, keep, count)


def _batches(windows: Sequence[_Window], edges: int, limit: int) -> Iterator[list[_Window]]:
    """Yield batches of windows of similar length, of at most `limit` padded tokens each."""
    batch: list[_Window] = []
    for window in sorted(windows, key=len):
        if batch and (len(batch) + 1) * (len(window) + edges) > limit:
            yield batch
            batch = []
        batch.append(window)
    if batch:
        yield batch


def _tokenizer(path: Path) -> Tokenizer:
    try:
        tokenizer = Tokenizer.from_file(str(path))
    except Exception as error:  # the library raises bare Exception
        raise ModelError(f"{path} cannot be read: {error}") from error
    tokenizer.no_padding()
    tokenizer.no_truncation()
    return tokenizer


def _runtime() -> Any:
    """Import onnxruntime; raise MissingExtraError if it is not installed."""
    try:
        import onnxruntime
    except ImportError as error:
        raise MissingExtraError(
            f"No ONNX Runtime is installed: {install_command('cpu')}, "
            f"or {install_command('gpu')} on a machine with CUDA (not both)"
        ) from error
    return onnxruntime


def _session(runtime: Any, path: Path, dimension: int, device: Device, precision: str) -> Any:
    options = runtime.SessionOptions()
    options.intra_op_num_threads = 1  # see _run_batches
    options.add_session_config_entry("session.intra_op.allow_spinning", "0")
    options.log_severity_level = 3
    try:
        session = runtime.InferenceSession(
            str(path), options, providers=device.providers(precision)
        )
    except Exception as error:  # the library's exceptions have no common base
        raise ModelError(
            f"{path} cannot be run by ONNX Runtime {runtime.__version__}: {error}. "
            "Export the model again."
        ) from error
    devices.confirm(device.provider, session.get_providers())
    actual = session.get_outputs()[0].shape[-1]
    if isinstance(actual, int) and actual != dimension:  # a graph may leave the dimension open
        raise ModelError(
            f"{path} gives vectors of {actual} numbers, but encoder.json says {dimension}: "
            "export the model again"
        )
    return session
