"""Words of a file of codes: each in one list, and compared as the passages' word codes are."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from numpy.typing import NDArray

from hybrid_search.backends.embedded import word_search
from hybrid_search.backends.embedded.codes_file import UNFINISHED, CodesBuilder, CodesFile
from hybrid_search.backends.embedded.word_lists import LEVELS, WordLists, choose_lists, expand
from hybrid_search.backends.embedded.word_search import LENGTHS, UNKNOWN, WordSearch
from hybrid_search.text import codebook, spans, word_codes
from hybrid_search.text.types import Codebook, Floats, PassageTokens, WordCodes
from hybrid_search.text.word_vectors import RoughWordQuery
from tests.helpers.random_codes import unit_query

DIMENSION, BITS, PASSAGES = 32, 2, 40
OFF = 0.01
"""How far a rough cosine may be off: a number of the query by a 254th of the largest.

In 32 numbers of up to .5 that is .0019 times their levels' length of about 1, and the norm of a
span, a byte, is off by up to a fiftieth where words cancel each other out to a tenth.
"""


def make_codes(seed: int, words: int = 30) -> WordCodes:
    """Return the codes of a passage of two parts, between two words of which are tokens of none."""
    random = np.random.default_rng(seed)
    counts = np.concatenate([spans.counts(words, words), spans.counts(4, 4)])
    first = np.arange(len(counts)) + (np.arange(len(counts)) > 7)
    places = np.arange(len(counts)) * 4
    columns = np.stack([places, places + 3, first, first + 1], axis=1).astype(np.int32)
    vectors = random.standard_normal((int(first[-1]) + 1, DIMENSION)) + random.standard_normal(
        DIMENSION
    )
    tokens = PassageTokens(vectors.astype(np.float32), columns, counts)
    return word_codes.pack(tokens, make_codebook(), BITS)


def make_codebook() -> Codebook:
    codes = np.random.default_rng(7).integers(-127, 128, (50, DIMENSION)).astype(np.int8)
    return codebook.remember(codebook.read_centroids(codes, DIMENSION))


def make_query(seed: int) -> RoughWordQuery:
    return RoughWordQuery(unit_query(seed, DIMENSION), make_codebook(), BITS)


@pytest.fixture
def file(tmp_path: Path) -> CodesFile:
    """A file of `PASSAGES` passages, numbered from 10."""
    return write_file(tmp_path, [word_codes.to_bytes(make_codes(n)) for n in range(PASSAGES)])


def write_file(folder: Path, stored: list[bytes]) -> CodesFile:
    builder = CodesBuilder(folder / UNFINISHED, "of this index")
    for number, data in enumerate(stored, 10):
        builder.add(number, number, f"document {number}", data)
    return CodesFile(builder.seal(folder, 10, 9 + len(stored)), "of this index")


def open_search(file: CodesFile) -> WordSearch:
    return WordSearch(file, DIMENSION, BITS)


def all_lists() -> NDArray[np.bool_]:
    return np.ones(LEVELS * len(make_codebook().centroids), np.bool_)


def best_cosines(vector: Floats, lengths: tuple[int, ...]) -> list[float]:
    """Return the best cosine of each passage's spans of so many words, from its word codes."""
    best = []
    for number in range(PASSAGES):
        codes = make_codes(number)
        first, last = spans.bounds(codes.counts)
        cosines = word_codes.cosines(vector, codes)
        best.append(float(cosines[np.isin(last - first + 1, lengths)].max()))
    return best


def test_each_word_is_in_the_list_of_its_centroid_and_residual(file: CodesFile) -> None:
    order = np.argsort(file.lists.places)
    places = file.lists.places[order]
    keys = np.repeat(file.lists.keys, file.lists.counts)[order]
    expected = []
    for number, start in enumerate(file.starts.tolist()):
        codes = make_codes(number)
        for row in codes.rows[codes.counts > 0].tolist():
            level = int(codes.residual_parts[row]) // (256 // LEVELS)
            # the header has 24 bytes, a row 8 and 32 numbers of 2 bits
            expected.append((start + 24 + 16 * row, LEVELS * int(codes.centroids[row]) + level))
    assert list(zip(places.tolist(), keys.tolist(), strict=True)) == expected


