"""STS-B-Context: ten rows scored by hand, each set-up, its cost, and two results compared."""

from __future__ import annotations

import math
from pathlib import Path

import numpy as np
import pytest

from benchmarks.quality import setups, stsb_context
from benchmarks.quality.compare import compare_contexts
from benchmarks.quality.sentences import sentences
from benchmarks.quality.systems import TokenMeans
from benchmarks.quality.vectors import Spans, means
from hybrid_search.search.phrase_vector import query_vector
from hybrid_search.search.span_search import best_spans
from hybrid_search.text.boundaries import BoundaryModel
from hybrid_search.text.span_prior import SpanPrior
from tests.conftest import DATA
from tests.helpers.table_encoder import TableEncoder, Vector
from tests.helpers.tiny_encoder import TinyEncoder

TABLE: dict[str, Vector] = {
    "query": (1, 0, 0),
    "same": (1, 0, 0),
    "high": (0.8, 0.6, 0),
    "low": (0.6, 0.8, 0),
}
"""Cosines with "query": 1, .8 and .6. The best span of a context is its best word, for every other
word pulls the mean away.
"""

ROWS = [
    ("none same none", "same", 5, 5.0),
    ("none same none", "same", 5, 5.0),
    ("high none high", "high", 10, 4.0),  # the first "high" is as good, and not the target
    ("none high none too", "high none", 5, 4.0),  # "high" is 4 of 9 characters: not found
    ("none low", "low", 5, 3.0),
    ("none low", "low", 5, 3.0),
    ("none low", "none", 0, 0.0),
    ("none low", "none", 0, 0.0),
    ("none none", "none", 0, 0.0),
    ("none none", "none", 0, 0.0),
]


def write_table(folder: Path, rows: list[tuple[str, str, int, float]] = ROWS) -> Path:
    path = folder / "dev.tsv"
    lines = ["query\tcontext\ttarget\tstart\tend\tscore"]
    lines += [
        f"query\t{context}\t{target}\t{start}\t{start + len(target)}\t{gold:.3f}"
        for context, target, start, gold in rows
    ]
    path.write_text("\n".join(lines) + "\n", encoding="utf-8")
    return path


def test_ten_rows_by_hand(tmp_path: Path) -> None:
    scored = stsb_context.score(TableEncoder(TABLE), write_table(tmp_path))
    # cosines 1 1 .8 .8 .6 .6 .6 .6 0 0, mean .6; gold 5 5 4 4 3 3 0 0 0 0, mean 2.4. Products of
    # the deviations 2 * .4 * 2.6 + 2 * .2 * 1.6 + 2 * .6 * 2.4 = 5.6, squares 2 * .16 + 2 * .04 + 2
    # * .36 = 1.12 and 2 * 6.76 + 2 * 2.56 + 2 * .36 + 4 * 5.76 = 42.4
    assert scored["pearson"] == pytest.approx(5.6 / math.sqrt(1.12 * 42.4), abs=1e-4)
    # ranks from their mean: 4 4 2 2 -1 -1 -1 -1 -4 -4 and 4 4 2 2 0 0 -3 -3 -3 -3: products 32 + 8
    # + 6 + 24 = 70, squares 76 and 76
    assert scored["spearman"] == pytest.approx(70 / 76, abs=1e-4)
    assert scored["found"] == 2 / 4
    assert stsb_context.unpack_scores(scored["scores"]) == pytest.approx(
        [1, 1, 0.8, 0.8, 0.6, 0.6, 0.6, 0.6, 0, 0], abs=1e-4
    )
    # the contexts have 3 + 3 + 3 + 4 + 6 * 2 = 25 words, and each is one token
    assert (scored["rows"], scored["tokens a row"], scored["texts a row"]) == (10, 2.5, 1)


def test_a_target_of_which_half_is_found_is_found(tmp_path: Path) -> None:
    rows = [("none high so", "high so", 5, 4.0), ("none none", "none", 0, 0.0)]  # 4 of 7 characters
    assert stsb_context.score(TableEncoder(TABLE), write_table(tmp_path, rows))["found"] == 1


CROWDED = TableEncoder(TABLE, crowd=3)
"""In a text of more than three words, "same" is (1, 0, 1) and "none" (0, 0, 2)."""


