"""PiC, scored by hand: thresholds, ranked candidates, two senses of a phrase, selected spans."""

from __future__ import annotations

import gzip
import json
import math
import re
from collections.abc import Sequence
from itertools import count
from pathlib import Path
from typing import Any, cast

import numpy as np
import pytest

from benchmarks.quality.systems import Range, System, TokenMeans
from hybrid_search.text.types import Floats
from papers import evaluations
from papers.pic import candidates, classifier, files, ranking, selection, sense, similarity
from papers.pic.files import Pair, Search
from papers.systems.edit_distance import EditDistance
from tests.benchmarks.test_pic_similarity import make_pair
from tests.conftest import DATA
from tests.helpers.json_lines import write_rows
from tests.helpers.table_encoder import TableEncoder
from tests.helpers.tiny_encoder import TinyEncoder


def write_file(folder: Path, name: str, rows: Any) -> Path:
    """Below ``pic/``: a list of objects as lines, all else as JSON."""
    path = folder / "pic" / name
    path.parent.mkdir(exist_ok=True)
    text = "".join(json.dumps(row) + "\n" for row in rows) if ".jsonl" in name else json.dumps(rows)
    path.write_bytes(gzip.compress(text.encode()) if path.suffix == ".gz" else text.encode())
    return path


# --- phrase similarity ---

TUNED = list(
    zip(
        (0.9, 0.8, 0.7, 0.6, 0.5, 0.4, 0.3, 0.2, 0.1, 0.0),
        (1, 1, 0, 1, 1, 0, 1, 0, 0, 0),
        strict=True,
    )
)
"""From .9 down the threshold is right for 6, 7, 6, 7, 8, 7, 8, 7, 6 and 5 of the ten."""

TESTED = list(
    zip(
        (0.95, 0.85, 0.75, 0.65, 0.55, 0.45, 0.35, 0.25, 0.15, 0.05),
        (1, 1, 1, 1, 0, 0, 1, 1, 0, 0),
        strict=True,
    )
)
"""From .3 on the first seven are "the same": 7 are right. Same over other: 4 * 4 + 2 + 2 of 24
pairs.
"""

SPELLED = TableEncoder(
    {"big": (1, 0, 0)}
    | {
        f"w{round(100 * cosine)}": (cosine, math.sqrt(1 - cosine * cosine), 0)
        for cosine, _ in (*TUNED, *TESTED)
    },
    crowd=2,
)
"""The cosine of "big" and "w35" is .35; in a sentence of three words (.35 + 1) / 2."""


def make_graded_pairs(rows: Sequence[tuple[float, int]]) -> list[dict[str, object]]:
    return [make_pair(f"w{round(100 * cosine)}", label) for cosine, label in rows]


def test_of_equal_thresholds_the_lowest() -> None:
    scores, labels = (np.array(column) for column in zip(*TUNED, strict=True))
    assert similarity.threshold(scores, labels.astype(bool)) == 0.3
    # equal scores cannot be told apart
    assert similarity.threshold(np.array([0.5, 0.5, 0.2]), np.array([True, False, False])) == 0.5


def test_ten_pairs_by_hand(tmp_path: Path) -> None:
    write_file(tmp_path, "ps_train.json", make_graded_pairs(TUNED))
    write_file(tmp_path, "ps_dev.jsonl.gz", make_graded_pairs(TUNED[:2]))
    write_file(
        tmp_path,
        "ps_test.json",
        {
            "data": [
                *make_graded_pairs(TESTED),
                {**make_pair("w35", 1), "sentence2": "nothing of it"},
            ]
        },
    )
    result = similarity.measure(TokenMeans(SPELLED), tmp_path, classifiers=False)
    assert {name: result[name] for name in ("file", "rows", "left out", "tuned on")} == {
        "file": "ps_test.json",
        "rows": 10,
        "left out": 1,
        "tuned on": "ps_train.json, ps_dev.jsonl.gz",
    }
    for name, threshold in (("phrase", 0.3), ("phrase in context", 0.65)):
        figures = result["setups"][name]["cosine"]
        assert (figures["accuracy"]["mean"], figures["AUC"]) == (0.7, round(20 / 24, 4))
        assert figures["thresholds"] == pytest.approx([threshold])
        assert figures["accuracy"]["interval"][0] < 0.7 < figures["accuracy"]["interval"][1]


