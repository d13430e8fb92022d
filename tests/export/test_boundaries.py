"""The training of the span prior: labels, marked examples, both fits, the file; without torch."""

from __future__ import annotations

import io
from dataclasses import replace
from pathlib import Path
from random import Random

import numpy as np
import pytest
from scipy.optimize import check_grad

from export.boundaries import composed, gaps, marked, natural, network, npz, weights
from export.boundaries.corpora import Request
from export.boundaries.encoded import encode_texts
from export.boundaries.marked import MarkedExample
from hybrid_search.text.boundaries import (
    BoundaryModel,
    boundary_probabilities,
    encode_boundaries,
)
from hybrid_search.text.span_prior import SpanPrior
from hybrid_search.text.words import words
from tests.helpers.random_codes import pack
from tests.helpers.table_encoder import TableEncoder
from tests.helpers.tiny_encoder import TinyEncoder

TURN = "My card is gone, so I need a new one. It costs 3.50, doesn't it?"


def marked_words(example: MarkedExample) -> str:
    bounds = words(example.text)[example.first : example.after]
    return example.text[bounds[0, 0] : bounds[-1, 1]]


# --- labels ---


def test_a_text_as_recognised_has_the_words_and_the_labels_of_the_text_as_written() -> None:
    written, recognised = gaps.label_text(7, "ours", TURN)
    assert recognised.text == "my card is gone so i need a new one it costs 3.50 doesn't it"
    before_marks = ["gone", "one", "3.50"]
    bounds = words(TURN).tolist()
    ends_clause = [TURN[start:end] in before_marks for start, end in bounds[:-1]]
    assert written.labels.tolist() == recognised.labels.tolist() == ends_clause
    assert gaps.find_marks(recognised.text, words(recognised.text)).any() is np.False_


def test_of_a_marked_clause_the_ends_and_what_is_inside_are_known() -> None:
    text = "hello i want my money back now"
    start = text.index("i want")
    (written, _) = gaps.label_text(1, "ours", text, (start, text.index(" now")))
    #         hello | i     want   my     money  back | now
    assert written.labels.tolist() == [True, False, False, False, False, True]
    assert written.known.all()
    (written, _) = gaps.label_text(1, "ours", text, (start, text.index(" my")))
    assert written.labels.tolist() == [True, False, True, False, False, False]
    assert written.known.tolist() == [True, True, True, False, False, False]


def test_a_long_text_is_cut_and_a_short_or_repeated_one_left_out() -> None:
    long = ", ".join(f"word{number}" for number in range(100))
    texts = [TURN, TURN, "Yes, please.", long]
    short, cut = sorted(gaps.select_texts(texts, 9, Random(1)), key=len)  # noqa: S311 (no secret)
    assert short == TURN
    assert len(words(cut)) == gaps.MOST_WORDS
    assert cut in long
    assert len(gaps.select_texts(texts, 1, Random(1))) == 1  # noqa: S311


# --- marked examples ---


def test_a_mark_has_the_words_that_it_overlaps_and_keeps_them_without_punctuation() -> None:
    start = TURN.index("need")
    example = marked.mark_place("new card", TURN, start, TURN.index(". It"))
    assert example
    assert marked_words(example) == "need a new one"
    (recognised,) = marked.recognise([example])
    assert marked_words(recognised) == "need a new one"
    assert "." not in recognised.text.split("one")[0]
    assert marked.mark_place("new card", TURN, 0, 0) is None
    assert marked.mark_place("new card", "word " * 30, 0, 150) is None  # longer than a span


def test_a_composed_turn_marks_the_request_of_its_intent() -> None:
    texts = {
        "lost card": ["I lost my card", "My card is gone"],
        "exchange rate": ["Which rate do you use?", "The rate was wrong."],
        "top up": ["How do I top up", "Can I top up by cheque?"],
    }
    requests = [Request(intent, text) for intent, group in texts.items() for text in group]
    turns = composed.compose_turns(requests, 50, Random(2))  # noqa: S311
    assert len(turns) == 50
    intents = {text.rstrip("?."): intent for intent, group in texts.items() for text in group}
    for example in turns:
        intent = intents[marked_words(example)]
        assert example.query == intent or intents[example.query.rstrip("?.")] == intent
        assert len(words(example.text)) > example.after - example.first
    by_name = sum(example.query in texts for example in turns)
    assert 20 <= by_name <= 48  # .6 of them, and then those that are not the request itself


def test_a_woven_sentence_is_marked_in_its_paragraph() -> None:
    pairs = [{"query": "The bridge was built in 1901 .", "positive": "Built in 1901 , it stands ."}]
    host = "Many birds live here, and they nest early. Nobody counts them at all these days."
    woven = composed.weave_sentences(pairs, [host], 30, Random(3))  # noqa: S311
    assert {marked_words(example) for example in woven} == {"The bridge was built in 1901"}
    assert len({example.text for example in woven}) > 3
    assert "Built in 1901, it stands" in {example.query for example in woven}


