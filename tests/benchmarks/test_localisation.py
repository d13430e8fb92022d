"""Marks against gold spans: agreement counted by hand, ways of marking, and the sets."""

from __future__ import annotations

from pathlib import Path

import pytest

from benchmarks.quality import hard_sample, localisation
from benchmarks.quality.localisation import SQUAD, STSB
from benchmarks.quality.marking import (
    list_clauses,
    mark_best_spans,
    mark_clauses,
    mark_matches,
)
from benchmarks.quality.marks import Agreement, MarkedText, compare, write_as_recognised
from benchmarks.quality.systems import Range
from tests.helpers.json_lines import write_rows
from tests.helpers.table_encoder import TableEncoder

ENCODER = TableEncoder({"refund": (1, 0, 0), "money": (0.8, 0.6, 0), "cash": (0.6, 0.8, 0)})

MONEY = "I want my money back, please."


def mark_part(text: str, part: str) -> Range:
    start = text.index(part)
    return start, start + len(part)


def read_marks(texts: list[str], marks: list[Range | None]) -> list[str | None]:
    return [
        text[mark[0] : mark[1]] if mark else None for text, mark in zip(texts, marks, strict=True)
    ]


def ask(phrase: str, *texts: str) -> list[MarkedText]:
    return [MarkedText(phrase, text, ((0, len(text)),)) for text in texts]


# agreement


def test_agreement_is_counted_in_words_and_found_in_characters() -> None:
    marked_text = MarkedText("refund", MONEY, (mark_part(MONEY, "want my money back"),))
    # 2 of 4 words, all of the mark right: 2 * 2 / (2 + 4) and 2 / 4; in characters 10 of 18
    assert compare(marked_text, mark_part(MONEY, "money back")) == Agreement(4 / 6, 0.5, 1.0, 2)
    # 1 word in common of 1 and 4; 5 of 18 characters are too few
    assert compare(marked_text, mark_part(MONEY, "money")) == Agreement(0.4, 0.25, 0.0, 1)
    # 1 in common of 2 and 4: 2 / 6 and 1 / 5
    assert compare(marked_text, mark_part(MONEY, "back, please")) == Agreement(2 / 6, 0.2, 0.0, 2)
    assert compare(marked_text, mark_part(MONEY, "please")) == Agreement(0.0, 0.0, 0.0, 1)
    assert compare(marked_text, None) == Agreement(0.0, 0.0, 0.0, 0)


def test_the_same_words_elsewhere_are_other_words() -> None:
    text = "a refund or a refund"
    marked_text = MarkedText("refund", text, ((0, 8),))
    assert compare(marked_text, (12, 20)).f1 == 0.0
    assert compare(marked_text, (0, 8)).f1 == 1.0


def test_the_nearest_of_several_gold_spans_counts() -> None:
    golds = (mark_part(MONEY, "please"), mark_part(MONEY, "money"))
    assert compare(MarkedText("refund", MONEY, golds), mark_part(MONEY, "money")).iou == 1.0


def test_recognisers_write_lower_case_without_punctuation() -> None:
    text = "Well... it's PW-30, isn't it?"
    recognised = write_as_recognised(MarkedText("Which code?", text, (mark_part(text, "PW-30"),)))
    assert recognised.text == "well it's pw 30 isn't it"
    assert recognised.golds == (mark_part(recognised.text, "pw 30"),)
    assert recognised.phrase == "Which code?"


# ways of marking


def test_the_best_span_is_the_products() -> None:
    texts = ["I want cash, a refund then.", "..."]
    marks = mark_best_spans(ENCODER, ask("refund", *texts))
    assert read_marks(texts, marks) == ["refund", None]


def test_matched_words_are_the_shortest_stretch_with_all_stems() -> None:
    texts = ["The refund, my refunds of money.", "Nothing."]
    marks = mark_matches(ask("refund money", *texts))
    assert read_marks(texts, marks) == ["refunds of money", None]


