"""Servers that answer badly, at each stage of a query, an ingest and a check."""

from __future__ import annotations

import os
import random
import resource
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from typing import Any
from unittest.mock import patch

from benchmarks.faults.commands import CommandReport, run_command, use_tiny_encoder
from benchmarks.faults.examination import Judge, describe_difference
from benchmarks.faults.scene import Scene
from benchmarks.faults.trial import LOST, SILENT, Outcome, Trial
from hybrid_search.backends.server.dialects import DIALECTS
from hybrid_search.backends.server.transport import retry
from tests.helpers import bad_answers
from tests.helpers.bad_answers.wrong_fields import PLAUSIBLE
from tests.helpers.fake_cluster import FakeCluster, find_stage
from tests.helpers.fake_server import HttpRequest, RawReply, Reply, ScriptedServer

STAGES = {
    "query": ("hello", "mapping", "msearch", "search"),
    "ingest": ("mapping", "settings", "counts", "bulk"),
    "verify": ("search",),
}
"""The stages of each command whose answers are tried."""

ENGINES = tuple(DIALECTS)
SHORT_COUNT = 12

SETTINGS = {"HYBRID_SEARCH_TIMEOUT": "1", "HYBRID_SEARCH_PATIENCE": "1"}
"""Seconds that a request and an ingest wait."""

MEMORY = 400 * 2**20
"""Bytes of address space that a trial may use beyond what is in use before it."""


class Answers:
    """The family of bad answers."""

    def __init__(self, scene: Scene, folder: Path) -> None:
        self._scene, self._folder = scene, folder
        self._references: dict[tuple[str, str], CommandReport] = {}

    def list_trials(self, seed: int, full: bool) -> Sequence[Trial]:
        """Return every kind at every stage; those that only one engine meets are one trial."""
        trials = [
            Trial("answers", f"{command}, {stage}", f"{_choose_engine(number)}:{kind}")
            for command, stages in STAGES.items()
            for stage in stages
            for number, kind in enumerate(bad_answers.list_kinds(stage), len(stage))
        ]
        chance = random.Random(seed)  # noqa: S311 (no secret)
        return trials if full else chance.sample(trials, SHORT_COUNT)

    def run(self, trial: Trial) -> Outcome:
        """Run a command against a server that answers badly at one stage, then rightly."""
        command, _, stage = trial.target.partition(", ")
        engine, _, name = trial.fault.partition(":")
        kind = bad_answers.find_kind(stage, name)
        cluster = FakeCluster(engine, has_cbor=False)  # the tests try answers in CBOR
        is_bad = True
        bad_count = 0

        def answer(request: HttpRequest) -> Reply | RawReply:
            nonlocal bad_count
            if not is_bad or find_stage(request) != stage:
                return cluster(request)
            bad_reply = kind(cluster.prepare(request))
            bad_count += bad_reply != cluster(request)
            return bad_reply

        with ScriptedServer(answer) as server, _hurry():
            scheme = "" if stage == "hello" else f"{engine}+"
            url = f"{scheme}{server.url}"
            sound = self._find_reference(command, engine)
            with _limit_memory():
                report = self._run_command(command, url)
            is_bad = False
            after = self._run_command(command, url)
        if not bad_count:
            return Outcome(trial, skipped="the command does not ask for that")
        return _judge(trial, report, after, sound)

    def _find_reference(self, command: str, engine: str) -> CommandReport:
        """Return the report of the command on a server that answers rightly."""
        key = (command, engine)
        if key not in self._references:
            with ScriptedServer(FakeCluster(engine, has_cbor=False)) as server:
                self._references[key] = self._run_command(command, f"{engine}+{server.url}")
            assert self._references[key].status == 0, self._references[key]
        return self._references[key]

    def _run_command(self, command: str, url: str) -> CommandReport:
        rejects = str(self._folder / "answers.rejected.jsonl")
        arguments = {
            "query": ["money back", "--json", "--highlight"],
            "ingest": [str(self._scene.folder / "few.jsonl"), "--rejects", rejects],
            "verify": ["--json"],
        }[command]
        with use_tiny_encoder():
            return run_command(command, "--url", url, "--index", "calls", *arguments)


def _choose_engine(number: int) -> str:
    return ENGINES[number % len(ENGINES)]


def _judge(
    trial: Trial, report: CommandReport, after: CommandReport, sound: CommandReport
) -> Outcome:
    judge = Judge(trial)
    judge.hear(report)
    is_believed = trial.fault.partition(":")[2] in PLAUSIBLE
    is_same = is_believed or _shape(report) == _shape(sound)
    if report.status == 0 and not report.is_strict_json:
        judge.violate(SILENT, "its JSON has NaN or Infinity")
    elif not (is_same or report.messages or report.crash or report.status):
        judge.violate(SILENT, describe_difference(report.status, report.answer, sound.answer))
    elif "\x1b" in report.errors + report.output:
        judge.violate(SILENT, "escape characters reach the terminal")
    judge.hear(after)
    is_mended = _shape(after) == _shape(sound)
    if not is_mended:
        judge.violate(LOST, f"with right answers again: {after.messages or after.output[-100:]}")
    return judge.conclude(is_mended)


def _shape(report: CommandReport) -> dict[str, Any] | None:
    """Return what a report says, without times and the names of files."""
    omitted = ("seconds", "stages", "rejected")
    answer = report.answer
    if answer is None:
        return None
    return {name: value for name, value in answer.items() if name not in omitted}


@contextmanager
def _hurry() -> Iterator[None]:
    """Try a request twice within a second, and not for a minute."""
    hurried = replace(retry.REQUEST, tries=2, total=2.0, first=0.01)
    with patch.object(retry, "REQUEST", hurried), patch.dict(os.environ, SETTINGS):
        yield


@contextmanager
def _limit_memory() -> Iterator[None]:
    """Let a command that reads without end fail, and not the machine."""
    used = int(Path("/proc/self/statm").read_text().split()[0]) * resource.getpagesize()
    before = resource.getrlimit(resource.RLIMIT_AS)
    resource.setrlimit(resource.RLIMIT_AS, (used + MEMORY, before[1]))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_AS, before)
