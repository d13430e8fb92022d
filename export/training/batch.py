"""The texts of one step (`Batch`), made from the seed and the step's number alone."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from random import Random

import torch
from torch import Tensor

from export.training import compose, data
from export.training.pool import Pool
from export.training.recipe import Stage
from export.training.texts import Cutter, Text

CLAUSES = 12
"""The most clauses and sentences of a passage that the teacher scores it by."""


@dataclass(frozen=True, slots=True, eq=False)
class Batch:
    """Texts that the student reads, and the spans and pairs to compare in them.

    `spans` are (text, start, end) in characters and `pieces` the same in tokens; `shorts` are
    numbers of texts, those of queries too; triple i has texts ``queries[i]``, ``positives[i]`` and
    ``negatives[i]``, and ``gold[i]`` are the first and last token of the positive that carry the
    meaning, ``cores[i]`` those of the fewest that a person would mark. `pairs` are a short text
    and a passage that are likely, or not, to be about the same, and `units` the clauses and
    sentences of these passages, (text, start, end) in characters. ``allowed[i, j]`` is False where
    passage j (positives, then negatives) may be right for query i beside its own, and
    ``right[i, j]`` is True for its own and those of its intent. ``same[i, j]`` is True for queries
    of one intent, ``apart[i, j]`` for queries that surely differ. Texts ``pooled[i]`` are those of
    the pool's ``rows[i]``.
    """

    texts: list[Text]
    spans: list[tuple[int, int, int]]
    pieces: list[tuple[int, int, int]]
    shorts: list[int]
    queries: list[int]
    positives: list[int]
    negatives: list[int]
    gold: list[tuple[int, int] | None]
    cores: list[tuple[int, int] | None]
    pairs: list[tuple[int, int]]
    units: list[tuple[int, int, int]]
    allowed: Tensor
    right: Tensor
    same: Tensor
    apart: Tensor
    pooled: list[int]
    rows: list[int]

    @property
    def tokens(self) -> int:
        """Tokens that the student reads, special ones left out."""
        return sum(len(text.ids) for text in self.texts)


class Batcher:
    """Makes the batches of one stage."""

    def __init__(
        self,
        corpora: Sequence[data.Corpus],
        stage: Stage,
        cutter: Cutter,
        seed: str,
        pool: Pool | None = None,
    ) -> None:
        self._pool = pool
        self._sampler = data.Sampler(corpora, stage.data, stage.others)
        self._composer = compose.Composer(self._sampler, stage.mixture)
        self._stage, self._cutter, self._seed = stage, cutter, seed

    def batch(self, step: int) -> Batch:
        """Return the batch of a step, the same on every call."""
        random, stage = Random(f"{self._seed}/{step}"), self._stage  # noqa: S311 (no secret)
        passages = [self._composer.passage(random) for _ in range(stage.passages)]
        shorts = [self._composer.short(random) for _ in range(stage.shorts)]
        shorts += [self._composer.echo(composed, random) for composed in passages[: stage.echoes]]
        triples = self._sampler.batch(
            random, stage.triples, stage.alike, stage.together, stage.sisters
        )
        positives, negatives = (
            [data.positive(triple) for triple in triples],
            [data.negative(triple) for triple in triples],
        )
        rows = self._pool.draw(random, stage.texts) if self._pool and stage.texts else []
        groups = (
            [composed.text for composed in passages],
            [positive.text for positive in positives],
            [negative.text for negative in negatives],
            shorts,
            [triple.query for triple in triples],
            [self._pool.texts[row] for row in rows] if self._pool else [],
        )
        texts = self._cutter.tokenize([text for group in groups for text in group])
        numbers = _numbers([len(group) for group in groups])
        units = (
            [composed.unit for composed in passages]
            + [composed.span for composed in positives]
            + [None] * len(negatives)
        )
        spans, pieces = (
            self._spans(texts, units, random)
            if stage.weights.distil or stage.weights.relational
            else ([], [])
        )
        read_positives = [texts[number] for number in numbers[1]]
        gold = list(map(_gold, read_positives, [cut.span for cut in positives]))
        cores = list(map(_gold, read_positives, [cut.core or cut.span for cut in positives]))
        short_numbers = [number for number in numbers[3] + numbers[4] if texts[number].ids]
        pairs = _pairs(texts, numbers, stage.shorts, triples) if stage.weights.score else []
        clauses = [
            clause
            for number in dict.fromkeys(passage for _, passage in pairs)
            for clause in _clauses(texts[number], number, units[number], random)
        ]
        return Batch(
            texts,
            spans,
            pieces,
            short_numbers,
            numbers[4],
            numbers[1],
            numbers[2],
            gold,
            cores,
            pairs,
            clauses,
            _allowed_mask(triples),
            *_relation_masks(triples),
            numbers[5],
            rows,
        )

    def _spans(
        self, texts: Sequence[Text], units: Sequence[tuple[int, int] | None], random: Random
    ) -> tuple[list[tuple[int, int, int]], list[tuple[int, int, int]]]:
        span_offsets, pieces = [], []
        for number, unit in enumerate(units):
            for start, end in compose.spans(
                texts[number],
                unit,
                self._stage.spans,
                self._stage.whole,
                self._stage.clauses,
                random,
            ):
                first, last = texts[number].tokens(start, end)
                if first < last:
                    span_offsets.append((number, start, end))
                    pieces.append((number, first, last))
        return span_offsets, pieces


def _numbers(counts: Sequence[int]) -> list[list[int]]:
    """Return consecutive numbers for groups of these sizes."""
    groups, first = [], 0
    for count in counts:
        groups.append(list(range(first, first + count)))
        first += count
    return groups


def _pairs(
    texts: Sequence[Text],
    numbers: Sequence[Sequence[int]],
    shorts: int,
    triples: Sequence[data.Triple],
) -> list[tuple[int, int]]:
    """Return the pairs to score, of a short text and a passage.

    Each echo with its passage and the next two, each query with its positive, its negative and the
    next two positives. Triples of written topics are left out: their turns were written to mislead
    a teacher, and people say which are right.
    """
    passages, positives, negatives, short, queries, _ = numbers
    kept = [place for place, triple in enumerate(triples) if triple.core is None]
    positives, negatives, queries = (
        [group[place] for place in kept] for group in (positives, negatives, queries)
    )
    candidate_pairs = [*zip(queries, negatives, strict=True)]
    for step in (0, 1, 2):
        candidate_pairs += zip(short[shorts:], [*passages[step:], *passages[:step]], strict=False)
        candidate_pairs += zip(queries, [*positives[step:], *positives[:step]], strict=True)
    return [(a, b) for a, b in dict.fromkeys(candidate_pairs) if texts[a].ids and texts[b].ids]


def _clauses(
    text: Text, number: int, unit: tuple[int, int] | None, random: Random
) -> list[tuple[int, int, int]]:
    """Return some clauses and sentences of a passage, with the one that was put into it.

    The full passage if it has none.
    """
    reach = int(text.offsets[-1, 1])
    units = compose.units(text, reach) or [(0, reach)]
    offsets = random.sample(units, min(len(units), CLAUSES)) + compose.keep_uncut_unit(unit, reach)
    return [(number, start, end) for start, end in dict.fromkeys(offsets)]


def _gold(text: Text, span: tuple[int, int] | None) -> tuple[int, int] | None:
    """Return the tokens of a span of a positive, if it is known and not cut off."""
    if span is None:
        return None
    first, last = text.tokens(*span)
    return (first, last) if first < last else None


def _allowed_mask(triples: Sequence[data.Triple]) -> Tensor:
    """Return False where the passage's own triple has the same query, positive or intent.

    Bool ``[queries, positives and negatives]``.
    """
    count = len(triples)
    allowed = torch.ones(count, 2 * count, dtype=torch.bool)
    for i, a in enumerate(triples):
        for j, b in enumerate(triples):
            same = (
                a.query == b.query
                or a.positive == b.positive
                or (a.intent is not None and a.intent == b.intent)
                or _may_answer(b, a)
            )
            allowed[i, j] = i == j or not same
            is_unknown = b.negative == a.positive or _are_sisters(a, b)
            allowed[i, count + j] = i == j or not is_unknown
    return allowed


def _are_sisters(a: data.Triple, b: data.Triple) -> bool:
    """Tell whether two triples have different intents of one domain."""
    return a.domain is not None and a.domain == b.domain and a.intent != b.intent


def _may_answer(a: data.Triple, b: data.Triple) -> bool:
    """Tell whether the positive of one of two sister triples may answer the other's query."""
    return _are_sisters(a, b) and (a.group is None or a.group != b.group)


def _relation_masks(triples: Sequence[data.Triple]) -> tuple[Tensor, Tensor, Tensor]:
    """Return `right`, `same` and `apart` of a batch.

    Bool ``[queries, positives and negatives]``, and twice ``[queries, queries]``. A query is not
    the same as itself, nor as another of the same words.
    """
    count = len(triples)
    right = torch.zeros(count, 2 * count, dtype=torch.bool)
    same = torch.zeros(count, count, dtype=torch.bool)
    apart = torch.zeros(count, count, dtype=torch.bool)
    for i, a in enumerate(triples):
        for j, b in enumerate(triples):
            is_one_intent = a.intent is not None and a.intent == b.intent
            right[i, j] = i == j or is_one_intent
            same[i, j] = is_one_intent and a.query != b.query
            apart[i, j] = not is_one_intent and a.query != b.query and not _may_answer(a, b)
    return right, same, apart
