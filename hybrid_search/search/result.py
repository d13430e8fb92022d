"""The answer to a query: a `Result` of `Hit`s, and the forms in which it is shown."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from hybrid_search.search.hit import Hit, format_parts, format_span

if TYPE_CHECKING:
    from pandas import DataFrame

LIKELY = 0.2
"""The probability from which a hit counts as likely.

Of 22 topics that occur in calls_multidogo, 21 have such a hit; of 24 that do not, two
(`benchmarks.quality.mentions`).
"""
NOTHING_LIKELY = "nothing likely found"


@dataclass(frozen=True, slots=True)
class Result:
    """The hits of a query, best first; ``len()`` and iteration are over the hits.

    Attributes:
        hits: The hits of the page.
        total: The number of documents (or passages) on all pages, within the windows of both legs.
        plan: The query, the model, how the query was run, and how many milliseconds it took.
        facets: The values of each requested field, with their number of documents.
    """

    hits: list[Hit]
    total: int
    plan: Mapping[str, Any] = field(default_factory=dict)
    facets: Mapping[str, Mapping[str | int | float | bool, int]] | None = None

    @property
    def likely(self) -> int | None:
        """The number of these hits with a probability of at least `LIKELY`.

        None if probabilities are not known.
        """
        probabilities = self._list_probabilities()
        if len(probabilities) < len(self.hits):
            return None
        return sum(probability >= LIKELY for probability in probabilities)

    def _list_probabilities(self) -> list[float]:
        return [hit.probability for hit in self.hits if hit.probability is not None]

    def describe(self, phrases: str = "") -> list[str]:
        """Return heading lines for the hits: how many there are, and a note if none is likely.

        Args:
            phrases: The phrases of the query, for the first line.
        """
        count = f"{len(self.hits)} of {self.total} hits{f' for {phrases}' if phrases else ''}"
        if not self.hits or self.likely != 0:
            return [count]
        most = max(self._list_probabilities())
        return [count, f"{NOTHING_LIKELY}: the most probable of these has {most:.2f}"]

    def __iter__(self) -> Iterator[Hit]:
        return iter(self.hits)

    def __len__(self) -> int:
        return len(self.hits)

    def to_dict(self, *, texts: bool = False) -> dict[str, Any]:
        """Return the result as a JSON object; each facet is a list of value and count pairs.

        `texts` adds the text and the turns of each hit's best passage.
        """
        result: dict[str, Any] = {
            "hits": [hit.to_dict(texts=texts) for hit in self.hits],
            "total": self.total,
            "likely": self.likely,
            "plan": dict(self.plan),
        }
        if self.facets is not None:
            result["facets"] = {
                name: [[*pair] for pair in counts.items()] for name, counts in self.facets.items()
            }
        return result

    def __repr__(self) -> str:
        lines = self.describe(repr(self.plan.get("phrase")))
        for number, hit in enumerate(self.hits, 1):
            lines.append(f"{number:>3}. {hit.score:.3f}  {hit.id}  ({format_parts(hit)})")
            lines += [f"       {format_span(span)}" for span in hit.spans]
        return "\n".join(lines)

    def _repr_html_(self) -> str:
        from hybrid_search.search.result_html import format_html

        phrases = self.plan.get("phrase")
        names = [phrases] if isinstance(phrases, str) else phrases or ()
        return format_html(self.describe(" or ".join(map(repr, names))), self.hits)

    def to_pandas(self) -> DataFrame:
        """Return a pandas data frame with one row per span. Needs the extra ``pandas``.

        Returns:
            The hit's number, id, passage and scores, the span's place, words and cosine, and the
            metadata as ``metadata.KEY``. A hit without spans has one row.

        >>> with hybrid_search.connect() as client:  # doctest: +SKIP
        ...     client.query("money back").to_pandas()["text"]
        """
        from hybrid_search.search.result_rows import build_frame

        return build_frame(self.hits)
