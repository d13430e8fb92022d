"""Short codes: how they are rounded, multiplied and looked up."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra import numpy as arrays
from numpy.typing import NDArray

from hybrid_search.backends import short_vectors
from hybrid_search.backends.embedded.short_code_search import ShortCodeSearch
from hybrid_search.backends.embedded.short_codes import (
    LAYERS,
    WORDS,
    LayerCodes,
    ShortCodes,
    shorten_query,
)
from hybrid_search.backends.embedded.word_lists import WordLists, find_nearest
from hybrid_search.backends.short_vectors import Layer
from hybrid_search.text import codebook
from hybrid_search.text.types import Floats

DIMENSION = 288
LAYER_IDS = [f"{layer.bits} bits" for layer in LAYERS]


def random_vectors(rows: int, seed: int = 0) -> Floats:
    """Return random unit vectors."""
    vectors = np.random.default_rng(seed).normal(size=(rows, DIMENSION))
    unit: Floats = (vectors / np.linalg.norm(vectors, axis=1, keepdims=True)).astype(np.float32)
    return unit


def make_codes(passages: int, windows: int = 3) -> ShortCodes:
    """Return short codes of passages that have equally many windows in each layer."""
    layers = []
    for number, layer in enumerate(LAYERS):
        codes = short_vectors.encode(random_vectors(passages * windows, number), layer)
        layers.append(LayerCodes(np.full(passages, windows, np.int32), codes))
    centroids = np.arange(passages * windows, dtype=np.uint16) % 7
    return ShortCodes(np.arange(10, 10 + passages), tuple(layers), centroids)


def cosines(vectors: Floats, query: Floats, layer: Layer) -> NDArray[np.float64]:
    """Return the cosines of vectors and query, all cut to the numbers of a layer."""
    cut, cut_query = vectors[:, : layer.numbers], query[: layer.numbers]
    lengths = np.linalg.norm(cut, axis=1) * np.linalg.norm(cut_query)
    products: NDArray[np.float64] = cut.astype(np.float64) @ cut_query / lengths
    return products


@given(arrays.arrays(np.int8, (5, 8), elements=st.integers(-7, 7)))
def test_codes_of_four_bits_are_packed_and_unpacked(codes: NDArray[np.int8]) -> None:
    layer = Layer("1/1", 8, 4, 2.5)
    packed = short_vectors.pack(codes, layer)
    assert packed.shape == (5, 4)
    assert np.array_equal(short_vectors.unpack(packed, layer), codes)


@pytest.mark.parametrize("layer", LAYERS, ids=LAYER_IDS)
def test_all_codes_of_a_layer_have_nearly_the_same_length(layer: Layer) -> None:
    codes = short_vectors.unpack(short_vectors.encode(random_vectors(500), layer), layer)
    lengths = np.linalg.norm(codes.astype(np.float64), axis=1)
    assert lengths.std() / lengths.mean() < 0.01


@pytest.mark.parametrize("layer", LAYERS, ids=LAYER_IDS)
def test_scores_are_the_cosines_of_the_nearest_windows(layer: Layer) -> None:
    passages, windows = 200, 3
    codes, number = make_codes(passages, windows), LAYERS.index(layer)
    query = random_vectors(1, seed=7)[0]
    scores = ShortCodeSearch(codes).score(shorten_query(query), number, np.arange(passages))
    exact = cosines(random_vectors(passages * windows, number), query, layer)
    expected = exact.reshape(passages, windows).max(axis=1)
    # Rounding a number is an error of 1 / sqrt(12) of a step, in root mean squares of the vector.
    # In a cosine it is 1 / sqrt(numbers) of that: .0081 with 4 bits, .0012 with 8. Query and vector
    # have one each, the codes' length is off by less than 1%; five times that is allowed.
    error = layer.clip / layer.largest / np.sqrt(12 * layer.numbers)
    allowed = 5 * np.sqrt(2) * error + 0.01 * expected.max()
    assert np.abs(scores - expected).max() < allowed


def test_the_first_layer_of_all_is_as_the_first_layer_of_some() -> None:
    search = ShortCodeSearch(make_codes(50))
    queries = shorten_query(random_vectors(1, seed=7)[0])
    rows = np.array([3, 4, 30, 49])
    assert np.array_equal(search.score_all(queries)[rows], search.score(queries, 0, rows))


@pytest.mark.parametrize("layer", range(len(LAYERS)), ids=LAYER_IDS)
def test_most_passages_have_the_scores_of_a_few_at_a_time(layer: int) -> None:
    search = ShortCodeSearch(make_codes(50))
    queries = shorten_query(random_vectors(1, seed=7)[0])
    most = np.delete(np.arange(50), 7)
    few_at_a_time = [search.score(queries, layer, rows) for rows in np.split(most, 7)]
    assert np.array_equal(search.score(queries, layer, most), np.concatenate(few_at_a_time))


def test_vectors_that_have_fewer_numbers_than_a_layer_are_compared_by_those() -> None:
    vectors = random_vectors(40)[:, :16]
    vectors /= np.linalg.norm(vectors, axis=1, keepdims=True)
    for number, layer in enumerate(LAYERS):
        codes = LayerCodes(np.ones(40, np.int32), short_vectors.encode(vectors, layer))
        search = ShortCodeSearch(
            ShortCodes(np.arange(40), (codes,) * len(LAYERS), np.zeros(40, np.uint16))
        )
        assert int(search.score(shorten_query(vectors[17]), number, np.arange(40)).argmax()) == 17


def test_a_passage_is_looked_up_by_its_number() -> None:
    codes = make_codes(20)
    stored = ShortCodeSearch(codes).find(15)
    assert stored is not None
    assert stored.passages.tolist() == [15]
    assert np.array_equal(stored.layers[1].codes, codes.layers[1].codes[15:18])
    assert np.array_equal(stored.centroids, codes.centroids[15:18])
    assert ShortCodeSearch(codes).find(9) is None
    assert ShortCodeSearch(codes).find(30) is None


def test_every_word_is_in_the_list_of_its_centroid_and_in_no_other() -> None:
    codes = make_codes(20)
    lists = WordLists.from_centroids(codes.centroids, 9)
    assert sorted(lists.words.tolist()) == list(range(60))
    for centroid in range(9):
        own = lists.words[lists.starts[centroid] : lists.starts[centroid + 1]]
        assert own.tolist() == np.flatnonzero(codes.centroids == centroid).tolist()
    assert lists.sizes.tolist() == np.bincount(codes.centroids, minlength=9).tolist()


def test_the_lists_of_all_centroids_score_every_passage_as_all_its_words_do() -> None:
    search = ShortCodeSearch(make_codes(50))
    queries = shorten_query(random_vectors(1, seed=7)[0])
    everything = np.arange(50)
    rows, scores = search.score_listed(queries, search.list_words(7), np.arange(7))
    assert np.array_equal(rows, everything)
    assert np.array_equal(scores, search.score(queries, WORDS, everything))


def test_some_lists_score_only_passages_that_have_a_word_in_them() -> None:
    search = ShortCodeSearch(make_codes(50))
    queries = shorten_query(random_vectors(1, seed=7)[0])
    rows, scores = search.score_listed(queries, search.list_words(7), np.array([2, 5]))
    owners = np.flatnonzero(np.isin(search.codes.centroids, [2, 5])) // 3
    assert np.array_equal(rows, np.unique(owners))
    assert np.all(scores <= search.score(queries, WORDS, rows))
    nothing = search.score_listed(queries, search.list_words(7), np.zeros(0, np.intp))
    assert [len(part) for part in nothing] == [0, 0]


def test_the_nearest_centroids_are_as_many_as_have_the_words() -> None:
    used = codebook.read_centroids(
        np.random.default_rng(3).integers(-127, 127, (20, DIMENSION), np.int8), DIMENSION
    )
    sizes = np.arange(20)
    vector = codebook.turn(used.centroids[4:5])[0]
    assert find_nearest(vector, used, sizes, 1).tolist() == [4]
    nearest = find_nearest(vector, used, sizes, 50)
    assert sizes[nearest].sum() >= 50 > sizes[nearest[:-1]].sum()
    assert len(find_nearest(vector, used, sizes, 1000)) == 20
