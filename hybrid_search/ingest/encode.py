"""The stages that encode passages, and shape encodings into word codes and windows for the writer.

A text at which the encoder fails is found by halving the batch, and only its document is refused.
If the encoder fails on every text, the run ends with one error.
"""

from __future__ import annotations

import logging
from collections.abc import Generator, Iterator, Sequence
from contextlib import closing
from dataclasses import dataclass

from hybrid_search.backends.types import IndexSpec
from hybrid_search.encoder import passage_codes
from hybrid_search.encoder.base import Encoder, EncoderInfo, codebook, span_prior
from hybrid_search.errors import HybridSearchError, InputError, ModelError
from hybrid_search.ingest.executors import Executor, T
from hybrid_search.ingest.summary import Summary
from hybrid_search.ingest.types import (
    EncodedPassage,
    EncodingOrError,
    ParsedDocument,
    PreparedPassage,
    ShapedPassage,
)
from hybrid_search.observability import tracing
from hybrid_search.text import window_policy
from hybrid_search.text.types import Encoding, Entry, Passage

PROBE = "a word"
"""A text that every working encoder accepts."""

_log = logging.getLogger(__name__)


def encode_blocks(
    blocks: Generator[Sequence[PreparedPassage], None, None], executor: Executor, summary: Summary
) -> Iterator[list[EncodedPassage]]:
    """Yield each block with its encodings, and count tokens in `summary`.

    Closing this iterator closes `blocks`, which ends its thread.
    """
    with closing(blocks):
        jobs = ((block, _list_texts(block)) for block in blocks)
        for block, results in executor.run(jobs, summary):
            encodings = [result for result in results if isinstance(result, Encoding)]
            summary.tokens += sum(len(encoding.offsets) for encoding in encodings)
            remaining = iter(results)
            yield [
                (parsed, passage, [next(remaining) for _ in passage.parts])
                for parsed, passage in block
            ]


def _list_texts(block: Sequence[PreparedPassage]) -> list[str]:
    """Return the texts to encode: one for each part of each passage."""
    texts: list[str] = []
    for parsed, passage in block:
        texts += passage_codes.encoder_texts(parsed.document, [passage])
    return texts


def encode_or_isolate(encoder: Encoder, texts: Sequence[str]) -> list[EncodingOrError]:
    """Return for each text its encoding, or the error with which the encoder fails on it."""
    try:
        return list(encoder.encode(texts))
    except HybridSearchError:
        raise
    except Exception as error:
        kind = type(error).__name__  # the message may quote the text
        _log.info("the encoder failed at one of %d texts (%s): looking for it", len(texts), kind)
        if len(texts) < 2:
            _check(encoder)
            fault = InputError(f"the encoder fails at this text: {kind}", str(error))
            return [fault for _ in texts]
    middle = len(texts) // 2
    return encode_or_isolate(encoder, texts[:middle]) + encode_or_isolate(encoder, texts[middle:])


def _check(encoder: Encoder) -> None:
    """Raise ModelError unless `encoder` accepts a text that always works."""
    try:
        encoder.encode([PROBE])
    except Exception as error:
        cause = f"{type(error).__name__}: {error}".removesuffix(": ")
        raise ModelError(
            f"the encoder {encoder.info.name} fails at every text: {cause}. "
            "What was committed is safe: check the device, and run the same command again"
        ) from error


@dataclass(frozen=True, slots=True)
class LocalExecutor:
    """An executor with one encoder in this process."""

    encoder: Encoder

    @property
    def info(self) -> EncoderInfo:
        """Return the properties of the encoder that an index depends on."""
        return self.encoder.info

    def run(
        self, jobs: Iterator[tuple[T, Sequence[str]]], summary: Summary
    ) -> Iterator[tuple[T, list[EncodingOrError]]]:
        """Yield each job with the results of its texts, see `Executor.run`."""
        for job, texts in jobs:
            with tracing.trace_block("ingest.encode"), summary.time_stage("encode"):
                results = encode_or_isolate(self.encoder, texts)
            yield job, results


def shape_blocks(
    blocks: Iterator[Sequence[EncodedPassage]],
    encoder: Encoder | Executor,
    spec: IndexSpec,
    summary: Summary,
) -> Iterator[list[ShapedPassage]]:
    """Yield each block with the entries of its passages, or the errors of their encoder."""
    used, prior = codebook(encoder), span_prior(encoder)

    def build_entry(
        parsed: ParsedDocument, passage: Passage, results: Sequence[EncodingOrError]
    ) -> Entry | InputError:
        encodings: list[Encoding] = []
        for result in results:
            if isinstance(result, InputError):
                return result
            encodings.append(result)
        document = parsed.document
        text = document.text[passage.start : passage.end]
        (tokens,) = passage_codes.pack_word_codes(
            [text], [passage], encodings, used, spec.codes, prior
        )
        windows = len(window_policy.window_bounds(tokens.counts, spec.policy))
        return Entry(document, parsed.source_hash, parsed.passages, passage, tokens, windows)

    for block in blocks:
        with tracing.trace_block("ingest.shape"), summary.time_stage("shape"):
            shaped = [
                (parsed, passage, build_entry(parsed, passage, results))
                for parsed, passage, results in block
            ]
        yield shaped
