"""What codes of words lose in few bits: ``python -m benchmarks.quality.codes``.

Phrases are scored by the best cosine of a text's spans, once from vectors in float32 and once from
each kind of code. Measured are the ranking of spoken requests by the names of their intents and
other phrasings, the correlation with people on STS-B-Context, how far best cosines are off, and
whether the same words are the best. Bytes and milliseconds are those of 300 passages of calls.
"""

from __future__ import annotations

import argparse
import json
import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import partial
from itertools import islice
from pathlib import Path
from typing import Any

import numpy as np

from benchmarks import results
from benchmarks.markdown import table
from benchmarks.quality import encoders, intents, stsb_context
from benchmarks.quality.correlation import pearson
from benchmarks.quality.measures import MAP, evaluate
from benchmarks.quality.tasks import rows
from benchmarks.quality.vectors import TEXTS, cosines_with_many, means
from hybrid_search.encoder import Encoder
from hybrid_search.encoder.base import codebook as find_codebook
from hybrid_search.encoder.passage_codes import encoder_texts
from hybrid_search.ingest import document_parser
from hybrid_search.text import codebook, passages, spans, word_codes
from hybrid_search.text.best_passages import best_stored_passages
from hybrid_search.text.residual_codes import BITS
from hybrid_search.text.types import Codebook, Document, Floats, Passage, PassageTokens, Turn

REQUESTS = "natcs_utterances"
"""Spoken requests; no word of them was used to fit a codebook."""

CALLS = "calls_qmsum/calls.jsonl.gz"
"""Meetings, whose passages are long."""

PASSAGES, LEAST_WORDS = 300, 70
"""Passages of at least so many words that are scored in one step; the largest have 80."""

TRIES = 7

FLOAT, WORDS, TOKENS = "float32", "float32, without punctuation", "int8, a row a token"

Score = Callable[[PassageTokens, Floats], Floats]
"""Returns the cosine of each span of a passage with each query, float32 ``[spans, queries]``."""


@dataclass(frozen=True, slots=True, eq=False)
class Best:
    """The best cosine and the number of the best span of each text, each ``[texts, queries]``."""

    cosines: Floats
    spans: Floats


def score_tokens(tokens: PassageTokens, queries: Floats) -> Floats:
    """Return cosines from the vectors of tokens, with the punctuation inside a span."""
    inverse = spans.inverse(spans.norms(tokens.vectors, tokens.words[:, 2:], tokens.counts))
    sums = spans.running_sums(tokens.vectors @ queries.T)
    first, last = spans.bounds(tokens.counts)
    products: Floats = sums[tokens.words[last, 3]] - sums[tokens.words[first, 2]]
    return products * inverse[:, None]


def score_rounded_tokens(tokens: PassageTokens, queries: Floats) -> Floats:
    """Return cosines from tokens as int8, each with a scale of its own."""
    scales = np.maximum(np.abs(tokens.vectors).max(axis=1, initial=0.0), 1e-12) / 127
    rounded = np.rint(tokens.vectors / scales[:, None]) * scales[:, None]
    return score_tokens(PassageTokens(rounded, tokens.words, tokens.counts), queries)


def score_words(tokens: PassageTokens, queries: Floats) -> Floats:
    """Return cosines from the sums of the words' tokens alone, without punctuation."""
    sums, rows = word_codes.sum_rows(tokens)
    numbers = np.arange(len(rows), dtype=np.int32)
    words = np.column_stack([tokens.words[:, :2], numbers, numbers + 1])
    return score_tokens(PassageTokens(sums[rows], words, tokens.counts), queries)


def score_codes(tokens: PassageTokens, queries: Floats, used: Codebook, bits: int) -> Floats:
    """Return cosines from codes of words."""
    return cosines_with_many(queries, word_codes.pack(tokens, used, bits))