def test_an_answer_is_marked_among_its_neighbours() -> None:
    sentences = ["First one here.", "It was cold.", "They sang all night long!", "Then home."]
    row = {"question": "What did they do?", "sentences": sentences, "answers": [2]}
    two = {**row, "answers": [0, 2]}
    (example,) = composed.mark_answers([row, two], 9, Random(4))  # noqa: S311
    assert marked_words(example) == "They sang all night long"
    assert example.text == " ".join(sentences)


def test_the_clauses_nearest_to_the_intent_are_marked() -> None:
    encoder_ = TableEncoder({"refund": (1, 0, 0), "money": (1, 0, 0), "return": (1, 0, 0)})
    text = "hello there dear friends, I bought it here, money return money, thanks for all of it"
    requests = [Request("refund", text), Request("refund", "no clauses at all")]
    (example,) = natural.mark_nearest_clauses(encoder_, requests, 5, Random(5))  # noqa: S311
    assert marked_words(example) == "money return money"
    assert example.query == "refund"


def test_clauses_are_what_lies_between_punctuation() -> None:
    text = "well, it's 3.50 - no: 4.20 "
    clauses = [text[start:end] for start, end in natural.list_clauses(text)]
    assert clauses == ["well", "it's 3.50", "no", "4.20"]


# --- the network ---


def test_the_vectors_of_a_gap_are_those_of_the_tokens_around_it() -> None:
    tokens = encode_texts(TinyEncoder(), ["red green blue"])[0].cut(4)
    red, green, blue = tokens.vectors
    np.testing.assert_array_equal(
        gaps.gap_vectors(tokens), [np.concatenate([red, green]), np.concatenate([green, blue])]
    )
    no_tokens = replace(tokens, vectors=tokens.vectors[:0])
    np.testing.assert_array_equal(gaps.gap_vectors(no_tokens), np.zeros((2, 8)))


def label_stops(number: int, text: str) -> gaps.LabelledText:
    after_stop = np.array([word == "stop" for word in text.split()[:-1]])
    known = np.ones_like(after_stop)
    return gaps.LabelledText(number, "ours", gaps.RECOGNISED, text, after_stop, known)


def test_the_network_learns_where_clauses_end_and_becomes_the_products_model() -> None:
    """After the word "stop" a clause ends, whatever comes next."""
    random = Random(6)  # noqa: S311
    vocabulary = ["stop", "red", "green", "blue", "grey", "pink"]
    texts = [" ".join(random.choices(vocabulary, k=12)) for _ in range(400)]
    encodings = encode_texts(TinyEncoder(), texts)
    gap_examples = [
        network.LabelledEncoding(label_stops(number, encoded.text), encoded)
        for number, encoded in enumerate(encodings)
    ]
    train, test = network.separate_examples(gap_examples)
    assert (len(train), len(test)) == (350, 50)
    model = network.fit_boundaries(train, TinyEncoder.info.dimension, seed=1)
    assert network.measure_auc(test, model)["recognised"]["all"] > 0.99
    tokens = encode_texts(TinyEncoder(), ["red stop green blue"])[0].cut(8)
    gap_probabilities = boundary_probabilities(tokens, model)[1:-1]
    assert gap_probabilities[1] > 0.5 > max(gap_probabilities[0], gap_probabilities[2])


def test_vectors_of_any_scale_give_the_same_network() -> None:
    random = np.random.default_rng(7)
    vectors = random.standard_normal((600, 4)).astype(np.float32)
    labels = vectors[:, 0] > 0
    small, large = (network.fit_network(vectors * scale, labels, 1) for scale in (0.25, 4))
    np.testing.assert_allclose(small.hidden, 16 * large.hidden, rtol=2e-3, atol=1e-3)
    np.testing.assert_allclose(small.output, large.output, rtol=1e-3)


# --- the weights ---


def test_word_f1_of_spans_is_what_it_is_by_hand() -> None:
    example = MarkedExample("query", "a b c d e f", 2, 5)  # c d e
    first, after = np.array([2, 0, 3, 5]), np.array([5, 2, 4, 6])
    # the mark itself; nothing in common; one of three words, of 3 + 1; nothing
    by_hand = [1, 0, 2 * 1 / 4, 0]
    assert weights.compute_word_f1(first, after, example).tolist() == by_hand


def test_half_of_the_agreement_is_whether_a_span_is_right_where_the_core_is_known() -> None:
    """The clause is "c d e f", its core "d e"; one word may be missing or too many."""
    example = MarkedExample("query", "a b c d e f g h", 2, 6, core=(3, 5))
    first, after = np.array([2, 3, 1, 5, 0]), np.array([6, 4, 6, 8, 6])
    # all of it; "d" lacks one; "b" is one too many; "f g h" lacks both; "a b" are two too many
    word_f1 = np.array([1, 2 * 1 / 5, 2 * 4 / 9, 2 * 1 / 7, 2 * 4 / 10])
    agreement = weights.compute_agreement(first, after, example, word_f1.astype(np.float32))
    assert agreement == pytest.approx((word_f1 + np.array([1, 1, 1, 0, 0])) / 2)


