"""Read the rows of the data sets that may be trained on."""

from __future__ import annotations

import gzip
import json
import re
from collections.abc import Collection, Iterator
from dataclasses import dataclass
from pathlib import Path
from random import Random
from typing import Any

from benchmarks.quality.written import MORE_TOPICS
from hybrid_search.text.languages import ENGLISH

Row = dict[str, Any]

TRAIN = "train"
OTHER_LANGUAGES = MORE_TOPICS.with_name("other_languages.jsonl")
PARALLEL_TURNS = MORE_TOPICS.with_name("parallel_turns.jsonl")
OUT_OF_SCOPE = "oos"
_CAMEL = re.compile(r"(?<=[a-z])(?=[A-Z])")


@dataclass(frozen=True, slots=True)
class Request:
    """What a customer writes, and the name of the intent: "refund not showing up"."""

    intent: str
    text: str


def make_random(seed: int, name: str) -> Random:
    """Return the random numbers of one kind of draws: more of one kind change no other."""
    return Random(f"{seed} {name}")  # noqa: S311 (a draw, no secret)


def read_rows(path: Path) -> list[Row]:
    """Return the rows of a file of JSON lines, gzipped or not.

    Raises:
        SystemExit: If there is no such file.
    """
    if not path.is_file():
        raise SystemExit(f"{path} is missing: name the folder of data sets (--data)")
    content = path.read_bytes()
    lines = (gzip.decompress(content) if path.suffix == ".gz" else content).splitlines()
    return [json.loads(line) for line in lines]


def read_turns(data: Path, name: str) -> list[str]:
    """Return what is said in the calls of a data set, turn by turn."""
    calls = read_rows(data / name / "calls.jsonl.gz")
    return [turn["text"] for call in calls for turn in call["turns"]]


def read_sgd_turns(data: Path) -> list[str]:
    """Return what is said in the calls of SGD that are about training domains alone."""
    return [turn["text"] for turn in _list_sgd_turns(data)]


def read_translated_turns(languages: Collection[str]) -> list[str]:
    """Return the turns that were written in several languages, in those but English."""
    rows = read_rows(PARALLEL_TURNS)
    return [row[code] for row in rows for code in languages if code != ENGLISH and code in row]


def read_positives(data: Path, name: str) -> list[str]:
    """Return the positive passages of a file of training triples."""
    return [row["positive"] for row in read_triples(data, name)]


def read_triples(data: Path, name: str) -> list[Row]:
    """Return a file of training triples."""
    return read_rows(data / "train_triples" / f"{name}.jsonl.gz")


def read_requests(data: Path, name: str) -> list[Request]:
    """Return the requests of a data set whose intents are marked for training."""
    rows = read_rows(data / name / f"{name}.jsonl.gz")
    return [_make_request(row["intent"], row["text"]) for row in rows if _is_trainable(row)]


def read_sgd_requests(data: Path) -> list[Request]:
    """Return the turns of SGD that state an intent, of calls about training domains alone."""
    labelled_turns = (turn for turn in _list_sgd_turns(data) if turn.get("intents"))
    return [_make_request(turn["intents"][0], turn["text"]) for turn in labelled_turns]


def read_answers(data: Path) -> list[Row]:
    """Return the questions of SelQA with their sections."""
    return read_rows(data / "selqa" / "selqa.jsonl.gz")


def name_intent(label: str) -> str:
    """Return an intent's label in words: "Flights.BookFlight" as "book flight"."""
    name = label.rpartition(".")[2]
    return _CAMEL.sub(" ", name).replace("_", " ").lower()


def _make_request(label: str, text: str) -> Request:
    return Request(name_intent(label), text)


def _is_trainable(row: Row) -> bool:
    return row["part"] == TRAIN and not row["intent"].startswith(OUT_OF_SCOPE)


def _list_sgd_turns(data: Path) -> Iterator[Row]:
    folder = data / "calls_sgd"
    queries = read_rows(folder / "queries.jsonl")
    domains = {row["id"].partition(".")[0] for row in queries if row["part"] == TRAIN}
    for call in read_rows(folder / "calls.jsonl.gz"):
        metadata = call["metadata"]
        services = {service.partition("_")[0] for service in metadata["services"]}
        if metadata["split"] == TRAIN and services <= domains:
            yield from call["turns"]
