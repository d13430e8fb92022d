"""Measure what ships here beside other hybrid searches: ``python -m benchmarks.peers``.

``make peers`` installs the peers and starts OpenSearch. A result that is there already, of the same
documents, is not measured again, so that a run that was interrupted goes on.
"""

from __future__ import annotations

import argparse
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

from benchmarks import results
from benchmarks.peers import bandwidth, measure, offline
from benchmarks.peers.corpus import DOCUMENTS, MARKS, read_corpus
from benchmarks.peers.measure import Site
from benchmarks.peers.registry import PEERS, Peer, Store, Weights
from benchmarks.peers.report import is_measured, name_result
from benchmarks.quality.base_model import base_folder
from benchmarks.quality.hard_sample import read_marked_turns
from hybrid_search.system import available_cores

SETS = (*DOCUMENTS, MARKS)
ALL = "all"
BASE_GRAPH = results.WEIGHTS / "base"


def main() -> int:
    """Run the command, and return 1 if a peer failed."""
    options = _parse_arguments()
    pairs = [(name, task) for name in options.peer or PEERS for task in options.set or SETS]
    missing = [
        pair for pair in pairs if options.again or not is_measured(*pair, _limit(pair[1], options))
    ]
    if options.bandwidth:
        results.write("bandwidth", bandwidth.measure(options.data), results.PEERS)
        return 0
    if len(pairs) == 1:
        for name, task in missing:
            _measure(name, task, options)
        return 0
    return max((_run_apart(name, task, options) for name, task in missing), default=0)


def _run_apart(name: str, task: str, options: argparse.Namespace) -> int:
    """Measure in a process of its own, so that no peer's threads and memory trouble another."""
    print(f"{name} on {task}", file=sys.stderr, flush=True)
    limits = ["--documents", str(options.documents)] if options.documents is not None else []
    limits += ["--cores", str(options.cores)] if options.cores else []
    again = ["--again"] if options.again else []
    command = [sys.executable, "-m", "benchmarks.peers", "--peer", name, "--set", task]
    places = ["--data", str(options.data), "--server", options.server or ""]
    status = subprocess.run([*command, *places, *limits, *again]).returncode
    return int(status != 0)


def _measure(name: str, task: str, options: argparse.Namespace) -> None:
    """Measure one peer on one set, and write its result."""
    offline.go_offline()
    _use_cores(options.cores)
    peer = PEERS[name]
    site = Site(results.STORE / "peers", _find_server(peer, options.server), _find_weights(peer))
    index = f"{name}-{task}".replace("_", "-")
    payload = {**measure.describe(peer), "set": task, **_describe_machine()}
    if task == MARKS:
        payload |= measure.measure_marks(peer, read_marked_turns(), site, index)
    else:
        corpus = read_corpus(task, options.data, _limit(task, options))
        payload["documents"] = len(corpus.texts.documents)
        payload |= measure.measure_search(peer, corpus, site, index)
    results.write(name_result(name, task), payload, results.PEERS)


def _describe_machine() -> dict[str, Any]:
    """Return how many cores a peer may use, and how many processes wanted one when it began."""
    return {"cores": available_cores(), "load": round(os.getloadavg()[0], 1)}


def _use_cores(count: int | None) -> None:
    """Leave this process only so many cores, before a library counts them."""
    if count:
        os.sched_setaffinity(0, sorted(os.sched_getaffinity(0))[-count:])


def _limit(task: str, options: argparse.Namespace) -> int | None:
    """Return how many documents of a set are searched; None is all."""
    usual = DOCUMENTS.get(task)
    if options.documents is None:
        return usual
    return options.documents or None


def _find_server(peer: Peer, server: str | None) -> str | None:
    """Return the address of OpenSearch, if the peer needs it.

    Raises:
        SystemExit: If there is none.
    """
    if peer.store is Store.EMBEDDED:
        return None
    if not server:
        raise SystemExit(f"{peer.label} needs OpenSearch: give --server URL, or run make peers")
    return server.partition("?")[0].removeprefix("opensearch+").rstrip("/")


def _find_weights(peer: Peer) -> Path | None:
    """Return the folder of the peer's weights, None for the model that ships here.

    Raises:
        SystemExit: If it is not there.
    """
    folders = {Weights.BASE: Path(base_folder()), Weights.BASE_GRAPH: BASE_GRAPH}
    folder = folders.get(peer.weights)
    if folder and not folder.is_dir():
        raise SystemExit(f"no weights at {folder}: make peers fetches and exports them")
    return folder


def _parse_arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument(
        "--peer", action="append", choices=PEERS, help="only this one; may be repeated"
    )
    parser.add_argument(
        "--set", action="append", choices=SETS, help="only this one; may be repeated"
    )
    parser.add_argument(
        "--documents",
        type=int,
        help="how many documents of each set are searched, evenly spread; 0: all; default:"
        f" {', '.join(f'{count or ALL} of {name}' for name, count in DOCUMENTS.items())}",
    )
    parser.add_argument("--again", action="store_true", help="measure what has a result, too")
    parser.add_argument(
        "--cores",
        type=int,
        help="how many cores a peer may use; 1 on a busy machine, where waiting for threads spoils"
        " CPU time; default: all",
    )
    parser.add_argument(
        "--bandwidth",
        action="store_true",
        help="only the memory's bandwidth, beside what the span leg reads of all calls_sgd",
    )
    parser.add_argument(
        "--server",
        default=next(iter(os.environ.get("HYBRID_SEARCH_TEST_URLS", "").split()), None),
        help="OpenSearch for the peers that need it; default: the first of HYBRID_SEARCH_TEST_URLS",
    )
    parser.add_argument("--data", type=Path, default=results.DATA, help="the folder of data sets")
    return parser.parse_args()


if __name__ == "__main__":
    sys.exit(main())
