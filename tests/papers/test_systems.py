"""The systems of the papers' tables without weights, the registry, and what is missing."""

from __future__ import annotations

import math
from argparse import ArgumentTypeError
from collections.abc import Sequence
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from benchmarks.quality import setups, stsb_context
from benchmarks.quality.systems import Scorer, SpanEncoder, TextEncoder, TokenMeans, span_means
from hybrid_search.text.types import Encoding, Floats
from papers import evaluations
from papers.__main__ import parse_columns
from papers.mcphrasy.embedder import Embedder
from papers.mcphrasy.system import McPhraSy
from papers.systems import edit_distance, glove, registry
from papers.systems.bm25 import Bm25
from papers.systems.densephrases import end_vectors
from papers.systems.huggingface import join_windows
from tests.helpers.table_encoder import TableEncoder

# --- what has no weights ---


def test_bm25_by_hand() -> None:
    # 3 documents of mean length 2; "a" is in one: idf log(2.5 / 1.5); "c" in none, which counts as
    # one
    system = Bm25(["a b", "b b", "b d"])
    idf, norm = math.log(2.5 / 1.5), 1.5 * (1 - 0.75 + 0.75 * 4 / 2)
    scores = system.scores(["A", "a c", "c c", "z"], ["a a x y", "a a x y", "a c x y", "a"])
    twice, once = idf * 2 * 2.5 / (2 + norm), idf * 1 * 2.5 / (1 + norm)
    # a term of the query counts as often as it is there
    assert scores == pytest.approx([twice, twice, 2 * once, 0.0], abs=1e-6)


def test_an_edit_distance_is_a_share_of_the_longer_text_in_whatever_case() -> None:
    assert edit_distance.EditDistance().scores(
        ["Abc", "abc", ""], ["abC", "xbcd", ""]
    ) == pytest.approx([1.0, 0.5, 1.0])


def plain_distance(a: str, b: str) -> int:
    """The textbook's recursion."""
    if not a or not b:
        return len(a) + len(b)
    by_deletion = plain_distance(a[1:], b) + 1
    by_insertion = plain_distance(a, b[1:]) + 1
    by_replacement = plain_distance(a[1:], b[1:]) + (a[0] != b[0])
    return min(by_deletion, by_insertion, by_replacement)


@given(st.text("abc", max_size=5), st.text("abc", max_size=5))
def test_edit_distance_is_the_textbook_s(a: str, b: str) -> None:
    assert edit_distance.distance(a, b) == edit_distance.distance(b, a) == plain_distance(a, b)


def write_vectors(path: Path, text: str) -> Path:
    path.write_text(text, encoding="utf-8")
    return path


def test_glove_is_read_and_a_word_has_one_vector_everywhere(tmp_path: Path) -> None:
    system = TokenMeans(
        glove.read(
            write_vectors(tmp_path / "glove.txt", "refund 1 0\nThe 0 2\n. . . 5 5\nplease 0 1\n")
        )
    )
    assert system.encode_texts(
        ["Refund", "refund please", "nothing known"]
    ).tolist() == pytest.approx(
        [pytest.approx(vector) for vector in ([1, 0], [math.sqrt(0.5), math.sqrt(0.5)], [0, 0])]
    )
    [span_vectors] = system.encode_spans(["The unknown refund"], [[(0, 3), (4, 11), (0, 18)]])
    assert span_vectors.tolist() == [
        pytest.approx(vector) for vector in ([0, 1], [0, 0], [1 / math.sqrt(5), 2 / math.sqrt(5)])
    ]


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("a 1 2\nb 1\n", "line 2: not a word and 2 numbers"),
        ("a\n", "line 1: not a word and some numbers"),
    ],
)
def test_a_file_that_is_not_glove_s_is_refused(tmp_path: Path, text: str, message: str) -> None:
    with pytest.raises(SystemExit, match=message):
        glove.read(write_vectors(tmp_path / "glove.txt", text))


# --- spans ---


def test_the_ends_of_a_span() -> None:
    encoding = Encoding(
        np.array([[3, 0], [0, 1], [0, 4]], dtype=np.float32),
        np.array([[0, 1], [2, 3], [4, 5]], dtype=np.int32),
    )
    span_vectors = end_vectors(encoding, [(0, 5), (2, 3), (5, 6)])
    assert span_vectors.tolist() == [
        pytest.approx(vector)
        for vector in ([0.6, 0, 0, 0.8], [0, math.sqrt(0.5), 0, math.sqrt(0.5)], [0, 0, 0, 0])
    ]
    assert span_means(encoding, [(0, 5), (5, 6)]).tolist() == [
        pytest.approx([3 / math.sqrt(34), 5 / math.sqrt(34)]),
        [0, 0],
    ]


