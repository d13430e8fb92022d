"""The Ray executor, on a cluster of two workers on this machine: ``make test-ray``.

The index is the same as without Ray, in order, a few blocks ahead, whatever dies.
"""

from __future__ import annotations

import json
import os
import signal
import sys
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

from hybrid_search import config, connect, encoder
from hybrid_search.backends.memory import MemoryBackend
from hybrid_search.client.encoders import ClientEncoders
from hybrid_search.cluster import actors
from hybrid_search.cluster.actors import AHEAD, RETRIES
from hybrid_search.encoder import SHIPPED, Encoder
from hybrid_search.errors import MissingExtraError, ModelError, UsageError, WorkerError
from hybrid_search.ingest.encode import LocalExecutor
from hybrid_search.ingest.executors import Executor
from hybrid_search.ingest.executors import ray as ray_executor
from hybrid_search.ingest.executors.ray import RayExecutor
from hybrid_search.ingest.options import IngestOptions
from hybrid_search.ingest.pipeline import ingest
from hybrid_search.ingest.sources.files import read
from hybrid_search.ingest.summary import Summary
from hybrid_search.ingest.types import EncodingOrError
from hybrid_search.text.types import Encoding
from tests.conftest import HARD_CALLS
from tests.helpers.cli import invoke_cli, run_cli
from tests.helpers.ray_cluster import WORKERS, list_processes, wait_for_processes


@pytest.fixture
def executor(cluster: Any) -> Iterator[RayExecutor]:
    with RayExecutor(SHIPPED, "cpu", "int8", None, WORKERS) as ray_executor:
        yield ray_executor


class Jobs:
    """Numbered jobs of 20 short texts; counts how many were taken."""

    def __init__(self, count: int) -> None:
        self.count, self.consumed = count, 0

    def __iter__(self) -> Iterator[tuple[int, list[str]]]:
        for number in range(self.count):
            self.consumed += 1
            yield number, texts(number)


def texts(number: int) -> list[str]:
    return [f"I want my money back for order {number}, {item}, please." for item in range(20)]


def encodings_match(encodings: Sequence[EncodingOrError], expected: list[Encoding]) -> bool:
    pairs = zip(encodings, expected, strict=True)
    return all(
        isinstance(a, Encoding)
        and (a.vectors == b.vectors).all()
        and (a.offsets == b.offsets).all()
        for a, b in pairs
    )


@pytest.mark.ray
def test_the_index_is_that_of_one_process_byte_for_byte(executor: RayExecutor) -> None:
    local_backend, ray_backend = MemoryBackend(), MemoryBackend()
    local_encoder = encoder.truncate_encoder(encoder.load(device="cpu", precision="int8"))
    local_summary = ingest(
        read([str(HARD_CALLS)]),
        local_backend,
        local_encoder,
        IngestOptions("calls", Path("rejected")),
    )
    ray_summary = ingest(
        read([str(HARD_CALLS)]), ray_backend, executor, IngestOptions("calls", Path("rejected"))
    )
    passages, expected = (
        ray_backend._indexes["calls"].passages(),
        local_backend._indexes["calls"].passages(),
    )
    assert list(passages) == list(expected)
    assert len(expected) > 3 * 64  # more than some blocks, so that both workers had some
    for key, passage in expected.items():
        codes = passages[key].entry.tokens
        assert codes.residuals.tobytes() == passage.entry.tokens.residuals.tobytes(), key
        assert codes.norms.tobytes() == passage.entry.tokens.norms.tobytes(), key
    assert ray_backend.read_head("calls") == local_backend.read_head("calls")
    assert {**ray_summary.to_dict(), "seconds": 0, "stages": 0} == {
        **local_summary.to_dict(),
        "seconds": 0,
        "stages": 0,
    }
    assert ray_summary.stages["encode"] > 0


@pytest.mark.ray
def test_jobs_come_back_in_order_and_few_are_taken_ahead(executor: RayExecutor) -> None:
    jobs, finished, summary = Jobs(40), [], Summary()
    for number, encodings in executor.run(iter(jobs), summary):
        finished.append(number)
        assert len(encodings) == 20
        assert summary.stages["encode"] > 0
        assert jobs.consumed - len(finished) < AHEAD * WORKERS
        time.sleep(0.01)  # a slow store: the workers wait for it
    assert finished == list(range(40))


