"""The contract of a dialect: what is particular to an engine."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping
from typing import Any, ClassVar

Version = tuple[int, int, int]
Filters = list[dict[str, Any]]


class Dialect(ABC):
    """What is particular to an engine.

    Attributes:
        name: The engine's name in URLs, and that of its folder in ``mappings/``.
        title: The engine's name as it is written.
        oldest: The oldest version with everything that an index needs.
        knn_plugin: The plugin without which there are no vectors, "" if none is needed.
        tells_privileges: Whether a server says what a login may do. Where none does, `doctor` asks
            OpenSearch's plugin who the login is, and tries a search.
        takes_aws_signatures: Whether logins may be those of AWS.
        searched_share: One in so many passages of a shard is what graphs are searched for.
    """

    name: ClassVar[str]
    title: ClassVar[str]
    oldest: ClassVar[Version]
    knn_plugin: ClassVar[str] = ""
    tells_privileges: ClassVar[bool] = False
    takes_aws_signatures: ClassVar[bool] = False
    searched_share: ClassVar[int]

    def explain_unsupported(self, version: Version) -> str:
        """Return why a server of this version is not supported, "" if it is."""
        if version < self.oldest:
            return f"the oldest supported version is {format_version(self.oldest)}"
        return ""

    def fill_settings(self, version: Version) -> dict[str, Any]:
        """Return values for placeholders that only this engine's ``passages.json`` has."""
        del version
        return {}

    def extend_filters(self, filters: Filters, alias_filter: Mapping[str, Any] | None) -> Filters:
        """Return the conditions of a kNN, of an index whose alias has a filter or None."""
        del alias_filter
        return filters

    @abstractmethod
    def build_knn(
        self, vector: list[float], passages: int, spans: int, filters: Filters
    ) -> dict[str, Any]:
        """Return the parts of a request's body that search the graphs, under `filters`.

        It asks for so many `passages`, those with the nearest covering spans. The graphs of each
        shard are searched for as many as `spans`, which are no fewer.
        """


def format_version(version: tuple[int, ...]) -> str:
    """Return a version as text, as in ``3.5.0``."""
    return ".".join(map(str, version))
