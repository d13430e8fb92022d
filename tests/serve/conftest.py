"""A service over the hard sample, started once."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from tests.helpers.service import RunningService, run_service


@pytest.fixture(scope="session")
def service(sample_url: str) -> Iterator[RunningService]:
    with run_service(sample_url, "--log-level", "info") as running:
        yield running
