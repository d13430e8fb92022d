"""The shape stage: from encodings to word codes and windows for the writer."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from hybrid_search.backends.types import IndexSpec
from hybrid_search.encoder import passage_codes
from hybrid_search.errors import InputError
from hybrid_search.ingest.summary import Summary
from hybrid_search.ingest.types import (
    EncodedPassage,
    EncodingOrError,
    PreparedPassage,
    ShapedPassage,
)
from hybrid_search.observability import tracing
from hybrid_search.text import window_policy
from hybrid_search.text.span_prior import SpanPrior
from hybrid_search.text.types import Codebook, Encoding, Entry


def shape_blocks(
    blocks: Iterator[Sequence[EncodedPassage]],
    spec: IndexSpec,
    used: Codebook,
    prior: SpanPrior | None,
    summary: Summary,
) -> Iterator[list[ShapedPassage]]:
    """Yield each block with the entries of the passages that could be encoded.

    `used` and `prior` are those of the model.
    """
    for block in blocks:
        with tracing.trace_block("ingest.shape"), summary.time_stage("shape"):
            shaped: list[ShapedPassage] = [
                (prepared, _build_entry(prepared, results, spec, used, prior))
                for prepared, results in block
            ]
        yield shaped


def _build_entry(
    prepared: PreparedPassage,
    results: Sequence[EncodingOrError],
    spec: IndexSpec,
    used: Codebook,
    prior: SpanPrior | None,
) -> Entry | InputError:
    for result in results:
        if isinstance(result, InputError):
            return result
    encodings = [result for result in results if isinstance(result, Encoding)]
    parsed = prepared.parsed
    text = parsed.document.text[prepared.passage.start : prepared.passage.end]
    (tokens,) = passage_codes.pack_word_codes(
        [text], [prepared.passage], encodings, used, spec.codes, prior
    )
    windows = len(window_policy.window_bounds(tokens.counts, spec.policy))
    return Entry(
        parsed.document, parsed.source_hash, prepared.passages, prepared.passage, tokens, windows
    )
