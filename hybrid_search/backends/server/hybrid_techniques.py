"""The techniques of OpenSearch's own fusion: their names, what goes together, and alpha as weights."""

from __future__ import annotations

from hybrid_search.errors import UsageError

COMBINATIONS_BY_NORMALIZATION = {
    "min_max": ("arithmetic_mean", "geometric_mean", "harmonic_mean"),
    "l2": ("arithmetic_mean", "geometric_mean", "harmonic_mean"),
    "z_score": ("arithmetic_mean",),
    "rrf": ("rrf",),
}
"""Of each normalization the combinations that the server takes with it, its default first."""


def technique_of(fusion: str) -> str:
    """The server's technique for one of our fusions; calibrated, which it does not have, becomes
    its default.

    Raises UsageError.
    """
    name = "min_max" if fusion == "calibrated" else fusion
    if name not in COMBINATIONS_BY_NORMALIZATION:
        raise UsageError(
            f'compat="opensearch" has no fusion {fusion!r}: use {", ".join(COMBINATIONS_BY_NORMALIZATION)}'
        )
    return name


def choose_combination(technique: str, combination: str | None) -> str:
    """`combination`, or the default that goes with `technique`.

    Raises UsageError for what the server would refuse.
    """
    allowed = COMBINATIONS_BY_NORMALIZATION.get(technique, ())
    if not allowed or combination not in (None, *allowed):
        raise UsageError(
            f"OpenSearch does not combine {technique} by {combination}: use {' or '.join(allowed) or ', '.join(COMBINATIONS_BY_NORMALIZATION)}"
        )
    return combination or allowed[0]


def leg_weights(alpha: float) -> tuple[float, float]:
    """The weights of (BM25, spans) for `alpha`.

    Never integers, which the server's weights may not be: it fails to cast them.
    """
    return round(1.0 - alpha, 12), float(alpha)
