"""The losses of one step, and what the teacher says of its batch."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import torch
from torch import Tensor

from export.training import losses
from export.training.batch import Batch
from export.training.model import EncodedTexts
from export.training.pool import Pool
from export.training.recipe import TRIPLE_LOSSES, Stage
from export.training.teacher import FrozenEncoder


@dataclass(frozen=True, slots=True, eq=False)
class Goals:
    """The teacher's answers about a batch.

    Unit vectors of its spans ``[spans, hidden]`` and short texts ``[shorts, hidden]``; and for
    stages that use them the cosines of spans with short texts, ``[spans, shorts]``, and those of
    its pairs ``[pairs]``, by the best clause of each passage.
    """

    spans: Tensor
    shorts: Tensor
    relations: Tensor | None = None
    scores: Tensor | None = None


def goals_of(batch: Batch, teacher: FrozenEncoder, stage: Stage) -> Goals | None:
    """Ask the teacher about a batch.

    Returns:
        Its answers; None if the stage has nothing to ask.
    """
    if not (batch.pieces or batch.units):
        return None
    spans = [(batch.texts[number], start, end) for number, start, end in batch.spans]
    clauses = [batch.texts[number].text[start:end] for number, start, end in batch.units]
    short_texts = [batch.texts[number].text for number in batch.shorts]
    words = [text.text[start:end] for text, start, end in spans]
    groups = [short_texts, clauses, [] if stage.teacher.window else words]
    shorts, units, goal = _encode_groups(teacher, groups)
    if spans and stage.teacher.window:
        goal = teacher.mix_teachers(spans, stage.teacher)
    relations = goal @ shorts.T if stage.weights.relational else None
    return Goals(goal, shorts, relations, _scores(batch, shorts, units) if batch.pairs else None)


def _encode_groups(teacher: FrozenEncoder, groups: Sequence[Sequence[str]]) -> Sequence[Tensor]:
    """Return the vectors of each group of texts.

    They are read together: that is less padding, and a clause that is both distilled and scored is
    read once.
    """
    vectors = teacher.alone([text for group in groups for text in group])
    parts: Sequence[Tensor] = vectors.split([len(group) for group in groups])
    return parts


def _scores(batch: Batch, shorts: Tensor, units: Tensor) -> Tensor:
    """Return the cosine of each pair's short text with the best clause of its passage."""
    row = {number: place for place, number in enumerate(batch.shorts)}
    owners = torch.tensor([number for number, _, _ in batch.units], device=shorts.device)
    queries, passages = (
        torch.tensor(numbers, device=shorts.device) for numbers in zip(*batch.pairs, strict=True)
    )
    cosines = shorts[[row[number] for number in queries.tolist()]] @ units.T
    return cosines.masked_fill(owners != passages[:, None], -1.0).amax(1)


def losses_of(
    batch: Batch,
    goals: Goals | None,
    encoded_texts: EncodedTexts,
    stage: Stage,
    dimensions: Sequence[int],
    pool: Pool | None = None,
) -> dict[str, Tensor]:
    """Return each loss that the stage weighs, averaged over `dimensions`."""
    weights = stage.weights
    loss_values: dict[str, Tensor] = {}
    if goals is not None and batch.pieces:
        loss_values |= _distillation_losses(batch, goals, encoded_texts, dimensions)
    if goals is not None and goals.scores is not None:
        loss_values["score"] = _score_loss(batch, goals.scores, encoded_texts, stage, dimensions)
    if any(getattr(weights, name) for name in TRIPLE_LOSSES):
        loss_values |= _contrastive_losses(batch, encoded_texts, stage, dimensions)
    if pool and batch.rows:
        loss_values |= _transfer_losses(batch, pool, encoded_texts, dimensions)
    return loss_values


def _transfer_losses(
    batch: Batch, pool: Pool, encoded_texts: EncodedTexts, dimensions: Sequence[int]
) -> dict[str, Tensor]:
    """Return the losses of texts of the pool against the larger teacher's vectors and cosines."""
    student = encoded_texts.text_means(batch.pooled)
    goals = pool.goals[batch.rows].to(student)
    vectors = pool.vectors[batch.rows].to(student)
    cosines = vectors @ vectors.T
    pairs = losses.prefixes(dimensions, student, goals)
    return {
        "transfer": _mean([losses.distillation(*pair) for pair in pairs]),
        "similarity": _mean([losses.relational(part, part, cosines) for part, _ in pairs]),
    }


def _distillation_losses(
    batch: Batch, goals: Goals, encoded_texts: EncodedTexts, dimensions: Sequence[int]
) -> dict[str, Tensor]:
    """Return the losses of spans, and of short texts alone, against the teacher's vectors."""
    spans, shorts = encoded_texts.means(batch.pieces), encoded_texts.text_means(batch.shorts)
    student, goal = torch.cat([spans, shorts]), torch.cat([goals.spans, goals.shorts])
    loss_values = {
        "distil": _mean(
            [
                losses.distillation(*prefix_pair)
                for prefix_pair in losses.prefixes(dimensions, student, goal)
            ]
        )
    }
    relations = goals.relations
    if relations is not None:
        loss_values["relational"] = _mean(
            [
                losses.relational(a, b, relations)
                for a, b in losses.prefixes(dimensions, spans, shorts)
            ]
        )
    return loss_values