@pytest.mark.ray
def test_vectors_are_not_copied_on_their_way_here(executor: RayExecutor) -> None:
    [(_, encodings)] = executor.run(iter(Jobs(1)), Summary())
    vectors = [encoding.vectors for encoding in encodings if isinstance(encoding, Encoding)]
    assert vectors
    assert not any(array.flags.owndata or array.flags.writeable for array in vectors)


@pytest.mark.ray
def test_a_worker_that_is_killed_is_started_again_and_nothing_is_lost(
    executor: RayExecutor, real_encoder: Encoder
) -> None:
    finished = []
    for number, encodings in executor.run(iter(Jobs(60)), Summary()):
        assert encodings_match(encodings, real_encoder.encode(texts(number))), number
        finished.append(number)
        if number == 10:
            before = wait_for_processes("Worker")
            os.kill(before[0], signal.SIGKILL)
    assert finished == list(range(60))
    assert set(list_processes("Worker")) != set(before)


@pytest.mark.ray
def test_the_workers_report_nothing_to_the_makers_of_onnx_runtime(executor: RayExecutor) -> None:
    list(executor.run(iter(Jobs(4)), Summary()))
    assert list_processes("Worker")
    assert list(Path.home().rglob(".onnxruntime")) == []


class FakeRay:
    """Records what the environment is when a cluster would be started."""

    reports: str | None = None

    def is_initialized(self) -> bool:
        return False

    def init(self, **_: Any) -> None:
        self.reports = os.environ.get(config.RAY_SWITCH)


@pytest.mark.parametrize(("value", "result"), [("", "0"), ("1", "1")])
def test_a_cluster_that_is_started_reports_only_if_the_user_wants_it(
    monkeypatch: pytest.MonkeyPatch, value: str, result: str
) -> None:
    monkeypatch.setenv(config.RAY_SWITCH, value)
    fake_ray = FakeRay()
    actors.join_cluster(fake_ray)
    assert fake_ray.reports == result


@pytest.mark.ray
def test_the_error_of_a_worker_is_raised_here_as_it_is(executor: RayExecutor) -> None:
    with pytest.raises(UsageError, match=r"a lone surrogate, U\+D800"):
        list(executor.run(iter([("good", ["money"]), ("bad", ["\ud800"])]), Summary()))


@pytest.mark.ray
def test_a_model_folder_that_the_workers_do_not_have_is_a_model_error(
    cluster: Any, tmp_path: Path
) -> None:
    with pytest.raises(ModelError, match=r"is not a model folder: encoder\.json is missing"):
        RayExecutor(tmp_path, "cpu", "int8", None, WORKERS)


@pytest.mark.ray
@pytest.mark.parametrize(
    ("device", "workers", "message"),
    [
        ("auto", 3, "3 workers need one CPU each, but the Ray cluster has 2"),
        ("cuda", None, "1 workers need one GPU each, but the Ray cluster has 0"),
    ],
)
def test_more_workers_than_cores_or_cards_are_refused_with_both_numbers(
    cluster: Any, device: str, workers: int | None, message: str
) -> None:
    with pytest.raises(UsageError, match=message):
        RayExecutor(SHIPPED, device, "auto", None, workers)


@pytest.mark.ray
@pytest.mark.parametrize("device", ["cuda:1", "tpu"])
def test_a_worker_s_card_is_the_cluster_s_choice(cluster: Any, device: str) -> None:
    message = (
        f"device {device!r} is not one of auto, cpu, cuda, tensorrt: the Ray cluster "
        f"chooses which card a worker has"
    )
    with pytest.raises(UsageError, match=message):
        RayExecutor(SHIPPED, device, "auto", None)


class BrokenWorker(ray_executor.Worker):
    """Fails with a foreign error, or dies, whenever it has something to encode."""

    def encode(self, texts: Any) -> Any:
        if texts == ["die"]:
            os._exit(1)
        raise ZeroDivisionError("out of cheese")


