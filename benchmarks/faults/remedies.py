"""Doing what a message says: the remedy is found by its words."""

from __future__ import annotations

import re
import shlex
import shutil
from collections.abc import Callable, Sequence

from benchmarks.faults.scene import Store

Undo = Callable[[], None]
"""Puts back the files as they were: a backup, an export, a permission, free space."""


def _drop(store: Store, _: re.Match[str], __: Undo) -> list[str]:
    return store.delete("--yes").messages


DELETE = r"hybrid-search delete --index \S+ -- "
IDS = r"(?P<ids>(?:'[^']+'|[^\s'\";,(\]]+)(?: (?:'[^']+'|[^\s'\";,(\]]+))*)"
"""The ids that a command names, as a shell reads them."""


def _delete_documents(store: Store, match: re.Match[str], _: Undo) -> list[str]:
    """Delete all documents that any of the messages names, with one command."""
    commands = re.finditer(DELETE + IDS, match.string)
    ids = {document_id for command in commands for document_id in shlex.split(command["ids"])}
    return store.delete("--", *sorted(ids)).messages


def _repair(store: Store, _: re.Match[str], __: Undo) -> list[str]:
    return store.run("verify", "--repair", "--json").messages


def _delete_index_files(store: Store, _: re.Match[str], __: Undo) -> list[str]:
    """Do by hand what ``delete --yes`` does, as somebody would whose index cannot be opened."""
    for path in (store.path / "calls.index").rglob("*"):
        if path.is_file() and path.suffix != ".txt":
            path.unlink()
    return []


def _delete_lock(store: Store, _: re.Match[str], __: Undo) -> list[str]:
    path = store.path / "calls.index.lock"
    if path.is_dir() and not path.is_symlink():
        shutil.rmtree(path)
    else:
        path.unlink(missing_ok=True)
    return []


def _restore(_: Store, __: re.Match[str], undo: Undo) -> list[str]:
    undo()
    return []


def _run_again(_: Store, __: re.Match[str], ___: Undo) -> list[str]:
    """Do nothing: `examination` ingests after each remedy."""
    return []


Remedy = Callable[[Store, re.Match[str], Undo], list[str]]
"""Does what a message names, and returns the messages of the command that does it."""

REMEDIES: Sequence[tuple[str, Remedy]] = (
    (r"--repair", _repair),
    (r"(delete|remove) (it|that file|the lock file|\S+\.lock)\b.*\block\b", _delete_lock),
    (r"lock\b.*: (delete|remove) (it|that file|the lock file)", _delete_lock),
    (DELETE + IDS, _delete_documents),
    (r"hybrid-search delete --index \S+ --yes", _drop),
    (r"restore (it|the file|them)\b.* from a backup", _restore),
    (r"delete (it|the index) and ingest", _delete_index_files),
    (r"[Ee]xport the model again|[Cc]opy it there|benchmarks\.quality\.calibrate", _restore),
    (r"let this user|(another|a) file|another folder|chmod|writable folder|move it away", _restore),
    (r"[Ff]ree (some )?space|disk is full|check the disk", _restore),
    (r"(next|run|by an|an) ingest|ingest (it )?(again|FILE|into it)|same command again"
     r"|hybrid-search ingest", _run_again),
)  # fmt: skip
"""What a message may name, and how it is done; those that keep the most come first."""


def find_remedies(messages: Sequence[str]) -> list[tuple[Remedy, re.Match[str]]]:
    """Return what the messages name, in the order of `REMEDIES`."""
    remedies = []
    text = "\n".join(messages)
    for pattern, remedy in REMEDIES:
        matches = {match[0]: match for match in re.finditer(pattern, text)}
        remedies += [(remedy, match) for match in matches.values()]
    return remedies


ATTEMPTS = 4
"""How often the same remedy is done: another may have to come first."""


def apply_remedy(
    store: Store, messages: Sequence[str], undo: Undo, done: list[str]
) -> list[str] | None:
    """Do the first remedy that was not `done` in vain, and add its words.

    A remedy may be done again after another: what kept it from mending may be gone by then.

    Returns:
        The messages of its command, None if no remedy is left.
    """
    for remedy, match in find_remedies(messages):
        if [match[0]] != done[-1:] and done.count(match[0]) < ATTEMPTS:
            done.append(match[0])
            return remedy(store, match, undo)
    return None
