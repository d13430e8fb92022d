"""The encode stage, which handles an encoder that fails on one text or on every text.

A failing text is found by halving the batch, and only its document is refused. If the encoder fails
on every text, the run ends with one error.
"""

from __future__ import annotations

import logging
from collections.abc import Generator, Iterator, Sequence
from contextlib import closing
from dataclasses import dataclass

from hybrid_search.encoder import passage_codes
from hybrid_search.encoder.base import Encoder, EncoderInfo
from hybrid_search.errors import HybridSearchError, InputError, ModelError
from hybrid_search.ingest.executors.base import Executor, T
from hybrid_search.ingest.summary import Summary
from hybrid_search.ingest.types import EncodedPassage, EncodingOrError, PreparedPassage
from hybrid_search.observability import tracing
from hybrid_search.text.types import Encoding

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
        jobs = (
            (block, [text for prepared in block for text in _texts(prepared)]) for block in blocks
        )
        for block, results in executor.run(jobs, summary):
            summary.tokens += _count_tokens(results)
            remaining = iter(results)
            yield [
                (prepared, [next(remaining) for _ in prepared.passage.parts]) for prepared in block
            ]


def _count_tokens(results: Sequence[EncodingOrError]) -> int:
    return sum(len(result.offsets) for result in results if isinstance(result, Encoding))


def _texts(prepared: PreparedPassage) -> list[str]:
    return passage_codes.encoder_texts(prepared.parsed.document, [prepared.passage])


def encode_or_isolate(encoder: Encoder, texts: Sequence[str]) -> list[EncodingOrError]:
    """Return for each text its encoding, or the error with which the encoder fails on it.

    Raises ModelError if the encoder fails on every text.

    Raises:
        HybridSearchError: If the encoder raises one, as that is not the fault of a text.
    """
    try:
        return list(encoder.encode(texts))
    except HybridSearchError:
        raise
    except Exception as error:
        kind = type(error).__name__  # the message may quote the text
        _log.info("the encoder failed at one of %d texts (%s): looking for it", len(texts), kind)
        if len(texts) < 2:
            _check(encoder)
            return [
                InputError(f"the encoder fails at this text: {kind}", str(error)) for _ in texts
            ]
    middle = len(texts) // 2
    return encode_or_isolate(encoder, texts[:middle]) + encode_or_isolate(encoder, texts[middle:])


def _check(encoder: Encoder) -> None:
    """Raise ModelError unless `encoder` accepts a text that always works."""
    try:
        encoder.encode([PROBE])
    except Exception as error:
        raise ModelError(
            f"the encoder {encoder.info.name} fails at every text: {_describe_error(error)}. "
            "What was committed is safe: check the device, and run the same command again"
        ) from error


def _describe_error(error: Exception) -> str:
    return f"{type(error).__name__}: {error}" if str(error) else type(error).__name__


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


def as_executor(encoder: Encoder | Executor) -> Executor:
    """Return `encoder` itself if it is an executor, else a local executor of it."""
    return encoder if isinstance(encoder, Executor) else LocalExecutor(encoder)
