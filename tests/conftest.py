"""Shared fixtures: the shipped encoder, both samples indexed once, an empty client per backend."""

from __future__ import annotations

import json
import os
import shutil
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

from hybrid_search import connect, encoder
from hybrid_search.client import Client
from hybrid_search.encoder import Encoder
from hybrid_search.ingest.sources.files import SAMPLE
from hybrid_search.system import lock_exclusively
from tests.helpers import live_servers
from tests.helpers.ray_cluster import start_cluster
from tests.helpers.remembered_batches import remember_batches
from tests.helpers.server_index import RawIndex, temporary_index
from tests.helpers.tiny_encoder import TinyEncoder

DATA = Path(__file__).parent.parent.parent / "shared" / "data"
"""Data sets beside the checkout. Tests marked ``data`` need them, and are skipped without them."""

HARD_CALLS = Path(__file__).parent.parent / "benchmarks" / "data" / "hard_sample" / "calls.jsonl"
"""The calls of the hard sample; `benchmarks.quality` needs what not every environment has."""


PRESERVED_VARIABLES = ("HYBRID_SEARCH_TEST_URLS",)
"""Environment variables that tests may see."""


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    if not DATA.is_dir():
        skip = pytest.mark.skip(
            reason="the data sets in ../shared/data are not beside this checkout"
        )
        for item in items:
            if "data" in item.keywords:
                item.add_marker(skip)


@pytest.hookimpl(optionalhook=True)  # of pytest-xdist, which not every environment has
def pytest_xdist_make_scheduler(config: pytest.Config, log: Any) -> Any:
    if not live_servers.LABELS:
        return None
    from tests.helpers.server_scheduling import ServerScheduling

    return ServerScheduling(config, log)


@pytest.fixture(scope="session")
def cluster(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Any]:
    """A Ray cluster on this machine, one for all tests that need it."""
    with start_cluster(tmp_path_factory.mktemp("home")) as ray:
        yield ray


