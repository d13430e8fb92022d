"""The losses, pure functions of tensors.

Vectors need not have unit length; every cosine normalizes its arguments.

L_SLICE and the best span are those of the paper (SLICE, section 3): a span's vector is the mean of
its tokens', a text's similarity to a query is its best span's cosine, mapped to [0, 1], and ``L =
-lambda s_true + log(e^(lambda s_true) + e^(lambda s_false))``. The mean of a span and the sum of
its tokens have the same direction, so sums are used. The best span is found without a gradient; it
flows through that span alone.
"""

from __future__ import annotations

from collections.abc import Sequence

import torch
from torch import Tensor
from torch.nn import functional

TINY = 1e-12


def cosines(a: Tensor, b: Tensor) -> Tensor:
    """Return cosines along the last axis, with broadcasting."""
    product: Tensor = (unit(a) * unit(b)).sum(-1)
    return product


def unit(vectors: Tensor) -> Tensor:
    """Return `vectors` at unit length along the last axis; zeros stay zeros."""
    return functional.normalize(vectors, dim=-1, eps=TINY)


def cumulative_sums(values: Tensor, axis: int) -> Tensor:
    """Return sums of the first 0, 1, 2 ... entries along `axis`: one longer than `values`."""
    first = torch.zeros_like(values.narrow(axis, 0, 1))
    return torch.cat([first, values.cumsum(axis)], dim=axis)


def find_spans(products: Tensor, tokens: Tensor, mask: Tensor, longest: int) -> Tensor:
    """Return the best span of every passage for every query: start and end (exclusive).

    int64 ``[queries, passages, 2]``. `products` ``[queries, passages, tokens]`` are those of query
    and token vectors, `tokens` ``[passages, tokens, dimension]``, `mask` bool ``[passages,
    tokens]``: no span has a token that is masked out (False). Among equal spans the shortest, then
    the first. A passage without a token has the span 0, 0.
    """
    with torch.no_grad():
        scores, sums = cumulative_sums(products, -1), cumulative_sums(tokens, 1)
        allowed = cumulative_sums(mask.to(torch.int32), 1)
        best = torch.full(
            products.shape[:2], -torch.inf, dtype=products.dtype, device=products.device
        )
        best_spans = torch.zeros(
            (*products.shape[:2], 2), dtype=torch.int64, device=products.device
        )
        for length in range(1, min(longest, mask.shape[1]) + 1):
            norms = (sums[:, length:] - sums[:, :-length]).norm(dim=-1).clamp_min(TINY)
            holds = (allowed[:, length:] - allowed[:, :-length]) == length
            span_scores = ((scores[..., length:] - scores[..., :-length]) / norms).masked_fill(
                ~holds, -torch.inf
            )
            top, start = span_scores.max(-1)
            better = top > best
            best = torch.where(better, top, best)
            best_spans = torch.where(
                better[..., None], torch.stack([start, start + length], -1), best_spans
            )
        return best_spans


def span_sums(tokens: Tensor, spans: Tensor) -> Tensor:
    """Return the sum of the token vectors of `spans`, ``[queries, passages, dimension]``.

    The spans are those of `find_spans`.
    """
    sums = cumulative_sums(tokens, 1)
    passage = torch.arange(tokens.shape[0], device=tokens.device).expand(spans.shape[:2])
    return sums[passage, spans[..., 1]] - sums[passage, spans[..., 0]]


def best_span(query: Tensor, tokens: Tensor, mask: Tensor, longest: int) -> tuple[Tensor, Tensor]:
    """Return the cosine of each query with its best span of each passage, and the span.

    ``[queries, passages]`` and ``[queries, passages, 2]``. `query` is ``[queries, dimension]``;
    `tokens` and `mask` as for `find_spans`.
    """
    spans = find_spans(
        torch.einsum("qd,btd->qbt", query.detach(), tokens.detach()), tokens, mask, longest
    )
    return cosines(query[:, None], span_sums(tokens, spans)), spans


def similarity(cosine: Tensor) -> Tensor:
    """Return a cosine mapped to [0, 1], as in the paper."""
    return (1 + cosine) / 2


def slice_loss(true: Tensor, false: Tensor, scale: float = 30.0) -> Tensor:
    """Return the paper's loss, averaged.

    `true` and `false` are cosines ``[n]``, and `scale` is its lambda.
    """
    s_true, s_false = scale * similarity(true), scale * similarity(false)
    return (torch.logaddexp(s_true, s_false) - s_true).mean()