def test_windows_that_overlap_are_joined_without_a_token_twice() -> None:
    offsets = np.array([[i, i + 1] for i in range(10)], dtype=np.int32)
    numbers = np.arange(10, dtype=np.float32)[:, None]
    windows = [
        (numbers[a:b] + 100 * row, offsets[a:b])
        for row, (a, b) in enumerate([(0, 5), (3, 8), (6, 10)])
    ]
    vectors, places = join_windows(windows)
    assert places.tolist() == offsets.tolist()
    # of two shared tokens each window keeps the one further inside
    assert vectors[:, 0].tolist() == [0, 1, 2, 3, 104, 105, 106, 207, 208, 209]


@given(st.lists(st.sampled_from(["a", "bc", "d'e"]), max_size=8), st.integers(1, 9))
def test_places_are_all_spans_of_whole_words(words: list[str], longest: int) -> None:
    text = " ".join(words)
    count = len(words)
    starts = [sum(map(len, words[:i])) + i for i in range(count)]
    ends = [start + len(word) for start, word in zip(starts, words, strict=True)]
    by_hand = [
        (starts[i], ends[j]) for i in range(count) for j in range(i, min(i + longest, count))
    ]
    assert setups.list_spans(text, longest) == by_hand


# --- set-ups by what a system is able to ---


class FirstLetterEncoder:
    """Vectors of whole texts alone: by their first letter."""

    def encode_texts(self, texts: Sequence[str]) -> Floats:
        return np.array(
            [[1, 0] if text[:1].lower() == "q" else [0.6, 0.8] for text in texts], dtype=np.float32
        )


def write_table(folder: Path, heading: str = "query\tcontext\ttarget\tscore") -> Path:
    (folder / "stsb-context").mkdir(exist_ok=True)
    rows = [
        "query\tnone query so\tquery\t5",
        "query\tquery none\tquery\t4",
        "query\tnone none\tnone\t0",
        "query\tnone so\tso\t1",
    ]
    path = folder / stsb_context.FILE
    path.write_text("\n".join([*([heading] if heading else []), *rows]) + "\n", encoding="utf-8")
    return path


def read_dev(folder: Path) -> list[stsb_context.Row]:
    """What stands in the table of `folder`."""
    return stsb_context.read(folder / stsb_context.FILE)


def test_a_system_is_measured_in_the_set_ups_that_it_is_able_to(tmp_path: Path) -> None:
    write_table(tmp_path)
    spans = TokenMeans(TableEncoder({"query": (1, 0, 0)}))
    assert isinstance(spans, SpanEncoder)
    assert not isinstance(FirstLetterEncoder(), SpanEncoder)
    assert isinstance(FirstLetterEncoder(), TextEncoder)
    assert isinstance(edit_distance.EditDistance(), Scorer)
    assert list(
        stsb_context.measure(edit_distance.EditDistance(), read_dev(tmp_path))["setups"]
    ) == ["text scores"]
    assert list(stsb_context.measure(FirstLetterEncoder(), read_dev(tmp_path))["setups"]) == [
        "target alone",
        "full context",
    ]
    assert (
        "per n-gram, all"
        in stsb_context.measure(FirstLetterEncoder(), read_dev(tmp_path), pruned=None)["setups"]
    )
    assert list(stsb_context.measure(spans, read_dev(tmp_path))["setups"])[:2] == [
        "single pass",
        "sentence-wise",
    ]


def test_the_longest_span_is_swept(tmp_path: Path) -> None:
    """Spans of ten words find a query of six completely.

    Spans of five lose a word, and with it some of the direction.
    """
    system = TokenMeans(TableEncoder({"go": (1, 0, 0), "home": (0, 0.6, 0.8)}))
    rows = [
        f"{'go ' * 5}home\tzero {'go ' * 5}home\thome\t5",
        "go\tgo zero\tgo\t1",
        "go\tzero\tzero\t0",
    ]
    (tmp_path / "stsb-context").mkdir()
    (tmp_path / stsb_context.FILE).write_text(
        "\n".join(["query\tcontext\ttarget\tscore", *rows]) + "\n"
    )
    dev_rows = read_dev(tmp_path)
    swept = setups.sweep(system, [row.query for row in dev_rows], dev_rows)
    # the query is 5 go + home; of five words the best are 4 go + home: (5 * 4 + 1) / (sqrt(25 + 1)
    # * sqrt(16 + 1))
    assert swept[5][0].score == pytest.approx(21 / math.sqrt(26 * 17))
    assert [answers[0].score for answers in swept.values()][1:] == pytest.approx([1.0] * 6)
    assert list(stsb_context.measure(system, read_dev(tmp_path), sweep=True)["longest"]) == [
        "5",
        "10",
        "15",
        "20",
        "25",
        "30",
        "35",
    ]