def test_matched_words_that_are_too_far_apart_leave_the_rarer_one() -> None:
    distant = "refund" + " so" * 19 + " money"
    texts = [distant, "my refund", "refund and money", distant.replace("so so", "so")]
    marks = mark_matches(ask("refund money", *texts))
    # "refund" is in all four texts, "money" in three; 21 words are one too long, 20 are not
    assert read_marks(texts, marks)[::3] == ["money", texts[3]]


def test_clauses_end_at_punctuation_and_after_many_words() -> None:
    text = "Well, I have 1.5 gigs - and a well-known issue... Right"
    clauses = [text[start:end] for start, end in list_clauses(text)]
    assert clauses == ["Well", "I have 1.5 gigs", "and a well-known issue", "Right"]
    long_text = " ".join(["so"] * 45)
    assert list_clauses(long_text) == [(0, 44), (45, 89), (90, 134)]  # 15 words each
    assert list_clauses("...") == []


def test_the_clause_with_the_rarest_words_or_else_the_longest() -> None:
    texts = [
        "My refund, and nothing else, not the money.",
        "A refund, I say.",
        "Hello, how are you?",
        "...",
    ]
    marks = mark_clauses(ask("refund money", *texts))
    # "refund" is in two texts, "money" in one
    assert read_marks(texts, marks) == ["not the money", "A refund", "how are you", None]


# the sets


def test_the_sample_in_english() -> None:
    marked_turns = hard_sample.read_marked_turns()
    assert len(marked_turns) == 284
    first = marked_turns[0]
    marked = [first.text[start:end] for start, end in first.golds]
    assert (first.phrase, marked) == (
        "account locked",
        ["it says too many attempts and it won't let me back in"],
    )
    recognised = write_as_recognised(first)
    ((start, end),) = recognised.golds
    assert recognised.text[start:end] == marked[0]


def write_data(folder: Path) -> Path:
    (folder / "stsb-context").mkdir()
    contexts = [("so money so", "money", 4.0), ("so cash so", "so", 3.9)]
    lines = [f"refund\t{context}\t{target}\t{score}\n" for context, target, score in contexts]
    heading = "query\tcontext\ttarget\tscore\n"
    (folder / "stsb-context/dev.tsv").write_text(heading + "".join(lines))
    passage = {"id": "p", "text": "the king has cash"}
    write_rows(folder / "squad_dev/passages.jsonl.gz", [passage])
    answers = [{"text": "the king", "start": 0}, {"text": "has cash", "start": 9}]
    question = {"question": "refund", "passage_id": "p", "answers": answers}
    questions = [{**question, "part": part} for part in ("dev", "train")]
    write_rows(folder / "squad_dev/questions.jsonl.gz", questions)
    return folder


def test_sets_by_hand(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    sets = {name: localisation.SETS[name] for name in (STSB, SQUAD)}
    monkeypatch.setattr(localisation, "SETS", sets)
    measured = localisation.measure(ENCODER, None, write_data(tmp_path))["sets"]
    assert [measured[name]["texts"] for name in sets] == [1, 1]
    assert [measured[name]["words of a gold span"] for name in sets] == [1, 2]
    best_spans = [measured[name]["ways"]["best span"] for name in sets]
    # "money" is the target; "cash" is one of two words of an answer, and 4 of its 8 characters
    assert [row["f1"]["mean"] for row in best_spans] == [1.0, pytest.approx(2 / 3, abs=1e-4)]
    assert [row["iou"]["mean"] for row in best_spans] == [1.0, 0.5]
    assert [row["found"]["mean"] for row in best_spans] == [1.0, 1.0]
    # of "so money so" the target is one of three words: 2 / 4; no word of the phrase is in it
    ways = measured[STSB]["ways"]
    assert ways["whole text"]["f1"]["mean"] == ways["clause by words"]["f1"]["mean"] == 0.5
    assert ways["matched words"]["f1"]["mean"] == 0.0
    differences = measured[STSB]["f1, differences"]
    assert differences["best span - whole text"]["mean"] == 0.5
