"""Queries with parameters of every kind, on a sound index: a right answer, or an error."""

from __future__ import annotations

import json
import random
import traceback
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from benchmarks.faults.arguments import draw_options
from benchmarks.faults.commands import use_tiny_encoder
from benchmarks.faults.scene import Scene
from benchmarks.faults.trial import LOST, SILENT, TRACEBACK, Outcome, Trial
from hybrid_search import connect
from hybrid_search.client import Client
from hybrid_search.errors import HybridSearchError
from hybrid_search.ingest.document_parser import parse
from hybrid_search.search.hit import Hit
from hybrid_search.search.result import Result
from hybrid_search.text.types import Document

COUNT, SHORT_COUNT = 10_000, 60
CALLS = ("query", "query", "query", "query", "query", "requests", "best_spans", "similarity")


class Parameters:
    """The family of fuzzed parameters."""

    def __init__(self, scene: Scene, folder: Path) -> None:
        self._store = folder / "parameters" / "store"
        self._scene = scene
        self._documents: Mapping[str, Document] = {}
        self._sound: Result | None = None

    def list_trials(self, seed: int, full: bool) -> Sequence[Trial]:
        """Return one trial for each call."""
        count = COUNT if full else SHORT_COUNT
        return [
            Trial("parameters", CALLS[number % len(CALLS)], f"{seed}-{number}")
            for number in range(count)
        ]

    def run(self, trial: Trial) -> Outcome:
        """Make one call, and a sound one after it."""
        if not self._documents:
            self._scene.copy_store(self._store.parent)
            lines = (self._scene.folder / "documents.jsonl").read_bytes().splitlines()
            parsed = [parse(line)[0] for line in lines]
            self._documents = {document.id: document for document in parsed}
        phrase, options = draw_options(random.Random(trial.fault))  # noqa: S311 (no secret)
        with use_tiny_encoder(), connect(f"embedded:{self._store}") as client:
            self._sound = self._sound or client.query("refund request")
            outcome = self._call(trial, client, phrase, options)
            if client.query("refund request").hits == self._sound.hits:
                return outcome
        violations = (*outcome.violations, LOST)
        return Outcome(trial, violations, note="the next query has another answer")

    def _call(self, trial: Trial, client: Client, phrase: Any, options: dict[str, Any]) -> Outcome:
        text = f"{trial.target}({phrase!r:.60}, {options!r:.200})"
        try:
            fault = _find_fault(_make_call(trial.target, client, phrase, options), self._documents)
        except HybridSearchError as error:
            return Outcome(trial, is_reported=True, is_mended=True, note=f"{text}: {error!s:.200}")
        except Exception as error:  # that nothing else gets out is what is tried
            place = traceback.extract_tb(error.__traceback__)[-1]
            where = f"{Path(place.filename).name}:{place.lineno}"
            return Outcome(
                trial, (TRACEBACK,), is_mended=True, note=f"{error!r:.200} ({where}): {text}"
            )
        if fault:
            return Outcome(trial, (SILENT,), is_mended=True, note=f"{fault}: {text}")
        return Outcome(trial, is_mended=True)


def _make_call(name: str, client: Client, phrase: Any, options: dict[str, Any]) -> Any:
    if name == "query":
        return client.query(phrase, **options)
    if name == "best_spans":
        spans, context = options.get("spans", 3), options.get("context")
        return client.best_spans(phrase, "I want my money back, please.", k=spans, context=context)
    if name == "similarity":
        return client.phrase_similarity(phrase, "money back", context1=options.get("context"))
    allowed = ("index", "alpha", "size", "where", "fusion", "context", "offset")
    return client.requests(
        phrase, **{name: value for name, value in options.items() if name in allowed}
    )


def _find_fault(answer: Any, documents: Mapping[str, Document]) -> str:
    """Return what is wrong with an answer, "" if nothing is."""
    if not isinstance(answer, Result):
        return ""
    try:
        json.dumps(answer.to_dict(), allow_nan=False)
    except ValueError as error:
        return f"the result is not JSON ({error})"
    return next(_iterate_faults(answer, documents), "")


def _iterate_faults(answer: Result, documents: Mapping[str, Document]) -> Iterator[str]:
    scores = [hit.score for hit in answer.hits]
    if not answer.plan.get("sort") and scores != sorted(scores, reverse=True):
        yield "the hits are not in the order of their scores"
    if answer.total < len(answer.hits):
        yield f"{len(answer.hits)} hits of {answer.total}"
    for hit in answer.hits:
        yield from _iterate_wrong_spans(hit, documents)


def _iterate_wrong_spans(hit: Hit, documents: Mapping[str, Document]) -> Iterator[str]:
    text = documents[hit.id].text
    for span in hit.spans:
        if text[span.start : span.end] != span.text:
            yield f"a span of {hit.id!r} is not at its offsets"