def in_batch(scores: Tensor, right: Tensor, allowed: Tensor, scale: float = 30.0) -> Tensor:
    """Return the paper's loss with all passages of the batch as negatives, averaged over queries.

    `scores` are cosines ``[queries, passages]``, ``right[i]`` is the passage of query i, and
    `allowed` bool ``[queries, passages]`` is False for passages that are known or likely to be
    right too.
    """
    own = functional.one_hot(right, scores.shape[1]).bool()
    logits = (scale * similarity(scores)).masked_fill(~(allowed | own), -torch.inf)
    return functional.cross_entropy(logits, right)


def multi_positive(
    scores: Tensor, is_right: Tensor, is_negative: Tensor, scale: float = 30.0
) -> Tensor:
    """Return InfoNCE with several right passages a query, each against the negatives alone.

    `scores` are cosines ``[queries, passages]``; `is_right` and `is_negative` are bool of the same
    shape, and passages that are neither count for nothing. Averaged over the right passages of a
    query, then over queries (supervised contrastive learning, arXiv:2004.11362, equation 2, with
    the other right passages left out of the denominator).
    """
    logits = scale * similarity(scores)
    negatives = logits.masked_fill(~is_negative, -torch.inf).logsumexp(1, keepdim=True)
    pair_losses = torch.logaddexp(logits, negatives) - logits
    counts = is_right.sum(1)
    per_query = pair_losses.masked_fill(~is_right, 0.0).sum(1) / counts.clamp_min(1)
    return per_query[counts > 0].mean()


def measure_marking(
    queries: Tensor,
    tokens: Tensor,
    mask: Tensor,
    clauses: Tensor,
    cores: Tensor,
    longest: int,
    scale: float = 30.0,
) -> Tensor:
    """Return minus the logarithm of the probability of a right span among all of a passage.

    The probability is a softmax over the cosines of a query ``[n, dimension]`` with every span of
    up to `longest` tokens of its own passage (`tokens` ``[n, tokens, dimension]``, `mask` as for
    `find_spans`). Right are spans that hold the `cores` and lie inside the `clauses`, both int64
    ``[n, 2]``. A passage whose right spans are all too long is left out.
    """
    products = torch.einsum("nd,ntd->nt", unit(queries), tokens)
    scores, sums = cumulative_sums(products, -1), cumulative_sums(tokens, 1)
    allowed = cumulative_sums(mask.to(torch.int32), 1)
    all_logits, right_logits = [], []
    for length in range(1, min(longest, mask.shape[1]) + 1):
        norms = (sums[:, length:] - sums[:, :-length]).norm(dim=-1).clamp_min(TINY)
        holds = (allowed[:, length:] - allowed[:, :-length]) == length
        cosine = (scores[:, length:] - scores[:, :-length]) / norms
        logits = (scale * similarity(cosine)).masked_fill(~holds, -torch.inf)
        start = torch.arange(logits.shape[1], device=logits.device)[None]
        end = start + length
        is_inside = (start >= clauses[:, :1]) & (end <= clauses[:, 1:])
        is_right = is_inside & (start <= cores[:, :1]) & (end >= cores[:, 1:])
        all_logits.append(logits)
        right_logits.append(logits.masked_fill(~is_right, -torch.inf))
    right = torch.cat(right_logits, 1)
    has_right = right.isfinite().any(1)
    if not bool(has_right.any()):
        return products.sum() * 0.0
    every = torch.cat(all_logits, 1)[has_right]
    return (every.logsumexp(1) - right[has_right].logsumexp(1)).mean()


def distillation(student: Tensor, teacher: Tensor) -> Tensor:
    """Return one minus the cosine of a span's mean and its teacher's vector, averaged.

    Both ``[n, dimension]``.
    """
    return (1 - cosines(student, teacher)).mean()


def relational(spans: Tensor, references: Tensor, teacher: Tensor) -> Tensor:
    """Return the mean squared difference between the student's and the teacher's cosines.

    The cosines are of `spans` ``[n, d]`` with `references` ``[m, d]``; the teacher's are ``[n,
    m]``.
    """
    return ((unit(spans) @ unit(references).T - teacher) ** 2).mean()


def sharpen_cosines(cosines: Tensor, power: float) -> Tensor:
    """Return `cosines` raised to `power`, with their signs.

    The larger the power, the farther unrelated texts are from related ones.
    """
    return cosines.sign() * cosines.abs() ** power


def decorrelation(student: Tensor, teacher: Tensor) -> Tensor:
    """Return one minus Pearson's correlation of two vectors ``[n]``.

    The best of many spans is higher than the teacher's few, and a common offset does not matter.
    """
    return 1 - cosines(student - student.mean(), teacher - teacher.mean())


def prefixes(dimensions: Sequence[int], *vectors: Tensor) -> list[tuple[Tensor, ...]]:
    """Return the first d numbers of each of `vectors`, for every d of `dimensions` (Matryoshka).

    Losses of them are averaged.
    """
    return [tuple(vector[..., :size] for vector in vectors) for size in dimensions]