@pytest.mark.parametrize(
    ("name", "cosine", "tokens", "texts"),
    [
        ("single pass", 1 / math.sqrt(2), 4, 1),
        ("sentence-wise", 1.0, 4, 2),
        ("target alone", 1.0, 1, 1),
        ("full context", 1 / math.sqrt(50), 4, 1),  # (1, 0, 1) + 3 (0, 0, 2) = (1, 0, 7)
        ("per n-gram, best 1", 1.0, 5, 2),  # the single pass, then "same" by itself
    ],
)
def test_each_way_of_encoding_and_its_cost(
    tmp_path: Path, name: str, cosine: float, tokens: float, texts: float
) -> None:
    (tmp_path / "stsb-context").mkdir()
    write_table(
        tmp_path / "stsb-context",
        [("None none. Same none.", "Same", 11, 5.0), ("none none", "none", 0, 0.0)] * 2,
    )
    measured = stsb_context.measure(
        TokenMeans(CROWDED), stsb_context.read(tmp_path / stsb_context.FILE), pruned=1
    )["setups"][name]
    assert stsb_context.unpack_scores(measured["scores"])[0] == pytest.approx(cosine, abs=1e-4)
    second_row = {
        "single pass": (2, 1),
        "sentence-wise": (2, 1),
        "target alone": (1, 1),
        "full context": (2, 1),
        "per n-gram, best 1": (3, 2),
    }[name]
    assert (measured["tokens a row"], measured["texts a row"]) == (
        (tokens + second_row[0]) / 2,
        (texts + second_row[1]) / 2,
    )


def test_a_span_lies_inside_a_sentence_when_sentences_are_encoded(tmp_path: Path) -> None:
    """(.6, .8) and (.6, -.8) add up to the query's direction, but only across the full stop."""
    encoder = TableEncoder({**TABLE, "down": (0.6, -0.8, 0)})
    path = write_table(
        tmp_path, [("So low. Down so.", "low. Down", 3, 5.0), ("none", "none", 0, 0.0)]
    )
    assert stsb_context.unpack_scores(stsb_context.score(encoder, path)["scores"])[
        0
    ] == pytest.approx(1.0)
    assert stsb_context.unpack_scores(
        stsb_context.score(encoder, path, sentencewise=True)["scores"]
    )[0] == pytest.approx(0.6)


def test_every_n_gram_is_counted(tmp_path: Path) -> None:
    # four words have 4 + 3 + 2 + 1 spans, of 4 * 1 + 3 * 2 + 2 * 3 + 1 * 4 words
    rows = stsb_context.read(write_table(tmp_path, [("none same none none", "same", 5, 5.0)]))
    assert setups.cost_of_every_ngram(CROWDED, rows) == {"texts a row": 10, "tokens a row": 20}
    every = stsb_context.run(TokenMeans(CROWDED), rows, setups.per_ngram(None))
    assert (every["texts a row"], every["tokens a row"]) == (10, 20)
    assert stsb_context.unpack_scores(every["scores"]) == [1.0]


def test_a_part_of_the_rows_is_spread_and_half_of_it_is_woven(tmp_path: Path) -> None:
    path = write_table(
        tmp_path, [(f"none {number}", "none", 0, float(number)) for number in range(20)]
    )
    assert [row.score for row in stsb_context.read(path, 6)] == [0, 1, 6, 7, 12, 13]
    assert len(stsb_context.read(path, 21)) == 20


def test_two_results_are_compared_on_the_same_rows(tmp_path: Path) -> None:
    (tmp_path / "stsb-context").mkdir()
    rows = stsb_context.read(write_table(tmp_path / "stsb-context"))
    plain, crowded = (
        stsb_context.measure(TokenMeans(encoder), rows, pruned=2)
        for encoder in (TableEncoder(TABLE), TableEncoder(TABLE, crowd=2))
    )
    tested = compare_contexts(plain, crowded, "single pass", "single pass")
    assert tested["pearson"]["first"] == pytest.approx(
        plain["setups"]["single pass"]["pearson"], abs=1e-4
    )
    assert tested["spearman"]["second"] == pytest.approx(
        crowded["setups"]["single pass"]["spearman"], abs=1e-4
    )
    message = "there is no set-up 'per n-gram': the result has single pass"
    with pytest.raises(SystemExit, match=message):
        compare_contexts(plain, crowded, "single pass", "per n-gram")
    with pytest.raises(SystemExit, match="different rows"):
        compare_contexts(plain, {**crowded, "gold": "5.0000"}, "single pass", "single pass")


