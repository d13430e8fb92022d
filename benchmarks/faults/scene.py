"""Sound indexes and a model: each trial damages a copy, and is judged by their answers."""

from __future__ import annotations

import json
import os
import shutil
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from benchmarks.faults.commands import CommandReport, run_command, use_tiny_encoder
from benchmarks.quality import hard_sample
from hybrid_search import connect, encoder
from tests.helpers.tiny_encoder import make_entries, make_spec

CALLS = 12
"""Calls of the hard sample in the index; a trial adds one more."""

STRANGERS = {
    "others.txt": "not ours",
    "calls.index/notes.txt": "not ours either",
    "calls.index/000001/codes/notes.txt": "nor is this",
    "calls.index/000001/records/notes.txt": "nor that",
}
"""Files of others in a store, which have to stay as they are."""

QUERIES = (
    ("refund request", "--size", "20", "--highlight", "--facet", "sector"),
    ("my card was declined", "--alpha", "1", "--size", "50", "--group-by", "passage"),
    ("money account", "--alpha", "0", "--where", "date>=2025-06-01"),
)
"""The queries of a small index: both legs, each alone, facets, highlights and a filter."""

MODEL_QUERIES = QUERIES[:2]

Answers = list[dict[str, Any] | None]


@dataclass(frozen=True, slots=True)
class Store:
    """A copy of an index in `folder`, and the answers of a sound one.

    `before` are those to `QUERIES` as it is, `after` those once `documents` is ingested.
    """

    folder: Path
    documents: Path
    before: Answers
    after: Answers
    name: str = "store"
    rejects: Path | None = None

    @property
    def path(self) -> Path:
        """The folder that the URL names."""
        return self.folder / self.name

    def query(self) -> list[CommandReport]:
        """Return the reports of all queries."""
        return [self.run("query", *query, "--json") for query in QUERIES]

    def verify(self) -> CommandReport:
        """Return the report of ``verify``."""
        return self.run("verify", "--json")

    def ingest(self) -> CommandReport:
        """Return the report of an ingest of all documents, of which one is new."""
        rejects = self.rejects or self.folder / "rejected.jsonl"
        return self.run("ingest", str(self.documents), "--rejects", str(rejects))

    def delete(self, *arguments: str) -> CommandReport:
        """Return the report of ``delete``."""
        return self.run("delete", *arguments)

    def run(self, command: str, *arguments: str) -> CommandReport:
        """Return the report of any command on this index."""
        with use_tiny_encoder():
            url = f"embedded:{self.path}"
            return run_command(command, "--url", url, "--index", "calls", *arguments)


@dataclass(frozen=True, slots=True)
class ModelCopy:
    """A copy of a model folder, and an index of that model."""

    folder: Path
    before: Answers

    @property
    def store(self) -> Path:
        """The folder of the index."""
        return self.folder / "real"

    @property
    def model(self) -> Path:
        """The model folder."""
        return self.folder / "model"

    def query(self) -> list[CommandReport]:
        """Return the reports of all queries, each by an encoder that is loaded anew."""
        url = f"embedded:{self.store}"
        places = ("--url", url, "--index", "calls", "--model", str(self.model))
        reports = []
        for query in MODEL_QUERIES:
            encoder.load.cache_clear()
            reports.append(run_command("query", *places, *query, "--json"))
        return reports


@dataclass(frozen=True, slots=True)
class Scene:
    """The folder with everything sound, made by `build`."""

    folder: Path

    def copy_store(self, folder: Path, source: str = "tiny") -> Store:
        """Return a fresh copy of a store below `folder`."""
        shutil.rmtree(folder, ignore_errors=True)
        folder.mkdir(parents=True)
        shutil.copytree(self.folder / source, folder / "store")
        references = json.loads((self.folder / "references.json").read_text())
        documents = folder / "documents.jsonl"
        shutil.copy2(self.folder / "all.jsonl", documents)
        return Store(folder, documents, references["before"], references["after"])

    def copy_model(self, folder: Path) -> ModelCopy:
        """Return the copy of the model in `folder`, made at its first use and repaired after."""
        for name in ("model", "real"):
            if not (folder / name).is_dir():
                shutil.copytree(self.folder / name, folder / name)
        references = json.loads((self.folder / "references.json").read_text())
        return ModelCopy(folder, references["model"])


def build(folder: Path, with_model: bool) -> None:
    """Make the scene in an empty folder."""
    folder.mkdir(parents=True)
    os.chdir(folder)
    lines = hard_sample.CALLS.read_bytes().splitlines(keepends=True)[: CALLS + 1]
    (folder / "documents.jsonl").write_bytes(b"".join(lines[:-1]))
    (folder / "all.jsonl").write_bytes(b"".join(lines))
    (folder / "few.jsonl").write_bytes(b"".join(lines[:2]))
    references: dict[str, Any] = {"before": [], "after": []}
    tiny = Store(folder, folder / "documents.jsonl", [], [], "tiny")
    _check(tiny.ingest())
    _plant_strangers(tiny.path)
    references["before"] = _answers(tiny.query())
    _build_interrupted(folder)
    later = Scene(folder)
    (folder / "references.json").write_text(json.dumps(references))
    copy = later.copy_store(folder / "scratch")
    _check(copy.ingest())
    references["after"] = _answers(copy.query())
    shutil.rmtree(folder / "scratch")
    if with_model:
        references["model"] = _build_model(folder)
    (folder / "references.json").write_text(json.dumps(references))


def _build_interrupted(folder: Path) -> None:
    """Make a store as a killed writer leaves it: a copy that is made while the writer is open."""
    lines = (folder / "documents.jsonl").read_bytes().splitlines(keepends=True)
    first = folder / "first.jsonl"
    first.write_bytes(b"".join(lines[: CALLS // 2]))
    opened = Store(folder, first, [], [], "open")
    _check(opened.ingest())
    with (
        use_tiny_encoder(),
        connect(f"embedded:{opened.path}") as client,
        client.backend.writer("calls", make_spec()) as writer,
    ):
        for line in lines[CALLS // 2 :]:
            writer.write(make_entries(json.loads(line)))
        shutil.copytree(opened.path, folder / "interrupted")
    shutil.rmtree(opened.path)
    _plant_strangers(folder / "interrupted")


def _build_model(folder: Path) -> Answers:
    """Make the copy of the shipped model and an index; return the answers."""
    shutil.copytree(encoder.SHIPPED, folder / "model")
    model = ModelCopy(folder, [])
    documents = str(folder / "documents.jsonl")
    url = f"embedded:{model.store}"
    places = ("--url", url, "--index", "calls", "--model", str(model.model))
    encoder.load.cache_clear()
    _check(run_command("ingest", documents, *places))
    return _answers(model.query())


def _plant_strangers(store: Path) -> None:
    for name, text in STRANGERS.items():
        (store / name).write_text(text)


def _answers(reports: Sequence[CommandReport]) -> Answers:
    for report in reports:
        _check(report)
        assert report.answer, report
    return [report.answer for report in reports]


def _check(report: CommandReport) -> None:
    assert report.status == 0, report
    assert not report.crash, report