def list_ways(used: Codebook) -> dict[str, Score]:
    """Return every kind of code by its name, float32 first."""
    plain = codebook.plain(used.dimension)
    codes = {f"{bits} bits": partial(score_codes, used=used, bits=bits) for bits in BITS[::-1]}
    bare = {
        f"{bits} bits, without centroids": partial(score_codes, used=plain, bits=bits)
        for bits in BITS[:1]
    }
    return {
        FLOAT: score_tokens,
        WORDS: score_words,
        TOKENS: score_rounded_tokens,
        **codes,
        **bare,
    }


def gather_texts(encoder: Encoder, texts: Sequence[str]) -> Iterator[list[PassageTokens]]:
    """Yield the tokens of the passages of each text."""
    for start in range(0, len(texts), TEXTS):
        documents = [Document("", text, (Turn(text),)) for text in texts[start : start + TEXTS]]
        split = [list(passages.split(document)) for document in documents]
        parts = [
            encoder_texts(document, own) for document, own in zip(documents, split, strict=True)
        ]
        encodings = iter(encoder.encode([text for own in parts for text in own]))
        for own in split:
            yield [gather_passage(encoder, passage, encodings) for passage in own]


def gather_passage(encoder: Encoder, passage: Passage, encodings: Iterator[Any]) -> PassageTokens:
    """Return the tokens of a passage from the encodings of its parts, which come next."""
    own = [next(encodings) for _ in passage.parts]
    return word_codes.gather(passage, own, encoder.info.dimension)


def find_best(texts: Iterable[list[PassageTokens]], queries: Floats, score: Score) -> Best:
    """Return the best span of each text for each query; -1 for a text without a word."""
    cosines, numbers = [], []
    for own in texts:
        table = [score(tokens, queries) for tokens in own if len(tokens.counts)]
        joined = np.concatenate([np.full((1, len(queries)), -1.0, np.float32), *table])
        cosines.append(joined.max(axis=0))
        numbers.append(joined.argmax(axis=0))
    return Best(np.array(cosines), np.array(numbers))


def measure(encoder: Encoder, data: Path) -> dict[str, Any]:
    """Return the figures of every kind of code."""
    ways = list_ways(find_codebook(encoder))
    ranking = measure_ranking(encoder, data, ways)
    similarity = measure_similarity(encoder, data, ways)
    cost = measure_cost(encoder, data)
    return {
        "centroids": len(find_codebook(encoder).centroids),
        "dimension": encoder.info.dimension,
        "codes": {
            name: {**ranking[name], **similarity[name], **cost.get(name, {})} for name in ways
        },
    }


def measure_ranking(
    encoder: Encoder, data: Path, ways: dict[str, Score]
) -> dict[str, dict[str, Any]]:
    """Return MAP of each wording of the intents, and how far best spans are from float32."""
    requests = intents.read(data, REQUESTS)
    names = sorted({request.intent for request in requests})
    phrasings = json.loads(intents.PHRASINGS.read_text(encoding="utf-8"))["phrasings"][REQUESTS]
    wordings = [
        [intents.spell_name(name) for name in names],
        *map(list, zip(*(phrasings[name] for name in names), strict=True)),
    ]
    queries = means(encoder, [phrase for wording in wordings for phrase in wording])
    right = [intents.find_requests(requests, name) for name in names]
    texts = list(gather_texts(encoder, [request.text for request in requests]))
    exact = find_best(texts, queries, ways[FLOAT])
    figures = {}
    for way, score in ways.items():
        best = find_best(texts, queries, score)
        order = np.argsort(-best.cosines, axis=0, kind="stable").T.tolist()
        ranked = [order[first : first + len(names)] for first in range(0, len(order), len(names))]
        figures[way] = {
            "MAP": [_compute_map(own, right) for own in ranked],
            "rms error": round(float(np.sqrt(np.mean((best.cosines - exact.cosines) ** 2))), 4),
            "same best span": round(float((best.spans == exact.spans).mean()), 3),
        }
    return figures


def _compute_map(ranked: list[list[int]], right: list[frozenset[int]]) -> float:
    grades = [dict.fromkeys(items, 1) for items in right]
    (values,) = evaluate(ranked, grades, (MAP,)).values()
    return round(float(np.mean(values)), 4)