def test_a_table_of_other_columns_and_one_without_a_heading(tmp_path: Path) -> None:
    numbered = {"query": "0", "context": "1", "target": "2", "score": "3"}
    rows = stsb_context.read(write_table(tmp_path, ""), columns=numbered)
    assert [(row.start, row.end, row.score) for row in rows] == [
        (5, 10, 5),
        (0, 5, 4),
        (0, 4, 0),
        (5, 7, 1),
    ]
    renamed = write_table(tmp_path, "origin\ttext\tphrase\tgold")
    column_names = {"query": "origin", "context": "text", "target": "phrase", "score": "gold"}
    assert stsb_context.read(renamed, columns=column_names) == rows
    with pytest.raises(
        SystemExit,
        match="row 1: no column query, context, target, score: it has "
        "origin, text, phrase, gold; name them by --columns",
    ):
        stsb_context.read(renamed)
    renamed.write_text("query\tcontext\ttarget\tscore\nq\tnothing of it\tthe target\t1\n")
    message = "row 1: the context does not hold the target 'the target'"
    with pytest.raises(SystemExit, match=message):
        stsb_context.read(renamed)


# --- the registry ---


@pytest.mark.parametrize("name", [name for name, entry in registry.SYSTEMS.items() if entry.needs])
def test_a_system_without_its_weights_says_what_it_needs(
    name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("benchmarks.results.WEIGHTS", tmp_path)
    with pytest.raises(SystemExit, match=r"needs|give --weights|not installed"):
        registry.load(
            name, str(tmp_path / "nowhere") if registry.SYSTEMS[name].weights else None, tmp_path
        )


def test_what_comes_with_the_project_is_loaded(tmp_path: Path) -> None:
    assert isinstance(registry.load("slice", None, tmp_path), SpanEncoder)
    assert isinstance(registry.load("edit-distance", None, tmp_path), Scorer)
    (tmp_path / "docs.txt").write_text("one document\nanother\none more\n")
    bm25 = registry.load("bm25", str(tmp_path / "docs.txt"), tmp_path)
    assert isinstance(bm25, Scorer)
    assert bm25.scores(["another"], ["another one"])[0] > 0


def test_another_table_is_measured_by_the_command_s_columns(tmp_path: Path) -> None:
    write_table(tmp_path, "origin\ttext\tphrase\tgold").rename(tmp_path / "authors.tsv")
    names = parse_columns("query=origin,context=text,target=phrase,score=gold")
    measured = evaluations.measure_stsb_context(
        edit_distance.EditDistance(), tmp_path, tmp_path / "authors.tsv", names
    )
    assert (measured["file"], measured["setups"]["text scores"]["rows"]) == ("authors.tsv", 4)
    assert "gold" not in measured  # the data stay where they are
    assert parse_columns("score=gold")["query"] == "query"
    message = "unknown column querry: give NAME=COLUMN for query,"
    with pytest.raises(ArgumentTypeError, match=message):
        parse_columns("querry=origin")


def test_what_a_training_here_has_left_is_loaded(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("benchmarks.results.WEIGHTS", tmp_path)
    with pytest.raises(
        SystemExit,
        match=r"mcphrasy needs embedder.npz of python -m papers.mcphrasy.training:"
        " give it as --weights",
    ):
        registry.load("mcphrasy", None, tmp_path)
    (tmp_path / "mcphrasy").mkdir()
    none = np.zeros(2, dtype=np.float32)
    Embedder(
        "another base",
        np.zeros((6, 2), dtype=np.float32),
        none,
        np.zeros((2, 2), dtype=np.float32),
        none,
    ).save(tmp_path / "mcphrasy/embedder.npz")
    with pytest.raises(
        SystemExit, match="trained on vectors of another base"
    ):  # it is read: the base that it was made for is not the one that ships
        registry.load("mcphrasy", None, tmp_path)


def test_the_variants_of_mcphrasy_on_the_same_models_share_what_they_have_read(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("benchmarks.results.WEIGHTS", tmp_path)
    alone = registry.load("mcphrasy-mask", None, tmp_path)
    assert isinstance(alone, McPhraSy)
    own = np.zeros(1, dtype=np.float32)
    Embedder(
        alone.store.base.name,
        np.zeros((2, 1), dtype=np.float32),
        own,
        np.zeros((1, 1), dtype=np.float32),
        own,
    ).save(tmp_path / "embedder.npz")
    for variant in ("mcphrasy", "mcphrasy-emb", "mcphrasy-average"):
        system = registry.load(variant, str(tmp_path / "embedder.npz"), tmp_path)
        assert isinstance(system, McPhraSy)
        assert system.store is alone.store