@pytest.mark.ray
@pytest.mark.parametrize(
    ("text", "message"),
    [("fail", "ZeroDivisionError.*out of cheese"), ("die", f"died {RETRIES + 1} times")],
)
def test_an_error_that_is_not_ours_or_the_death_of_every_worker_is_one_clear_error(
    cluster: Any, monkeypatch: pytest.MonkeyPatch, text: str, message: str
) -> None:
    monkeypatch.setattr(ray_executor, "Worker", BrokenWorker)
    with (
        RayExecutor(SHIPPED, "cpu", "int8", None, WORKERS) as executor,
        pytest.raises(WorkerError, match=message),
    ):
        list(executor.run(iter([("one", [text])]), Summary()))


@pytest.mark.ray
def test_the_end_of_the_block_frees_the_cores(cluster: Any) -> None:
    for _ in range(2):  # the second would wait for ever
        with RayExecutor(SHIPPED, "cpu", "int8", None, WORKERS) as ray_executor:
            assert ray_executor.info.precision == "int8"


@pytest.mark.ray
def test_the_command_ingests_and_its_last_line_is_the_summary(cluster: Any) -> None:
    ran = run_cli("ingest", "--engine", "ray", "--workers", "1", "--url", "embedded:store")
    assert ran.status == 0, ran.stderr
    assert (ran.json["documents"], len(ran.stdout.splitlines())) == (100, 1)
    assert invoke_cli("ingest", "--url", "embedded:store").json["skipped"] == 100


@pytest.mark.ray
def test_the_workers_of_one_ingest_go_on_with_the_next(
    cluster: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    entered = []

    def enter(self: RayExecutor) -> RayExecutor:
        entered.append(self)
        return self

    monkeypatch.setattr(RayExecutor, "__enter__", enter)
    with connect("memory:", device="cpu") as client:
        first, again = (
            client.ingest_lines(read([str(HARD_CALLS)]), engine="ray", workers=1) for _ in range(2)
        )
        client.ingest_lines(read([str(HARD_CALLS)]), index="others", engine="ray", workers=1)
        assert (
            first.documents,
            again.skipped,
            client.describe("others").documents,
            len(entered),
        ) == (88, 88, 88, 1)
        # had the first worker kept its core, these two would wait for it for ever
        assert (
            client.ingest_lines(
                read([str(HARD_CALLS)]), index="more", engine="ray", workers=2
            ).documents
            == 88
        )
    with RayExecutor(
        SHIPPED, "cpu", "int8", None, WORKERS
    ):  # as here, if the client had not let them go
        pass


def test_workers_stay_until_others_are_wanted_or_they_fail(real_encoder: Encoder) -> None:
    encoders, seen = ClientEncoders(config.settings("memory:")), list[str]()

    @contextmanager
    def begin(name: str) -> Iterator[Executor]:
        seen.append(f"begin {name}")
        yield LocalExecutor(real_encoder)
        seen.append(f"end {name}")

    for name in ("one", "one", "two"):
        with encoders.keep_executor(begin, name):
            seen.append("used")
    assert seen == ["begin one", "used", "used", "end one", "begin two", "used"]
    with pytest.raises(WorkerError, match="gone"), encoders.keep_executor(begin, "two"):
        raise WorkerError("gone")
    with encoders.keep_executor(begin, "two"):
        encoders.close()
    assert seen[6:] == ["end two", "begin two", "end two"]


def test_without_ray_the_extra_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "ray", None)
    with pytest.raises(MissingExtraError, match=r"pip install 'hybrid-span-search\[cpu,ray\]'"):
        RayExecutor(SHIPPED, "cpu", "int8", None)


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (("--engine", "spark"), "engine 'spark' is not one of local, ray"),
        (("--workers", "2"), "takes no workers"),
    ],
)
def test_an_engine_that_is_none_is_refused(arguments: tuple[str, ...], message: str) -> None:
    Path("calls.jsonl").write_text(json.dumps({"id": "a", "text": "money"}) + "\n")
    refused = invoke_cli("ingest", "calls.jsonl", *arguments, "--url", "embedded:store")
    assert message in refused.error
