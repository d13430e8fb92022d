"""The pool: which texts it has, what it reads twice, and which of them a step sees together."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial
from pathlib import Path
from random import Random
from typing import Any

import pytest

pytestmark = pytest.mark.export

torch = pytest.importorskip("torch", reason="the extra [export] is not installed: make test-export")

from export.training import pool, recipe  # noqa: E402 (after torch)
from export.training.data import Corpus, Triple  # noqa: E402
from export.training.reword import SOURCE, Rewording  # noqa: E402
from export.training.teacher import align  # noqa: E402
from hybrid_search.text.spans import MAX_WORDS  # noqa: E402


def make_corpora() -> list[Corpus]:
    passage = "I was charged twice, and nobody calls back. Please cancel the order that I made."
    other = "The weather was fine until noon; then it rained " + "and rained " * 30 + "all day."
    calls = [Triple(f"cancel order {number}", passage, other) for number in range(40)]
    entries = [
        Triple("cancel", "call off: declare null and void", "a fruit"),
        Triple("order", "a commission to supply something", "a bird"),
    ]
    return [Corpus("calls", "1", calls, 0), Corpus(SOURCE, "2", entries, 0)]


def directions(dimension: int) -> Callable[[Any], Any]:
    return partial(pool.find_principal_directions, dimension=dimension)


class LetterCounter:
    """A teacher whose vectors are counts of letters; it writes down how many texts it read."""

    def __init__(self) -> None:
        self.count = 0

    def alone(self, texts: Sequence[str]) -> Any:
        self.count += len(texts)
        counts = [[1.0 + text.count(letter) for letter in "aeiousrnt"] for text in texts]
        return torch.nn.functional.normalize(torch.tensor(counts), dim=-1)


def test_texts_are_different_short_and_drawn_alike_each_time() -> None:
    plan = recipe.PoolPlan(texts=40)
    texts = pool.draw_texts(make_corpora(), plan, "1")
    assert len(set(texts)) == len(texts) == 40
    assert max(len(text.split()) for text in texts) <= MAX_WORDS
    assert texts == pool.draw_texts(make_corpora(), plan, "1")
    assert texts != pool.draw_texts(make_corpora(), plan, "2")
    everything = pool.draw_texts(make_corpora(), recipe.PoolPlan(texts=10_000), "1")
    assert len(set(everything)) == len(everything) < 10_000  # there are no more
    assert {"nobody calls back", "cancel order 7"} <= set(everything)


def test_words_are_replaced_by_synonyms_and_definitions() -> None:
    rewording = Rewording(make_corpora())
    random = Random(1)  # noqa: S311 (no secret)
    reworded = {rewording("please cancel my orders", random) for _ in range(60)}
    assert {
        "please call off my orders",
        "please declare null and void my orders",
        "please cancel my a commission to supply something",
    } <= reworded
    assert rewording("no word of it is known", random) == "no word of it is known"
    assert Rewording([])("cancel", random) == "cancel"


def test_what_a_teacher_has_read_is_not_read_again(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(pool, "BLOCK", 10)
    texts = pool.draw_texts(make_corpora(), recipe.PoolPlan(texts=35), "1")
    interrupted = LetterCounter()
    blocks = interrupted.alone

    def stop_in_the_third_block(block: Sequence[str]) -> Any:
        if interrupted.count > 20:
            raise KeyboardInterrupt
        return blocks(block)

    monkeypatch.setattr(interrupted, "alone", stop_in_the_third_block)
    with pytest.raises(KeyboardInterrupt):
        pool.read(texts, interrupted, "letters", tmp_path, directions(4))
    teacher = LetterCounter()
    complete = pool.read(texts, teacher, "letters", tmp_path, directions(4))
    assert teacher.count == 1 + 15  # one to learn the size, and the last two blocks
    torch.testing.assert_close(complete.vectors.float(), teacher.alone(texts), atol=1e-3, rtol=0)
    assert (
        pool.read(texts, LetterCounter(), "others", tmp_path, directions(4)).identity
        != complete.identity
    )
    with pytest.raises(SystemExit, match="9 numbers, the student's 10"):
        pool.read(texts, teacher, "letters", tmp_path, directions(10))


def test_goals_keep_the_teachers_cosines(tmp_path: Path) -> None:
    texts = pool.draw_texts(make_corpora(), recipe.PoolPlan(texts=60), "1")
    complete = pool.read(texts, LetterCounter(), "letters", tmp_path, directions(9))
    vectors, goals = complete.vectors.float(), complete.goals.float()
    torch.testing.assert_close(goals @ goals.T, vectors @ vectors.T, atol=5e-3, rtol=0)
    energy = (goals**2).sum(0)
    assert (energy[:-1] >= energy[1:] - 1e-2).all()  # the strongest directions come first


def test_a_step_sees_texts_beside_those_that_are_like_them() -> None:
    generator = torch.Generator().manual_seed(3)
    centres = torch.nn.functional.normalize(torch.randn(25, 16, generator=generator), dim=-1)
    vectors = centres.repeat_interleave(4, 0) + 0.01 * torch.randn(100, 16, generator=generator)
    texts = [f"text {number}" for number in range(100)]
    groups = pool.Pool(texts, vectors.half(), vectors.half(), torch.eye(vectors.shape[1]), "x")
    rows = groups.draw(Random(1), 20)  # noqa: S311 (no secret)
    assert len(set(rows)) == len(rows)
    by_group: dict[int, int] = {}
    for row in rows:
        by_group[row // 4] = by_group.get(row // 4, 0) + 1
    assert set(by_group.values()) == {4}
    assert rows == groups.draw(Random(1), 20)  # noqa: S311 (no secret)
    everything = groups.draw(Random(1), 500)  # noqa: S311 (no secret)
    assert len(everything) == len(set(everything)) <= 100


def test_aligning_finds_a_rotation() -> None:
    generator = torch.Generator().manual_seed(5)
    vectors = torch.nn.functional.normalize(torch.randn(400, 12, generator=generator), dim=-1)
    rotation, _ = torch.linalg.qr(torch.randn(12, 12, generator=generator))
    aligned = torch.nn.functional.normalize(vectors @ align(vectors, vectors @ rotation).T, dim=-1)
    torch.testing.assert_close(aligned, vectors @ rotation, atol=1e-2, rtol=0)
