"""The techniques of OpenSearch's own fusion: names, combinations, and alpha as weights."""

from __future__ import annotations

from hybrid_search.errors import UsageError

COMBINATIONS_BY_NORMALIZATION = {
    "min_max": ("arithmetic_mean", "geometric_mean", "harmonic_mean"),
    "l2": ("arithmetic_mean", "geometric_mean", "harmonic_mean"),
    "z_score": ("arithmetic_mean",),
    "rrf": ("rrf",),
}
"""The combinations that the server accepts with each normalization, its default first."""


def technique_of(fusion: str) -> str:
    """Return the server's technique for one of our fusions.

    The server has no calibrated fusion: that becomes its default.

    Raises:
        UsageError: If the server has no technique for it.
    """
    name = "min_max" if fusion == "calibrated" else fusion
    if name not in COMBINATIONS_BY_NORMALIZATION:
        raise UsageError(
            f'compat="opensearch" has no fusion {fusion!r}: '
            f"use {', '.join(COMBINATIONS_BY_NORMALIZATION)}"
        )
    return name


def choose_combination(technique: str, combination: str | None) -> str:
    """Return `combination`, or by default the one that goes with `technique`.

    Raises:
        UsageError: If the server does not combine them.
    """
    allowed = COMBINATIONS_BY_NORMALIZATION.get(technique, ())
    if not allowed or combination not in (None, *allowed):
        remedy = " or ".join(allowed) or ", ".join(COMBINATIONS_BY_NORMALIZATION)
        raise UsageError(f"OpenSearch does not combine {technique} by {combination}: use {remedy}")
    return combination or allowed[0]


def leg_weights(alpha: float) -> tuple[float, float]:
    """Return the weights of (BM25, spans) for `alpha`.

    They are never integers: the server fails to cast those.
    """
    return round(1.0 - alpha, 12), float(alpha)
