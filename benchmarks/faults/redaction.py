"""Plant secrets in calls, redact them, and search every byte: ``-m benchmarks.faults.redaction``.

With ``--url`` the calls are in an index on a server, which is removed at the end; ``--files`` is a
folder of that server's data, whose bytes are searched too.
"""

from __future__ import annotations

import argparse
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any, TypeVar

from benchmarks import results
from benchmarks.faults.planted import Planted, plant_secrets
from hybrid_search import connect
from hybrid_search.backends.embedded.remains import iterate_files
from hybrid_search.client import Client

INDEX = "planted"

T = TypeVar("T")


def measure(client: Client, planted: Planted, files: Path | None = None) -> dict[str, Any]:
    """Return how many secrets were found before and after, and how long each step took."""
    _, ingest_seconds = _time(lambda: client.ingest(planted.calls, index=INDEX))
    before, in_files_before = _search(client, planted, files)
    receipts, redact_seconds = _time(lambda: client.redact(planted.spans, index=INDEX))
    _, rewrite_seconds = _time(lambda: client.backend.purge(INDEX))
    (after, in_files_after), search_seconds = _time(lambda: _search(client, planted, files))
    return {
        "calls": len(planted.calls),
        "secrets": len(planted.words),
        "documents_redacted": len(receipts),
        "found_before": len({found.line for found in before.found}),
        "found_after": len({found.line for found in after.found}),
        "remains_after": after.remains,
        "searched": {"passages": after.passages, "terms": after.terms, "bytes": after.bytes},
        "found_in_files_of_server": {"before": in_files_before, "after": in_files_after},
        "seconds": {
            "ingest": round(ingest_seconds, 2),
            "redact": round(redact_seconds, 2),
            "purge_again": round(rewrite_seconds, 2),
            "search": round(search_seconds, 2),
        },
        "milliseconds_a_redacted_call": round(1000 * redact_seconds / len(receipts), 1),
        "milliseconds_to_ingest_a_call": round(1000 * ingest_seconds / len(planted.calls), 1),
    }


def _search(client: Client, planted: Planted, files: Path | None) -> tuple[Any, int | None]:
    """Return what the product finds, and how many secrets are in the bytes of a server's files."""
    check = client.search_words(planted.words, index=INDEX)
    if files is None:
        return check, None
    secrets = [word.lower().encode() for word in planted.words]
    found = set[bytes]()
    for _, data in iterate_files(files):
        lowered = data.lower()
        found |= {secret for secret in secrets if secret in lowered}
    return check, len(found)


def _time(operation: Callable[[], T]) -> tuple[T, float]:
    began = time.perf_counter()
    return operation(), time.perf_counter() - began


def main() -> None:
    """Run the command."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--calls", type=int, default=2000)
    parser.add_argument("--secrets", type=int, default=200)
    parser.add_argument("--url", help="a server, as in --url of the product")
    parser.add_argument("--files", type=Path, help="the data of that server on this machine")
    options = parser.parse_args()
    planted = plant_secrets(options.calls, options.secrets)
    kind = f"_{options.url.partition('+')[0]}" if options.url else ""
    with tempfile.TemporaryDirectory() as folder:
        url = options.url or f"embedded:{Path(folder) / 'store'}"
        with connect(url) as client:
            try:
                measured = measure(client, planted, options.files)
            finally:
                if INDEX in client.indexes():
                    client.drop(INDEX)
    results.write(f"redaction{kind}", measured, results.FAULTS)


if __name__ == "__main__":
    main()