def make_tables(count: int) -> list[weights.SpanTable]:
    """Return tables of random cosines; the span whose ends are boundaries is right."""
    random = np.random.default_rng(8)
    tables = []
    for _ in range(count):
        terms = random.uniform(0, 1, (6, 4)) * [0.3, 0.1, -0.5, 1.5]
        right = random.integers(6)
        terms[right, 1] = 2
        marked_span = np.eye(6, dtype=np.float32)[right]
        tables.append(weights.SpanTable(terms.astype(np.float32), marked_span, marked_span))
    return tables


def test_the_gradient_of_the_objective_is_that_of_its_value() -> None:
    tables = make_tables(5)
    objective = weights.Objective(tables, np.full(5, 0.2))
    error = check_grad(
        lambda point: objective.evaluate(point)[0],
        lambda point: objective.evaluate(point)[1],
        np.array([15.0, 2.0, 0.5, 1.0]),
    )
    assert error < 1e-6


def test_the_fitted_weights_choose_the_marked_spans() -> None:
    tables = make_tables(200)
    fitted, agreement = weights.fit_weights({"ours": tables})
    assert agreement > 0.95
    assert fitted[0] > 0.1
    assert weights.measure_word_f1(tables) < 0.4
    assert weights.measure_word_f1(tables, fitted) > 0.95


def test_all_sets_count_alike() -> None:
    """A set of 100 texts wants what a set of one forbids: neither wins by its number."""
    base = np.zeros((2, 4), dtype=np.float32)
    base[0, 1] = 1
    first, second = np.eye(2, dtype=np.float32)
    wants = weights.SpanTable(base, first, first)
    forbids = weights.SpanTable(base, second, second)
    (ends, *_), _ = weights.fit_weights({"many": [wants] * 100, "few": [forbids]})
    assert ends == pytest.approx(0, abs=1e-6)


def test_the_terms_of_a_span_add_up_to_the_products_prior() -> None:
    random = np.random.default_rng(9)
    dimension = TinyEncoder.info.dimension
    boundaries = BoundaryModel(
        random.standard_normal((2 * dimension, 3)).astype(np.float32),
        np.zeros(3, dtype=np.float32),
        np.ones(3, dtype=np.float32),
        -1.0,
    )
    (encoded,) = encode_texts(TinyEncoder(), [TURN])
    example = marked.mark_place("query", TURN, 0, 7)
    assert example
    query = np.ones(dimension, dtype=np.float32)
    table = weights.tabulate_spans(weights.EncodedExample(example, encoded, query), boundaries)
    tokens = encoded.cut(dimension)
    prior = SpanPrior(boundaries, 0.1, 0.03, 0.06).score_spans(
        pack(tokens, encode_boundaries(tokens, boundaries, TURN))
    )
    by_terms = table.terms[:, 1:] @ np.array([0.1, 0.03, 0.06], dtype=np.float32)
    np.testing.assert_allclose(by_terms, prior, atol=1e-3)  # stored in steps of 1/255
    assert table.word_f1[1] == 1  # "My card" is the second span of the first word


# --- the file ---


def make_prior(dimension: int) -> SpanPrior:
    random = np.random.default_rng(dimension)
    hidden = random.standard_normal((2 * dimension, 32)).astype(np.float16).astype(np.float32)
    bias, output = random.standard_normal((2, 32)).astype(np.float32)
    return SpanPrior(BoundaryModel(hidden, bias, output, 0.5), 0.25, 0.125, 0.0625)


def test_the_file_has_the_arrays_of_each_size_and_always_the_same_bytes(tmp_path: Path) -> None:
    priors = {8: make_prior(8), 4: make_prior(4)}
    npz.write_priors(tmp_path / "once.npz", priors)
    npz.write_priors(tmp_path / "again.npz", dict(reversed(priors.items())))
    content = (tmp_path / "once.npz").read_bytes()
    assert content == (tmp_path / "again.npz").read_bytes()
    with np.load(io.BytesIO(content), allow_pickle=False) as arrays:
        forms = {name: (array.shape, array.dtype.name) for name, array in arrays.items()}
        assert forms == {
            f"{name}.{size}": form
            for size in (4, 8)
            for name, form in {
                "hidden": ((2 * size, 32), "float16"),
                "hidden_bias": ((32,), "float32"),
                "output": ((32,), "float32"),
                "output_bias": ((), "float32"),
                "weights": ((4,), "float32"),
            }.items()
        }
        np.testing.assert_array_equal(arrays["hidden.8"], priors[8].boundaries.hidden)
        assert arrays["weights.4"].tolist() == [0.25, 0.125, 0.0625, 1.0]