@pytest.fixture(scope="session")
def run_folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The folder of this run of the tests, which its workers share."""
    folder = tmp_path_factory.getbasetemp()
    return folder.parent if "PYTEST_XDIST_WORKER" in os.environ else folder


@pytest.fixture(scope="session", autouse=True)
def _bytecode(run_folder: Path) -> Iterator[None]:
    """Give the processes that tests start a folder for bytecode, where Python shall write none.

    They would compile the package again and again.
    """
    with pytest.MonkeyPatch.context() as patch:
        if sys.dont_write_bytecode:
            patch.delenv("PYTHONDONTWRITEBYTECODE", raising=False)
            patch.setenv("PYTHONPYCACHEPREFIX", str(run_folder / "bytecode"))
        yield


@pytest.fixture(autouse=True)
def _isolated_environment(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Hide the user's settings and terminal from each test; it writes in its own folder only."""
    for name in list(os.environ):
        if name.startswith("HYBRID_SEARCH_") and name not in PRESERVED_VARIABLES:
            monkeypatch.delenv(name)
    for name in ("NO_COLOR", "FORCE_COLOR"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("TERM", "xterm")  # of the value dumb no colours are made, whoever asks
    monkeypatch.setenv("XDG_DATA_HOME", str(tmp_path / "home"))
    monkeypatch.chdir(tmp_path)


@pytest.fixture(scope="session")
def real_encoder() -> Encoder:
    """The shipped model on the CPU, with vectors of the usual size."""
    return encoder.truncate_encoder(encoder.load(device="cpu"))


@pytest.fixture
def tiny_encoder(monkeypatch: pytest.MonkeyPatch) -> None:
    """Let clients encode by the tiny encoder, in no time."""
    monkeypatch.setattr(encoder, "load", lambda *_, **__: TinyEncoder())
    monkeypatch.setattr(encoder, "truncate_encoder", lambda full_encoder, *_: full_encoder)


@pytest.fixture(scope="session")
def batches_folder(run_folder: Path) -> Path:
    """The folder of `remember_batches`."""
    return run_folder / "batches"


@pytest.fixture
def _remembered_batches(batches_folder: Path) -> Iterator[None]:
    """For tests that encode the whole sample, and are not about the encoder."""
    with remember_batches(batches_folder):
        yield


@pytest.fixture(scope="session")
def calls() -> list[dict[str, Any]]:
    """The calls of the hard sample as JSON objects."""
    return read_calls(HARD_CALLS)


@pytest.fixture(scope="session")
def sample_url(
    run_folder: Path,
    batches_folder: Path,
    tmp_path_factory: pytest.TempPathFactory,
    calls: list[dict[str, Any]],
) -> str:
    """The URL of an embedded index ``calls`` of the hard sample. Tests only read it."""
    folder = tmp_path_factory.mktemp("sample") / "store"
    return ingest_once(calls, run_folder / "sample", batches_folder, folder)


@pytest.fixture(scope="session")
def bundled_url(
    run_folder: Path, batches_folder: Path, tmp_path_factory: pytest.TempPathFactory
) -> str:
    """The URL of an embedded index ``calls`` of the bundled sample. Tests only read it."""
    folder = tmp_path_factory.mktemp("bundled") / "store"
    return ingest_once(read_calls(SAMPLE), run_folder / "bundled", batches_folder, folder)


def read_calls(path: Path) -> list[dict[str, Any]]:
    """Return the JSON objects of a file."""
    return [json.loads(line) for line in path.read_text(encoding="utf-8").splitlines()]


def ingest_once(
    calls: list[dict[str, Any]], original: Path, batches_folder: Path, folder: Path
) -> str:
    """Copy an embedded index of calls into `folder`, and return its URL.

    The first worker that needs it makes it, since the encoder takes seconds; each has a copy.
    """
    with lock_file(original.with_suffix(".lock")):
        if not original.exists():
            unfinished = original.with_suffix(".part")
            with remember_batches(batches_folder), connect(f"embedded:{unfinished}") as client:
                client.ingest(calls, rejects=unfinished / "rejected.jsonl")
            unfinished.rename(original)
    shutil.copytree(original, folder)
    return f"embedded:{folder}"


@contextmanager
def lock_file(path: Path) -> Iterator[None]:
    """Hold a lock that other workers wait for."""
    with path.open("a") as file:
        lock_exclusively(file.fileno(), wait=True)
        yield


@pytest.fixture
def sample(sample_url: str) -> Iterator[Client]:
    with connect(sample_url) as client:
        yield client


@pytest.fixture
def bundled(bundled_url: str) -> Iterator[Client]:
    with connect(bundled_url) as client:
        yield client


BACKENDS = ["memory", "embedded", *live_servers.SERVERS]


@contextmanager
def _empty_backend_url(place: str, folder: Path) -> Iterator[str]:
    local = {
        "memory": "memory:",
        "embedded": f"embedded:{folder / 'store'}",
    }
    if place in local:
        yield local[place]
    else:
        with live_servers.remove_new_indexes(place):
            yield place


@pytest.fixture(params=BACKENDS)
def empty_url(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[str]:
    """The URL of each backend without any index, so that one test body runs on all of them."""
    with _empty_backend_url(request.param, tmp_path) as url:
        yield url


@pytest.fixture(scope="module", params=BACKENDS)
def module_url(
    request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[str]:
    """The URL of each backend, for an index that a whole module only reads.

    A module that uses it cannot use `empty_url` as well.
    """
    with _empty_backend_url(request.param, tmp_path_factory.mktemp("module")) as url:
        yield url


@pytest.fixture
def client(empty_url: str) -> Iterator[Client]:
    """An empty client on each backend."""
    with connect(empty_url) as empty_client:
        yield empty_client


@pytest.fixture(params=live_servers.URLS)
def place(request: pytest.FixtureRequest) -> Iterator[RawIndex]:
    """An index on each server that is not made yet, and is read without the product."""
    with temporary_index(request.param) as server_place:
        yield server_place


@pytest.fixture(scope="module", params=["embedded", *live_servers.SERVERS])
def sample_place(
    request: pytest.FixtureRequest, sample_url: str, calls: list[dict[str, Any]]
) -> Iterator[RawIndex]:
    """An index that is only read: the sample, or on a server a part of it."""
    if request.param == "embedded":
        yield RawIndex(sample_url, "calls")
        return
    with live_servers.unique_index_name(request.param) as name:
        with connect(request.param) as client:
            client.ingest(calls[:16], index=name)
        yield RawIndex(request.param, name)