def test_a_system_without_vectors_is_scored_by_the_phrases_alone(tmp_path: Path) -> None:
    rows = [
        {**make_pair("word", number % 2), "phrase1": f"p{number}", "sentence1": f"a p{number} one"}
        for number in range(20)
    ]
    same = [
        {**row, "phrase2": f"{row['phrase1']}s", "sentence2": f"a {row['phrase1']}s one"}
        for row in rows
        if row["label"]
    ]
    write_file(
        tmp_path, "ps_test_sample.jsonl", [*same, *(row for row in rows if not row["label"])]
    )
    result = similarity.measure(EditDistance(), tmp_path)
    # one letter of three or four is another, so .67 or .75; of "p0" and "word" none can stay
    assert (result["file"], result["rows"], result["setups"].keys()) == (
        "ps_test_sample.jsonl",
        20,
        {"phrase"},
    )
    figures = result["setups"]["phrase"]["score"]
    assert (figures["AUC"], figures["accuracy"]) == (1.0, {"mean": 1.0, "interval": [1.0, 1.0]})


def make_pairs(count: int) -> list[Pair]:
    return [Pair(f"phrase {number % (count // 2)}", "x", "x", "x", 1) for number in range(count)]


def test_each_pair_is_tested_once_and_never_beside_its_phrase() -> None:
    pairs = make_pairs(60)
    splits = list(similarity.split_folds(pairs))
    assert sorted(np.concatenate([split.test for split in splits]).tolist()) == list(range(60))
    for split in splits:
        assert set(split.dev) <= set(split.train)
        assert len(split.train) + len(split.test) == 60
        assert len(split.dev) < len(split.train)
        assert not {pairs[i].phrase1 for i in split.train} & {pairs[i].phrase1 for i in split.test}


