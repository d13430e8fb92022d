"""Sentences in several languages: how they become triples, and what the teacher reads of them."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

pytestmark = pytest.mark.export

torch = pytest.importorskip("torch", reason="the extra [export] is not installed: make test-export")

from export.training import corpora, pool, recipe  # noqa: E402 (after torch)
from export.training.data import Corpus  # noqa: E402
from tests.export.test_pool import LetterCounter, directions  # noqa: E402

ROWS = [
    {"split": "train", "en": "A dog runs.", "de": "Ein Hund rennt.", "es": "Un perro corre."},
    {"split": "train", "en": "A cat sleeps.", "de": "Eine Katze schläft.", "es": "Un gato duerme."},
    {"split": "train", "en": "It rains.", "de": "Es regnet.", "es": "Llueve."},
]
MEASURED = {"split": "dev", "en": "Not trained on.", "de": "Nicht gelernt.", "es": "No aprendido."}


@pytest.fixture
def corpus(tmp_path: Path) -> Corpus:
    path = tmp_path / "sentences.jsonl"
    path.write_text("".join(f"{json.dumps(row)}\n" for row in [*ROWS, MEASURED]), encoding="utf-8")
    (read,) = corpora.read([path])
    return read


def test_a_sentence_is_found_by_its_translation_and_not_by_the_next_sentence(
    corpus: Corpus,
) -> None:
    languages = {
        text: (number, code) for number, row in enumerate(ROWS) for code, text in row.items()
    }
    pairs = set()
    for triple in corpus.triples:
        (row, query), (same, found), (other, wrong) = (
            languages[text] for text in (triple.query, triple.positive, triple.negative)
        )
        assert row == same != other
        assert query != found == wrong
        assert triple.span == (0, len(triple.positive))
        pairs.add((query, found))
    assert len(corpus.triples) == 9  # three sentences in three languages
    assert pairs == {(a, b) for a in ("en", "de", "es") for b in ("en", "de", "es") if a != b}


def test_the_teacher_reads_english_where_the_student_reads_a_translation(
    corpus: Corpus, tmp_path: Path
) -> None:
    plan = recipe.PoolPlan(texts=1, translations={"sentences": 5})
    english = pool.draw_translations([corpus], plan, "1")
    assert english == pool.draw_translations([corpus], plan, "1")
    assert len(english) == 5
    assert english.items() <= corpus.english.items()
    texts = [*english, "It rains."]
    read = pool.read(texts, LetterCounter(), "letters", tmp_path, directions(4), english)
    assert read.texts == texts
    expected = LetterCounter().alone([english.get(text, text) for text in texts])
    torch.testing.assert_close(read.vectors, expected.half())


@pytest.mark.parametrize(("plan", "count"), [({"sentences": 7}, 6), ({"others": 7}, 0)])
def test_more_translations_than_there_are_is_an_error(
    corpus: Corpus, plan: dict[str, int], count: int
) -> None:
    with pytest.raises(SystemExit, match=rf"have 7 translations of .* have {count}: add the file"):
        pool.draw_translations([corpus], recipe.PoolPlan(texts=1, translations=plan), "1")