def test_all_words_give_each_passage_the_cosine_of_its_best(
    file: CodesFile, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(word_search, "WORDS_TOGETHER", 100)
    passages, cosines = open_search(file).score_words(make_query(1), all_lists(), None)
    assert passages.tolist() == list(range(PASSAGES))
    np.testing.assert_allclose(cosines, best_cosines(unit_query(1, DIMENSION), (1,)), atol=OFF)


def test_some_lists_score_only_passages_that_have_a_word_in_them(file: CodesFile) -> None:
    search = open_search(file)
    are_read = np.zeros_like(all_lists())
    are_read[search.lists.keys[:3]] = True
    passages, cosines = search.score_words(make_query(1), are_read, None)
    owners = np.searchsorted(file.ends, search.lists.find(are_read), side="right")
    assert passages.tolist() == np.unique(owners).tolist()
    assert np.all(cosines <= search.score_words(make_query(1), all_lists(), None)[1][passages])
    usable = np.arange(PASSAGES) % 2 == 0
    even, cosines_of_even = search.score_words(make_query(1), are_read, usable)
    assert even.tolist() == [passage for passage in passages.tolist() if passage % 2 == 0]
    assert np.array_equal(cosines_of_even, cosines[passages % 2 == 0])
    nothing = search.score_words(make_query(1), np.zeros_like(are_read), usable)
    assert [len(part) for part in nothing] == [0, 0]


def test_spans_of_some_lengths_are_compared(
    file: CodesFile, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(word_search, "PASSAGES_TOGETHER", 7)
    found = open_search(file).score_spans(make_query(1), np.arange(PASSAGES))
    np.testing.assert_allclose(
        found, best_cosines(unit_query(1, DIMENSION), (1, *LENGTHS)), atol=OFF
    )
    few = open_search(file).score_spans(make_query(1), np.array([3, 17]))
    np.testing.assert_allclose(few, found[[3, 17]], atol=1e-6)
    assert len(open_search(file).score_spans(make_query(1), np.zeros(0, np.intp))) == 0


def test_a_passage_with_changed_codes_is_proposed_so_that_it_is_noticed(tmp_path: Path) -> None:
    sound = word_codes.to_bytes(make_codes(0))
    file = write_file(tmp_path, [sound, b"", b"XXXX" + sound[4:], sound[:200], sound])
    found = open_search(file).score_spans(make_query(1), np.arange(5))
    assert found[1:4].tolist() == [UNKNOWN] * 3
    assert found[0] == pytest.approx(found[4])
    assert found[0] < UNKNOWN


def test_lists_are_read_the_nearest_first_and_those_with_long_residuals_sooner() -> None:
    products = np.array([0.9, 0.1, 0.2], np.float32)
    counts = np.zeros(3 * LEVELS, np.int64)
    near, far, uncertain = 0 * LEVELS + 3, 1 * LEVELS + 3, 2 * LEVELS + 7
    counts[[near, far, uncertain]] = 10
    # .9 * .93 + .4 * .44 = 1.01; .2 * .48 + .4 * .94 = .47; .1 * .91 + .4 * .44 = .27
    for words, expected in ((1, [near]), (11, [near, uncertain]), (99, [near, far, uncertain])):
        are_read = choose_lists(products, counts, words)
        assert np.flatnonzero(are_read).tolist() == sorted(expected)


def test_ranges_are_written_out() -> None:
    assert expand(np.array([5, 0, 7]), np.array([2, 0, 3])).tolist() == [5, 6, 7, 8, 9]
    assert expand(np.zeros(0, np.int64), np.zeros(0, np.int64)).tolist() == []


def test_no_passage_has_no_lists() -> None:
    lists = WordLists.from_words([], [])
    assert [len(lists.keys), len(lists.places)] == [0, 0]
    assert len(lists.find(np.ones(LEVELS, np.bool_))) == 0