def _score_loss(
    batch: Batch, goal: Tensor, encoded_texts: EncodedTexts, stage: Stage, dimensions: Sequence[int]
) -> Tensor:
    """Return the loss of the best span of each pair's passage against the teacher's best clause."""
    queries, (tokens, mask) = (
        encoded_texts.text_means([a for a, _ in batch.pairs]),
        encoded_texts.pad_texts([b for _, b in batch.pairs]),
    )
    products = torch.einsum("pd,ptd->pt", queries.detach(), tokens.detach())[None]
    best = losses.span_sums(tokens, losses.find_spans(products, tokens, mask, stage.longest))[0]
    goal = losses.sharpen_cosines(goal, stage.sharpen)
    return _mean(
        [
            losses.decorrelation(losses.cosines(*prefix_pair), goal)
            for prefix_pair in losses.prefixes(dimensions, queries, best)
        ]
    )


def _contrastive_losses(
    batch: Batch, encoded_texts: EncodedTexts, stage: Stage, dimensions: Sequence[int]
) -> dict[str, Tensor]:
    """Return the losses of the best span of each passage against each query."""
    weights, count = stage.weights, len(batch.queries)
    queries = encoded_texts.text_means(batch.queries)
    tokens, mask = encoded_texts.pad_texts(batch.positives + batch.negatives)
    products = torch.einsum("qd,btd->qbt", queries.detach(), tokens.detach())
    own = torch.arange(count, device=queries.device)
    loss_values: dict[str, Tensor] = {}
    if weights.contrast or weights.slice or weights.topics:
        best = losses.span_sums(tokens, losses.find_spans(products, tokens, mask, stage.longest))
        scores = [
            losses.cosines(q[:, None], s) for q, s in losses.prefixes(dimensions, queries, best)
        ]
    if weights.contrast:
        allowed = batch.allowed.to(queries.device)
        loss_values["contrast"] = _mean(
            [losses.in_batch(prefix_scores, own, allowed, stage.scale) for prefix_scores in scores]
        )
    if weights.topics:
        right, negative = (
            mask_.to(queries.device) for mask_ in (batch.right, batch.allowed & ~batch.right)
        )
        loss_values["topics"] = _mean(
            [losses.multi_positive(part, right, negative, stage.scale) for part in scores]
        )
    if weights.wordings:
        loss_values["wordings"] = _wordings_loss(batch, queries, stage, dimensions)
    if weights.slice:
        loss_values["slice"] = _mean(
            [
                losses.slice_loss(
                    prefix_scores[own, own], prefix_scores[own, own + count], stage.scale
                )
                for prefix_scores in scores
            ]
        )
    with_gold = [i for i, gold in enumerate(batch.gold) if gold is not None]
    if weights.within and with_gold:
        loss_values["within"] = _within_loss(
            batch, with_gold, queries, tokens, mask, products, stage, dimensions
        )
    if weights.marked and with_gold:
        loss_values["marked"] = _marked_loss(
            batch, with_gold, queries, tokens, mask, stage, dimensions
        )
    return loss_values


def _wordings_loss(
    batch: Batch, queries: Tensor, stage: Stage, dimensions: Sequence[int]
) -> Tensor:
    """Return the loss of the phrasings of an intent among those of all others."""
    same, apart = batch.same.to(queries.device), batch.apart.to(queries.device)
    if not bool(same.any()):
        return queries.sum() * 0.0
    return _mean(
        [
            losses.multi_positive(
                losses.cosines(part[:, None], part[None]), same, apart, stage.scale
            )
            for (part,) in losses.prefixes(dimensions, queries)
        ]
    )


def _marked_loss(
    batch: Batch,
    with_gold: list[int],
    queries: Tensor,
    tokens: Tensor,
    mask: Tensor,
    stage: Stage,
    dimensions: Sequence[int],
) -> Tensor:
    """Return the loss of what a person marks among all spans of its passage."""
    clauses, cores = (
        torch.tensor([spans[i] for i in with_gold], device=tokens.device)
        for spans in (batch.gold, batch.cores)
    )
    own_mask = mask[with_gold]
    return _mean(
        [
            losses.measure_marking(q, t, own_mask, clauses, cores, stage.longest, stage.scale)
            for q, t in losses.prefixes(dimensions, queries[with_gold], tokens[with_gold])
        ]
    )


def _within_loss(
    batch: Batch,
    with_gold: list[int],
    queries: Tensor,
    tokens: Tensor,
    mask: Tensor,
    products: Tensor,
    stage: Stage,
    dimensions: Sequence[int],
) -> Tensor:
    """Return the loss of the gold span against the best other span of its passage.

    The other span does not overlap it.
    """
    device = tokens.device
    gold = torch.tensor([batch.gold[i] for i in with_gold], device=device)
    steps = torch.arange(tokens.shape[1], device=device)
    outside = mask[with_gold] & ~((steps >= gold[:, :1]) & (steps < gold[:, 1:]))
    passage_tokens = tokens[with_gold]
    own = products[with_gold, with_gold][None]
    wrong = losses.span_sums(
        passage_tokens, losses.find_spans(own, passage_tokens, outside, stage.longest)
    )[0]
    right = losses.span_sums(passage_tokens, gold[None])[0]
    parts = losses.prefixes(dimensions, queries[with_gold], right, wrong)
    return _mean(
        [
            losses.slice_loss(losses.cosines(q, r), losses.cosines(q, w), stage.scale)
            for q, r, w in parts
        ]
    )


def _mean(values: Sequence[Tensor]) -> Tensor:
    return torch.stack(list(values)).mean()