def test_means_are_the_product_s_phrase_vectors() -> None:
    encoder, phrases = TinyEncoder(), ["refund", "my money back", "a b c d"]
    assert means(encoder, phrases) == pytest.approx(
        np.array([query_vector(encoder, phrase) for phrase in phrases]), abs=1e-6
    )
    assert not means(encoder, ["..."]).any()


def test_spans_are_the_means_of_their_tokens() -> None:
    encoder, text = TinyEncoder(), "I would like my money back, please."
    encoding, query = encoder.encode([text])[0], query_vector(encoder, "money back")
    text_spans = Spans.from_encoding(text, encoding)
    by_hand = [
        encoding.vectors[a : b + 1].mean(axis=0)
        for a, b in zip(text_spans.first, text_spans.last, strict=True)
    ]
    cosines_by_hand = [
        float(query @ mean_vector / np.linalg.norm(mean_vector)) for mean_vector in by_hand
    ]
    cosines = text_spans.cosines(query[None])[:, 0]
    assert cosines == pytest.approx(cosines_by_hand, abs=1e-5)


def test_the_best_span_is_the_product_s() -> None:
    """Which codes words: the cosine may be off by a little."""
    encoder, text = TinyEncoder(), "I would like my money back, please."
    query = query_vector(encoder, "my old money")
    piece = Spans.from_encoding(text, encoder.encode([text])[0]).piece(query, 100)
    best = int(np.argmax(piece.cosines))
    best_span = best_spans(encoder, "my old money", text)[0]
    assert (int(piece.starts[best]) - 100, int(piece.ends[best]) - 100) == (
        best_span.start,
        best_span.end,
    )
    assert float(piece.cosines[best]) == pytest.approx(best_span.cosine, abs=0.01)


def test_sentences_end_behind_their_marks() -> None:
    text = " One. Two?! Three"
    assert [text[start:end] for start, end in sentences(text)] == ["One.", "Two?!", "Three"]


@pytest.mark.data
def test_the_rows_beside_the_checkout_are_read_whole() -> None:
    rows = stsb_context.read(DATA / stsb_context.FILE)
    assert len(rows) == 1024
    assert all(row.context[row.start : row.end] == row.target for row in rows)


class LongSpanEncoder(TableEncoder):
    """An encoder whose model adds .2 ln(words) to the cosine of a span."""

    def load_prior(self, dimension: int) -> SpanPrior:
        vectors, units = np.zeros((2 * dimension, 1), np.float32), np.zeros(1, np.float32)
        even = BoundaryModel(vectors, units, units, 0.0)
        return SpanPrior(even, ends=0.0, inside=0.0, length=0.2)


def test_a_model_with_a_prior_is_also_measured_by_its_score(tmp_path: Path) -> None:
    """By cosine "same" is best, 1; by score "same high": 1.8 / sqrt(3.6) + .2 ln(2) = 1.0873."""
    (tmp_path / "stsb-context").mkdir()
    rows = [("same high none", "same high", 0, 5.0), ("none none", "none", 0, 0.0)]
    write_table(tmp_path / "stsb-context", rows)
    items = stsb_context.read(tmp_path / stsb_context.FILE)
    plain, taught = (
        stsb_context.measure(TokenMeans(encoder), items)["setups"]
        for encoder in (TableEncoder(TABLE), LongSpanEncoder(TABLE))
    )
    assert "single pass, by score" not in plain
    assert taught["single pass"]["scores"] == plain["single pass"]["scores"]
    by_score = taught["single pass, by score"]
    assert stsb_context.unpack_scores(by_score["scores"])[0] == pytest.approx(1.0873, abs=0.002)
    assert (plain["single pass"]["found"], by_score["found"]) == (0, 1)