def measure_similarity(
    encoder: Encoder, data: Path, ways: dict[str, Score]
) -> dict[str, dict[str, float]]:
    """Return Pearson's correlation with people of the best cosine in each context."""
    pairs = stsb_context.read(data / stsb_context.FILE)
    queries = means(encoder, [pair.query for pair in pairs])
    texts = list(gather_texts(encoder, [pair.context for pair in pairs]))
    gold = np.array([pair.score for pair in pairs])
    figures = {}
    for way, score in ways.items():
        best = [
            float(find_best([own], query[None], score).cosines[0, 0])
            for own, query in zip(texts, queries, strict=True)
        ]
        figures[way] = {"STS-B-Context": round(pearson(gold, np.array(best)), 4)}
    return figures


def measure_cost(encoder: Encoder, data: Path) -> dict[str, dict[str, float]]:
    """Return bytes a word and milliseconds of the exact step, of codes in each number of bits.

    Milliseconds are those of a processor, as the machine may be shared.
    """
    used = find_codebook(encoder)
    (query,) = means(encoder, ["we should ask the customer for the budget"])
    tokens = list(islice(_read_long_passages(encoder, data), PASSAGES))
    words = sum(len(own.words) for own in tokens)
    return {
        f"{bits} bits": _measure_step(
            query, dict(enumerate(word_codes.to_bytes(pack(tokens=own)) for own in tokens)), words
        )
        for bits in BITS
        for pack in [partial(word_codes.pack, used=used, bits=bits)]
    }


def _read_long_passages(encoder: Encoder, data: Path) -> Iterator[PassageTokens]:
    for row in rows(data / CALLS):
        document, _ = document_parser.parse(json.dumps(row).encode())
        own = [passage for passage in passages.split(document) if passage.words >= LEAST_WORDS]
        texts = [text for passage in own for text in encoder_texts(document, [passage])]
        encodings = iter(encoder.encode(texts))
        for passage in own:
            yield gather_passage(encoder, passage, encodings)


def _measure_step(query: Floats, stored: dict[int, bytes], words: int) -> dict[str, float]:
    seconds = []
    for _ in range(TRIES):
        started_at = time.process_time()
        best_stored_passages(query, stored, lambda ranked: ranked[:10])
        seconds.append(time.process_time() - started_at)
    return {
        "bytes a word": round(sum(map(len, stored.values())) / words, 1),
        "ms": round(1000 * min(seconds), 1),
    }


def codes_table() -> str:
    """Render the figures of every kind of code."""
    codes = results.read_result("codes", results.QUALITY)["codes"]
    columns = (
        "bytes a word",
        "MAP: name, other words, words that nobody says",
        "STS-B-Context",
        "same best span",
        f"CPU ms, {PASSAGES} passages",
    )

    def render(name: str) -> list[str]:
        own = codes[name]
        return [
            f"{own['bytes a word']:.0f}" if "bytes a word" in own else "",
            ", ".join(f"{value:.3f}" for value in own["MAP"]),
            f"{own['STS-B-Context']:.3f}",
            f"{own['same best span']:.2f}",
            f"{own['ms']:.1f}" if "ms" in own else "",
        ]

    return table("codes", columns, [name for name in codes if "without" not in name], render)


TABLES = {"codes": codes_table}


def main() -> None:
    """Run the command."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    encoders.add_options(parser)
    parser.add_argument(
        "--cost", action="store_true", help="measure bytes and milliseconds alone again"
    )
    options = parser.parse_args()
    model = encoders.load_model(options)
    name = f"codes{model.suffix()}"
    if options.cost:
        figures = results.read_result(name, results.QUALITY)
        for way, cost in measure_cost(model.encoder, options.data).items():
            figures["codes"][way] |= cost
    else:
        figures = measure(model.encoder, options.data)
    made = {key: value for key, value in figures.items() if key != "made"}
    results.write(name, {"model": model.label, **made}, results.QUALITY)


if __name__ == "__main__":
    main()
