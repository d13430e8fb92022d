"""The shape stage: from encodings to word codes and windows for the writer."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from hybrid_search.backends.types import IndexSpec
from hybrid_search.encoder import passage_codes
from hybrid_search.errors import InputError
from hybrid_search.ingest.summary import Summary
from hybrid_search.ingest.types import EncodedPassage, ShapedPassage
from hybrid_search.observability import tracing
from hybrid_search.text import window_policy
from hybrid_search.text.span_prior import SpanPrior
from hybrid_search.text.types import Codebook, Entry


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
            shaped = [
                ShapedPassage(encoded.prepared, _build_entry(encoded, spec, used, prior))
                for encoded in block
            ]
        yield shaped


def _build_entry(
    encoded: EncodedPassage, spec: IndexSpec, used: Codebook, prior: SpanPrior | None
) -> Entry | InputError:
    if encoded.error:
        return encoded.error
    prepared, parsed = encoded.prepared, encoded.prepared.parsed
    text = parsed.document.text[prepared.passage.start : prepared.passage.end]
    (tokens,) = passage_codes.pack_word_codes(
        [text], [prepared.passage], encoded.encodings, used, spec.codes, prior
    )
    windows = len(window_policy.window_bounds(tokens.counts, spec.policy))
    return Entry(
        parsed.document, parsed.source_hash, prepared.passages, prepared.passage, tokens, windows
    )
