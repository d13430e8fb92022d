"""The rules, applied to the copy of an index after something was done to it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from benchmarks.faults.commands import CommandReport
from benchmarks.faults.remedies import Undo, apply_remedy
from benchmarks.faults.scene import Answers, ModelCopy, Store
from benchmarks.faults.trial import LOST, REMOVED, SILENT, TRACEBACK, Outcome, Trial

ROUNDS = 16
"""How many remedies are tried, one after the other, before something counts as lost."""

NOTE_LENGTH = 300


@dataclass(slots=True)
class Judge:
    """Collects what broke and what was reported during one trial."""

    trial: Trial
    violations: list[str] = field(default_factory=list)
    messages: list[str] = field(default_factory=list)
    notes: list[str] = field(default_factory=list)

    def hear(self, *reports: CommandReport) -> None:
        """Take note of crashes and messages of commands."""
        for report in reports:
            self.messages += report.messages
            if report.crash:
                self.violate(TRACEBACK, f"{report.arguments[0]}: {report.crash}")

    def violate(self, rule: str, note: str) -> None:
        """Take note of a rule that was broken."""
        if rule not in self.violations:
            self.violations.append(rule)
        self.notes.append(f"{rule}: {note}")

    def compare(
        self, reports: Sequence[CommandReport], answers: Answers, excuse: Sequence[str] = ()
    ) -> bool:
        """Return whether all answers are those of a sound index.

        One that differs although its command reported nothing breaks a rule, unless an earlier
        command reported `excuse`. Once a message has come, documents may have been replaced, which
        BM25 counts until they are merged: then its scores may differ.
        """
        self.hear(*reports)
        if self.messages:
            answers = [*map(forget_bm25, answers)]
            answered = [forget_bm25(report.answer) for report in reports]
        else:
            answered = [report.answer for report in reports]
        for report, actual, answer in zip(reports, answered, answers, strict=True):
            excuses = list(filter(None, [*report.messages, report.crash, *excuse]))
            if report.status == 0 and not report.is_strict_json:
                self.violate(SILENT, f"{report.arguments[0]}: its JSON has NaN or Infinity")
            elif actual != answer and not excuses:
                difference = describe_difference(report.status, actual, answer)
                self.violate(SILENT, f"{' '.join(report.arguments[5:8])}: {difference}")
        return answered == list(answers)

    def conclude(self, is_mended: bool) -> Outcome:
        """Return the outcome."""
        texts = self.notes or self.messages
        note = " | ".join(dict.fromkeys(text[:NOTE_LENGTH] for text in texts))
        return Outcome(
            self.trial,
            tuple(self.violations),
            is_reported=bool(self.messages),
            is_mended=is_mended,
            note=note[: 3 * NOTE_LENGTH],
        )


BY_BM25 = {"score", "bm25", "bm25_rank", "probability"}
"""What of a hit depends on BM25."""


def forget_bm25(answer: dict[str, Any] | None) -> dict[str, Any] | None:
    """Return an answer without what depends on BM25, its hits in the order of their places."""
    if answer is None or "hits" not in answer:
        return answer
    hits = [{name: hit[name] for name in hit if name not in BY_BM25} for hit in answer["hits"]]
    return {**answer, "hits": sorted(hits, key=lambda hit: (hit["id"], hit["passage"]))}


def describe_difference(status: int, actual: object, answer: object) -> str:
    """Return in a few words how an answer differs from the one of a sound index."""
    if not isinstance(actual, dict) or not isinstance(answer, dict):
        return f"status {status} and no answer"
    names = [name for name in answer if answer[name] != actual.get(name)]
    if "hits" not in names:
        return f"other {', '.join(names)}"
    hits, expected = actual["hits"], answer["hits"]
    if len(hits) != len(expected):
        return f"{len(hits)} hits instead of {len(expected)}"
    pairs = zip(hits, expected, strict=True)
    fields = {name for hit, other_hit in pairs for name in hit if hit[name] != other_hit.get(name)}
    return f"other {', '.join(sorted(fields))} of a hit"


Strangers = Mapping[Path, bytes]


def snapshot_strangers(folder: Path) -> Strangers:
    """Return the files of others in `folder`, with what is in them."""
    return {path: path.read_bytes() for path in folder.rglob("*.txt") if path.is_file()}


def find_changes(strangers: Strangers) -> list[str]:
    """Return the names of the files that are no longer what they were."""
    return [
        path.name
        for path, data in strangers.items()
        if not path.is_file() or path.read_bytes() != data
    ]


def examine_store(trial: Trial, store: Store, undo: Undo) -> Outcome:
    """Query, verify and ingest after a fault, then do what the messages name until all is well."""
    judge = Judge(trial)
    strangers = snapshot_strangers(store.folder)
    judge.compare(store.query(), store.before)
    judge.hear(store.verify())
    return _mend_store(judge, store, undo, strangers)


def examine_deletion(trial: Trial, store: Store, undo: Undo) -> Outcome:
    """Delete the index after a fault, then ingest it again, with the remedies that it takes."""
    judge = Judge(trial)
    strangers = snapshot_strangers(store.folder)
    judge.hear(store.delete("--yes"))
    return _mend_store(judge, store, undo, strangers)


def _mend_store(judge: Judge, store: Store, undo: Undo, strangers: Strangers) -> Outcome:
    """Ingest, and do what the messages name, until everything is there."""
    done: list[str] = []
    replies: list[str] = []
    is_mended = False
    for _ in range(ROUNDS):
        count = len(judge.messages)
        ingest = store.ingest()
        judge.hear(ingest)
        is_mended = judge.compare(
            store.query(), store.after, excuse=[*ingest.messages, ingest.crash]
        )
        _check_strangers(judge, strangers)
        strangers = {}  # a remedy may put them back
        if is_mended:
            break
        messages = judge.messages[count:] or judge.messages
        messages = [*messages, *replies]
        if (command_messages := apply_remedy(store, messages, undo, done)) is None:
            break
        replies = command_messages
    if not is_mended and judge.messages:
        judge.violate(LOST, f"after {done or 'no remedy'}: {judge.messages[-1:]}")
    return judge.conclude(is_mended)


def _check_strangers(judge: Judge, strangers: Strangers) -> None:
    if changes := find_changes(strangers):
        judge.violate(REMOVED, ", ".join(changes))


def examine_model(trial: Trial, model: ModelCopy, undo: Undo) -> Outcome:
    """Query after a fault in the model folder, and once it is undone."""
    judge = Judge(trial)
    strangers = snapshot_strangers(model.folder)
    judge.compare(model.query(), model.before)
    _check_strangers(judge, strangers)
    undo()  # what all messages name: the files as they were exported
    is_mended = judge.compare(model.query(), model.before)
    if not is_mended:
        judge.violate(LOST, f"after the files were restored: {judge.messages[-1:]}")
    return judge.conclude(is_mended)