def test_a_classifier_is_not_trained_on_the_pairs_that_stop_it(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    fit_calls: list[tuple[list[int], list[int]]] = []

    class ConstantModel:
        epochs = 1

        def predict(self, features: Floats) -> Any:
            return np.ones(len(features), dtype=bool)

    def fit(features: Floats, labels: Any, train: Any, dev: Any) -> ConstantModel:
        fit_calls.append((train.tolist(), dev.tolist()))
        return ConstantModel()

    monkeypatch.setattr(classifier, "fit", fit)
    split = similarity.Split(np.arange(2, 8), np.array([6, 7]), np.array([0, 1]))
    figures = similarity.score_by_classifier(
        np.zeros((8, 4), dtype=np.float32), np.array([True, False] * 4), [split]
    )
    assert fit_calls == [([2, 3, 4, 5], [6, 7])]
    assert (figures["accuracy"]["mean"], figures["epochs"]) == (0.5, [1])


def test_too_few_phrases_are_no_cross_validation() -> None:
    with pytest.raises(SystemExit, match="2 pairs fall into 1 parts"):
        list(similarity.split_folds(make_pairs(2)))


# --- the classifier ---


def make_learnable_pairs(rows: int) -> tuple[Floats, Any]:
    """Return pairs of unit vectors of 8 numbers.

    Equal in meaning if the first numbers add up to more than 0.
    """
    vectors = np.random.default_rng(8).standard_normal((rows, 2, 8)).astype(np.float32)
    vectors /= np.linalg.norm(vectors, axis=2, keepdims=True)
    return vectors.reshape(rows, 16), vectors[:, :, 0].sum(axis=1) > 0


def test_the_classifier_learns_and_stops(monkeypatch: pytest.MonkeyPatch) -> None:
    network = pytest.importorskip("sklearn.neural_network")
    features, labels = make_learnable_pairs(1000)
    epochs, plain = count(), network.MLPClassifier.partial_fit
    monkeypatch.setattr(
        network.MLPClassifier,
        "partial_fit",
        lambda *args, **kwargs: (next(epochs), plain(*args, **kwargs))[1],
    )
    fitted = classifier.fit(features, labels, np.arange(600), np.arange(600, 800))
    assert next(epochs) == min(fitted.epochs + classifier.PATIENCE, classifier.EPOCHS)
    assert (fitted.predict(features[800:]) == labels[800:]).mean() > 0.8
    assert [weights.shape for weights in fitted.model.coefs_] == [(16, 256), (256, 1)]
    assert fitted.model.out_activation_ == "logistic"


def test_an_accuracy_that_stays_is_no_growth() -> None:
    pytest.importorskip("sklearn")
    features, labels = make_learnable_pairs(400)
    # of one pair it is 0 or 1
    fitted = classifier.fit(features, labels, np.arange(300), np.array([300]))
    assert fitted.predict(features[300:301])[0] == labels[300]
    assert fitted.epochs + classifier.PATIENCE < classifier.EPOCHS


def test_the_epoch_with_the_best_dev_accuracy_is_kept() -> None:
    pytest.importorskip("sklearn")
    features, labels = make_learnable_pairs(400)
    labels[300:] ^= True  # what is learned is wrong for dev: the longer, the more
    fitted = classifier.fit(features, labels, np.arange(300), np.arange(300, 400))
    assert fitted.epochs < 3
    assert (fitted.predict(features[300:]) == labels[300:]).mean() > 0.35


# --- where the data are ---

DOCUMENT = "The massive figure fell. A massive figure stood in the hall."
OTHER, GOLD = (4, 18), (27, 41)


def make_row(**more: Any) -> dict[str, Any]:
    answers = {"text": ["massive figure"], "answer_start": [27]}
    return {
        "id": "1",
        "title": "t",
        "context": DOCUMENT,
        "query": "huge model",
        "answers": answers,
        **more,
    }


@pytest.mark.parametrize(
    ("name", "rows"),
    [
        ("psd_test.jsonl", [make_row()]),
        ("psd_test.json", [make_row()]),
        ("psd_test.json.gz", {"version": "1", "data": [make_row()]}),
        (
            "psd_test.json",
            {
                "data": [
                    {
                        "title": "t",
                        "paragraphs": [{"context": DOCUMENT, "qas": [make_row(context=DOCUMENT)]}],
                    }
                ]
            },
        ),
        (
            "psd_test.jsonl",
            [
                make_row(
                    question="huge model",
                    query=None,
                    answers=[{"text": "massive figure", "answer_start": 27}],
                )
            ],
        ),
        (
            "pr_psd_site_examples.jsonl",
            [
                {"id": "0", "task": "pr-pass", "query": "x", "document": "x", "spans": [[0, 1]]},
                {
                    "id": "1",
                    "task": "psd",
                    "query": "huge model",
                    "document": DOCUMENT,
                    "spans": [GOLD],
                    "distractor_spans": [OTHER],
                },
            ],
        ),
    ],
)
def test_every_form_of_a_file_is_read(tmp_path: Path, name: str, rows: Any) -> None:
    write_file(tmp_path, name, rows)
    [search] = files.read_searches(files.find_test_file(tmp_path, "psd"), "psd")
    assert search == Search("1", "huge model", DOCUMENT, (GOLD,), (OTHER,))
    assert (search.answer, search.texts) == ("massive figure", ["massive figure"])


def test_an_answer_is_looked_for_where_its_start_is_off(tmp_path: Path) -> None:
    path = write_file(
        tmp_path,
        "pr_pass_test.jsonl",
        [make_row(answers={"text": ["massive figure stood"], "answer_start": [26]})],
    )
    [search] = files.read_searches(path, "pr-pass")
    assert (search.answer, search.other_places) == ("massive figure stood", ())


def test_another_place_of_an_answer_is_another_sense_in_psd_alone(tmp_path: Path) -> None:
    [search] = files.read_searches(
        write_file(tmp_path, "pr_pass_test.jsonl", [make_row()]), "pr-pass"
    )
    assert (search.answers, search.other_places) == ((GOLD,), ())


@pytest.mark.parametrize(
    ("rows", "message"),
    [
        (
            [make_row(answers={"text": ["nothing"], "answer_start": [0]})],
            "row 1: not a query, a document and answers",
        ),
        ([make_row(answers={"text": [], "answer_start": []})], "row 1: no answer"),
        ([{"id": 7, "query": "x"}], "row 7: not a query"),
        (
            [{"id": 7, "query": "x", "document": "abc", "spans": [[2, 9]]}],
            r"row 7: no answer at \[\(2, 9\)\] of a document of 3 characters",
        ),
        ([], "holds no row of pr-pass"),
    ],
)
def test_a_row_that_is_none_is_named(tmp_path: Path, rows: list[Any], message: str) -> None:
    with pytest.raises(SystemExit, match=message):
        files.read_searches(write_file(tmp_path, "pr_pass_test.jsonl", rows), "pr-pass")


def test_what_is_missing_is_said(tmp_path: Path) -> None:
    message = r"neither pr_page_test.jsonl nor pr_psd_site_examples.jsonl"
    with pytest.raises(SystemExit, match=message):
        files.find_test_file(tmp_path, "pr-page")
    with pytest.raises(SystemExit, match="no task 'pr': it has ps, pr-pass, pr-page, psd"):
        files.find_test_file(tmp_path, "pr")
    with pytest.raises(SystemExit, match="not phrase1"):
        files.read_pairs(write_file(tmp_path, "ps_test.jsonl", [{"phrase1": "x"}]))
    (tmp_path / "broken.json").write_text('{"a": 1}\n{"b":')
    with pytest.raises(SystemExit, match="neither JSON nor an object a line"):
        files.read_objects(tmp_path / "broken.json")


def test_a_phrase_stands_where_it_is_words() -> None:
    assert files.find_places("Art", "Party art, ART") == [(6, 9), (11, 14)]
    assert files.find_places("art", "party") == [(1, 4)]
    assert files.find_places("c++", "in C++.") == [(3, 6)]
    assert files.find_places("none", "there") == []
    assert (files.overlaps((0, 3), (2, 5)), files.overlaps((0, 3), (3, 5))) == (True, False)


# --- candidates ---


def texts(document: str, places: Sequence[Range]) -> list[str]:
    return [document[start:end] for start, end in places]


def test_candidates_are_runs_of_two_and_three_words_inside_sentences_and_the_answer() -> None:
    document = "One two, three. Four five! Six?"
    search = Search("1", "x", document, ((0, 20),))
    assert texts(document, candidates.ngrams(search)) == [
        "One two",
        "two, three",
        "One two, three",
        "Four five",
        "One two, three. Four",
    ]
    every = texts(document, candidates.list_word_runs(document, candidates.EVERY))
    assert every == [
        "One",
        "two",
        "three",
        "One two",
        "two, three",
        "One two, three",
        "Four",
        "five",
        "Four five",
        "Six",
    ]


def test_a_place_is_shown_in_its_context_or_in_all_that_it_touches() -> None:
    document = "One two. Three four. Five."
    contexts = [(0, 8), (9, 20), (21, 26)]
    groups = candidates.group_by_context(
        document, [(9, 14), (4, 14), (15, 19), (0, 3), (9, 19)], contexts
    )
    assert [(group.text, texts(group.text, group.places), group.numbers) for group in groups] == [
        ("Three four.", ["Three", "four", "Three four"], [0, 2, 4]),
        ("One two. Three four.", ["two. Three"], [1]),
        ("One two.", ["One"], [3]),
    ]
    assert [
        group.text for group in candidates.group_by_context("一二三四", [(2, 3)], [(0, 2), (2, 4)])
    ] == ["三四"]  # a context may begin where another ends


def test_vectors_come_in_the_order_of_the_places() -> None:
    system, document = TokenMeans(TinyEncoder()), "One two. Three four. Five."
    places = [(9, 14), (4, 14), (15, 19), (0, 3), (9, 19)]
    groups = candidates.group_by_context(document, places, [(0, 8), (9, 20), (21, 26)])
    assert candidates.vectors(system, groups) == pytest.approx(
        system.encode_texts(texts(document, places)), abs=1e-6
    )  # a word has one vector everywhere
    assert candidates.swap_query(system, groups, "my query") == pytest.approx(
        np.tile(system.encode_texts(["my query"]), (5, 1)), abs=1e-6
    )


def test_paragraphs_are_parted_by_two_spaces_or_an_empty_line() -> None:
    document = "One. Two.  Three.\n\n Four\nfive."
    assert texts(document, candidates.paragraphs(document)) == [
        "One. Two.",
        "Three.",
        "Four\nfive.",
    ]


# --- ranking ---


def test_the_rank_of_the_answer() -> None:
    scores = np.array([0.9, 0.5, 0.7, 0.5, 0.2], dtype=np.float32)
    assert ranking.rank(["a", "b", "c", "d", "e"], scores, "C") == 2
    # "d" scores the same, and stands before it
    assert ranking.rank(["a", "b", "c", "d", "e"], scores, "b") == 4
    # another place of the same phrase does not
    assert ranking.rank(["a", "b", "c", "B", "e"], scores, "b") == 3
    assert ranking.rank(["a", "b", "c", "d", "e"], scores, "x") == math.inf


RANKS = [1, 1, 2, 3, 4, 5, 6, None, 1, 20]
"""Of ten answers: top-1 3, top-3 5, top-5 7; reciprocal ranks 1 + 1 + 1/2 + 1/3 + 1/4 + 1/5 + 1 =
4.2833.
"""


def rank_by_search_id(search: Search) -> ranking.ScoredTexts:
    """Twenty candidates, the best first, the answer at the rank that is the search's id."""
    return [
        "answer" if str(rank) == search.id else f"other {rank}" for rank in range(1, 21)
    ], np.arange(20, 0, -1, dtype=np.float32)


def test_ten_ranks_by_hand() -> None:
    figures = ranking.figures(
        [Search(str(rank), "query", "the answer", ((4, 10),)) for rank in RANKS], rank_by_search_id
    )
    low, high = figures.pop("top-1 interval")
    assert low < 0.3 < high
    assert figures == {
        "candidates": 20,
        "reachable": 0.9,
        "top-1": 0.3,
        "top-3": 0.5,
        "top-5": 0.7,
        "MRR@5": 0.4283,
    }


RANKED = TableEncoder({"big": (1, 0, 0), "huge": (1, 0, 0), "odd": (0.6, 0.8, 0)}, crowd=2)
"""In texts of three words and more each token has (0, 0, 1) added. So "odd huge huge" is (2.6, .8,
3) by itself and in its sentence: .642 to "big".

By itself "huge huge" is 1, "odd huge" and "huge odd" are .894, "A huge" is .707. In its sentence
"huge huge" is (2, 0, 2), .707, all other runs are less; among all spans "huge" three times is .707,
too. With "big" in its place "The big." is of two words, so .642 stays. Where two words go, three
are left, "big" is (1, 0, 1), and all six are more alike: 1 for "huge huge", .805 for "The odd".
Where three words go from the others, .365.
"""


def make_retrieval_row(**more: Any) -> dict[str, Any]:
    document = "A huge odd thing. The odd huge huge."
    return make_row(
        context=document,
        query="big",
        answers={"text": ["odd huge huge"], "answer_start": [22]},
        **more,
    )


@pytest.mark.parametrize(
    ("name", "rank", "number"),
    [
        ("phrase", 5, 10),
        ("phrase in context", 2, 10),
        ("both in context", 7, 10),
        ("all spans in context", 5, 20),
    ],
)
def test_a_document_by_hand(tmp_path: Path, name: str, rank: int, number: int) -> None:
    write_file(tmp_path, "pr_pass_test.jsonl", [make_retrieval_row()])
    result = ranking.measure(TokenMeans(RANKED), tmp_path, "pr-pass")
    figures = result["setups"][name]
    assert (result["file"], result["rows"], figures["candidates"], figures["reachable"]) == (
        "pr_pass_test.jsonl",
        1,
        number,
        1.0,
    )
    assert figures["MRR@5"] == (round(1 / rank, 4) if rank <= 5 else 0)
    assert [figures[f"top-{k}"] for k in (1, 3, 5)] == [float(rank <= k) for k in (1, 3, 5)]


def test_a_system_takes_the_set_ups_that_it_is_able_to(tmp_path: Path) -> None:
    write_file(tmp_path, "pr_page_test.jsonl", [make_retrieval_row(), make_retrieval_row()])
    assert ranking.measure(TokenMeans(RANKED), tmp_path, "pr-page", 1, swap=False)[
        "setups"
    ].keys() == {"phrase", "phrase in context", "all spans in context"}
    result = ranking.measure(EditDistance(), tmp_path, "pr-page", 1)
    assert (result["rows"], result["setups"].keys()) == (1, {"phrase"})


def test_scores_rank_where_there_are_no_vectors() -> None:
    document = "A huge house. The odd huge thing."
    right = Search("1", "odd hugs", document, ((18, 26),))
    ranked, scores = ranking.rank_by_scores(EditDistance(), right)
    assert ranking.rank(ranked, scores, right.answer) == 1  # "odd huge" is one letter away


def test_a_phrase_by_itself_is_one_candidate_in_whatever_case() -> None:
    ranked, _ = ranking.rank_phrases(
        TokenMeans(TinyEncoder()), Search("1", "x", "A thing. a thing. The thing.", ((9, 16),))
    )
    assert ranked == ["a thing", "The thing"]


# --- two senses ---

SENSES = TableEncoder({"big": (1, 0, 0), "massive": (1, 0, 0), "figure": (1, 0, 0)}, crowd=3)
"""In a text of more than three words "massive figure" is (2, 0, 2), .707 to "big"; in a shorter one
1.
"""


def make_two_sense_row(right_first: bool, short_first: bool) -> dict[str, Any]:
    """A sentence of four words and one of three, each a paragraph."""
    short, long = "One massive figure.", "One massive figure there."
    document = "  ".join((short, long) if short_first else (long, short))
    places = [match.start() for match in re.finditer("massive", document)]
    return make_row(
        context=document,
        query="big",
        answers={"text": ["massive figure"], "answer_start": [places[0 if right_first else 1]]},
    )


def test_ten_choices_by_hand(tmp_path: Path) -> None:
    # the short sentence wins: right where the right place is in it, 3 + 4 of ten. "One big there."
    # has three words: still .707
    right_rows = [make_two_sense_row(True, True)] * 3 + [make_two_sense_row(False, False)] * 4
    wrong_rows = [make_two_sense_row(True, False)] * 2 + [make_two_sense_row(False, True)]
    write_file(tmp_path, "psd_test.jsonl", right_rows + wrong_rows)
    result = sense.measure(TokenMeans(SENSES), tmp_path)
    assert (result["file"], result["rows"]) == ("psd_test.jsonl", 10)
    assert {
        name: (choice["rows"], choice["mean"]) for name, choice in result["choice"].items()
    } == {"sentence": (10, 0.7), "paragraph": (10, 0.7), "sentence, both in context": (10, 0.7)}
    for name in ("sentence", "paragraph"):
        # the short sentence's "massive figure" is the only candidate of cosine 1
        figures = result["best of all"][name]
        assert [figures[key]["mean"] for key in ("EM", "F1", "EM+loc", "F1+loc")] == [
            1.0,
            1.0,
            0.7,
            0.7,
        ]


def test_paragraphs_may_tell_apart_what_sentences_do_not(tmp_path: Path) -> None:
    document = "One massive figure.  One massive figure. So it was."
    write_file(
        tmp_path,
        "psd_test.jsonl",
        [
            make_row(
                context=document,
                query="big",
                answers={"text": ["massive figure"], "answer_start": [4]},
            )
        ],
    )
    choices = sense.measure(TokenMeans(SENSES), tmp_path)["choice"]
    assert (choices["sentence"]["mean"], choices["paragraph"]["mean"]) == (0.0, 1.0)


def test_rows_with_one_place_are_no_choice_and_other_systems_are_not_measured(
    tmp_path: Path,
) -> None:
    single = make_row(
        context="One massive figure.", answers={"text": ["massive figure"], "answer_start": [4]}
    )
    write_file(tmp_path, "psd_test.jsonl", [make_two_sense_row(True, True), single])
    result = sense.measure(TokenMeans(SENSES), tmp_path)
    assert (result["choice"]["sentence"]["rows"], result["best of all"]["sentence"]["rows"]) == (
        1,
        2,
    )
    assert sense.measure(EditDistance(), tmp_path) == {
        "file": "psd_test.jsonl",
        "rows": 2,
        "best of all": {},
        "choice": {},
    }


# --- picked spans ---


def find_range(text: str, after: int = 0) -> Range:
    start = DOCUMENT.index(text, after)
    return start, start + len(text)


PICKED = [
    (GOLD, (1, 1, 1, 1)),
    (OTHER, (1, 1, 0, 0)),
    (find_range("A massive figure"), (1, 1, 1, 1)),  # articles count nothing
    (find_range("massive", 20), (0, 2 / 3, 0, 2 / 3)),  # 2 * 1 / (1 + 2)
    (find_range("massive"), (0, 2 / 3, 0, 0)),
    (find_range("massive figure stood"), (0, 0.8, 0, 0.8)),  # 2 * 2 / (3 + 2)
    (find_range("hall."), (0, 0, 0, 0)),
    (
        find_range("figure fell. A massive"),
        (0, 0.8, 0, 0.8),
    ),  # the words of the answer in another order, one of them its own
    (find_range("the"), (0, 0, 0, 0)),  # nothing is left of it
    (find_range("stood"), (0, 0, 0, 0)),
]


@pytest.mark.parametrize(("picked", "by_hand"), PICKED)
def test_what_is_picked_is_scored(picked: Range, by_hand: tuple[float, ...]) -> None:
    assert tuple(
        selection.scores(Search("1", "huge model", DOCUMENT, (GOLD,), (OTHER,)), picked).values()
    ) == pytest.approx(by_hand)


class Picker:
    """Answers with what it was given, in turn; the third number, a score, is nothing to the
    measure.
    """

    def __init__(self, places: Sequence[Range]) -> None:
        self._places = iter(places)

    def answer(self, query: str, document: str) -> tuple[int, int, float]:
        assert (query, document) == ("huge model", DOCUMENT)
        return *next(self._places), 0.5


def test_ten_picks_by_hand(tmp_path: Path) -> None:
    write_file(tmp_path, "psd_test.jsonl", [make_row()] * 10)
    result = selection.measure(Picker([picked for picked, _ in PICKED]), tmp_path, "psd")
    assert (result["file"], result["rows"]) == ("psd_test.jsonl", 10)
    # EM 3; F1 3 + 2 * 2/3 + 2 * .8; with the place 2, and 2 + 2/3 + 2 * .8
    assert {name: result[name]["mean"] for name in ("EM", "F1", "EM+loc", "F1+loc")} == {
        "EM": 0.3,
        "F1": 0.5933,
        "EM+loc": 0.2,
        "F1+loc": 0.4267,
    }


def test_the_best_of_several_answers_counts() -> None:
    search = Search("1", "huge model", DOCUMENT, (GOLD, find_range("hall")))
    assert selection.scores(search, find_range("hall")) == {
        "EM": 1,
        "F1": 1,
        "EM+loc": 1,
        "F1+loc": 1,
    }


def test_texts_are_compared_as_squad_does() -> None:
    assert selection.terms("The U.S. Army's  an-hour, a") == ["us", "armys", "anhour"]
    # two without a word
    assert selection.f1("a", "the") == selection.exact_match("a", "the") == 1.0
    # a word counts as often as both have it
    assert selection.f1("to be to", "to to or") == pytest.approx(2 * 2 / 6)


# --- the sample beside the checkout ---


@pytest.mark.data
def test_the_sample_is_read_whole() -> None:
    pairs = files.read_pairs(files.find_test_file(DATA, "ps"))
    assert len(pairs) == 300
    assert all(
        files.find_places(pair.phrase1, pair.sentence1)
        and files.find_places(pair.phrase2, pair.sentence2)
        for pair in pairs
    )
    rows = {
        task: files.read_searches(files.find_test_file(DATA, task), task)
        for task in files.TASKS[1:]
    }
    assert {task: len(searches) for task, searches in rows.items()} == {
        "pr-pass": 18,
        "pr-page": 1,
        "psd": 35,
    }
    for search in rows["psd"]:
        assert len(search.other_places) == 1
        assert len(candidates.paragraphs(search.document)) >= 2
    assert all(
        files.find_places(search.answer, search.document)
        for searches in rows.values()
        for search in searches
    )


# --- answers of SQuAD ---


def write_squad(folder: Path) -> Path:
    """Two questions that are measured, one of them with two labels, and one that was trained on."""
    text = "The hall stood in Leeds. It fell in 1906."
    write_rows(folder / "squad_dev/passages.jsonl.gz", [{"id": "p", "text": text}])
    labels = [("Where?", "dev", ["Leeds", "in Leeds"]), ("When?", "dev", ["1906"])]
    questions = [
        {
            "id": question,
            "question": question,
            "passage_id": "p",
            "part": part,
            "answers": [{"text": answer, "start": text.index(answer)} for answer in answers],
        }
        for question, part, answers in [*labels, ("What?", "train", ["The hall"])]
    ]
    write_rows(folder / "squad_dev/questions.jsonl.gz", questions)
    return folder


class Guesser:
    """Picks the last two words of a document, or whatever stands behind "in" where it is asked for
    a place.
    """

    def answer(self, query: str, document: str) -> tuple[int, int]:
        return (15, 23) if query == "Where?" else (33, len(document))


def test_a_reader_s_answers_are_scored_on_the_questions_that_were_not_trained_on(
    tmp_path: Path,
) -> None:
    figures = evaluations._measure_answers(cast("System", Guesser()), write_squad(tmp_path))[
        "setups"
    ]["span selection"]
    # "in Leeds" is one of the labels; "in 1906." shares one word of two with "1906": F1 2 * 1 / (2
    # + 1)
    assert (figures["rows"], figures["EM"], figures["F1"]) == (
        2,
        0.5,
        pytest.approx((1 + 2 / 3) / 2, abs=1e-4),
    )


def test_what_selects_no_spans_has_no_answers(tmp_path: Path) -> None:
    with pytest.raises(SystemExit, match="only readers select answers: give --system reader-slice"):
        evaluations._measure_answers(EditDistance(), write_squad(tmp_path))
