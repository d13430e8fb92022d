"""The evaluations of the papers, by the name that ``--task`` takes.

Each returns ``{"setups": {set-up: {metric: value}}}``, and what it was measured on.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np

from benchmarks.quality import stsb_context
from benchmarks.quality.systems import System
from papers import answers
from papers.mcphrasy import choice, clusters, ppdb, senses, synonyms
from papers.pic import files, ranking, selection, sense, similarity

Measure = Callable[[System, Path], dict[str, Any]]


@dataclass(frozen=True, slots=True)
class Evaluation:
    """How to measure a task, what it is about, and whether the data folder has its data."""

    measure: Measure
    about: str
    has_data: bool = True


def measure_stsb_context(
    system: System,
    data: Path,
    file: Path | None = None,
    columns: stsb_context.Columns = stsb_context.SAME,
) -> dict[str, Any]:
    """Return the figures of STS-B-Context, on `file` if given.

    Gold scores belong to the data and are left out of the result.
    """
    path = file or data / stsb_context.FILE
    result = stsb_context.measure(system, stsb_context.read(path, columns=columns), sweep=True)
    del result["gold"]
    return {"file": path.name, **result}


def _measure_similarity(system: System, data: Path) -> dict[str, Any]:
    """Measure PS, with a set-up for each way to decide: by threshold, by classifier."""
    result = similarity.measure(system, data)
    flat = {
        _setup_name(name, way): _flatten_figures(figures)
        for name, ways in result["setups"].items()
        for way, figures in ways.items()
    }
    return {**result, "setups": flat}


def _setup_name(name: str, way: str) -> str:
    return f"classifier, {name}" if way == "classifier" else name


def _flatten_figures(figures: Mapping[str, Any]) -> dict[str, Any]:
    """Return means as plain numbers, their intervals beside them."""
    flat: dict[str, Any] = {}
    for name, value in figures.items():
        if isinstance(value, Mapping):
            flat |= {name: value["mean"], f"{name} interval": value["interval"]}
        else:
            flat[name] = value
    return flat


def _measure_phrase_retrieval(system: System, data: Path, task: str) -> dict[str, Any]:
    """Measure PR: the ranking, and the spans that a reader selects."""
    result = ranking.measure(system, data, task)
    return {**result, "setups": {**result["setups"], **_measure_selection(system, data, task)}}


def _measure_selection(system: System, data: Path, task: str) -> dict[str, Any]:
    """Measure span selection, for a system that supports it."""
    return (
        {"span selection": _flatten_figures(selection.measure(system, data, task))}
        if isinstance(system, selection.Reader)
        else {}
    )


def _measure_senses(system: System, data: Path) -> dict[str, Any]:
    """Measure PSD: the best of all n-grams, the choice between two places, a reader's spans."""
    result = sense.measure(system, data)
    best = {
        f"best n-gram, {name}": _flatten_figures(figures)
        for name, figures in result.pop("best of all").items()
    }
    choices = {
        f"choice, {name}": _flatten_figures(figures)
        for name, figures in result.pop("choice").items()
    }
    return {**result, "setups": {**best, **choices, **_measure_selection(system, data, files.PSD)}}


def _measure_answers(system: System, data: Path) -> dict[str, Any]:
    """Measure the spans that a reader selects in SQuAD's paragraphs."""
    return {"setups": {"span selection": _flatten_figures(answers.measure(system, data))}}


def _measure_clusters(system: System, data: Path) -> dict[str, Any]:
    """Return the mean over the sources, and each source by itself at its gold number of clusters.

    The sources have equally many groups.
    """
    results_by_source = clusters.measure(system, data)
    ks = next(iter(results_by_source.values()))["k"]
    means = {}
    for k, metrics in ks.items():
        by_source = [source_result["k"][k] for source_result in results_by_source.values()]
        means[f"k = {k}"] = {
            name: round(float(np.mean([figures[name] for figures in by_source])), 4)
            for name in metrics
        }
    own = {
        f"{source}, k = {clusters.GOLD}": source_result["k"][clusters.GOLD]
        for source, source_result in results_by_source.items()
    }
    return {"setups": {**means, **own}, "sources": results_by_source}


def _wrap_single_setup(measure: Measure) -> Measure:
    """Return the measure of an evaluation with one set-up."""

    def measure_single_setup(system: System, data: Path) -> dict[str, Any]:
        return {"setups": {"similarity": measure(system, data)}}

    return measure_single_setup


EVALUATIONS = {
    "stsb-context": Evaluation(
        measure_stsb_context, "SLICE, table 1: the best span of a context against people's scores"
    ),
    "pic-ps": Evaluation(_measure_similarity, "PiC: do two phrases mean the same in a sentence?"),
    "pic-pr-pass": Evaluation(
        partial(_measure_phrase_retrieval, task=files.PR_PASS),
        "PiC: the phrase of a passage that means what another one does",
    ),
    "pic-pr-page": Evaluation(
        partial(_measure_phrase_retrieval, task=files.PR_PAGE), "PiC: the same in a whole page"
    ),
    "pic-psd": Evaluation(
        _measure_senses, "PiC: which of two places uses a phrase in the right sense?"
    ),
    "answers": Evaluation(_measure_answers, "SQuAD: which words of a paragraph answer a question?"),
    "clusters": Evaluation(
        _measure_clusters, "McPhraSy, table 3: groups of phrases by complete linkage"
    ),
    "senses": Evaluation(
        senses.measure, "which sense of a word does a sentence use? (WordNet's examples)"
    ),
    "synonyms": Evaluation(
        _wrap_single_setup(synonyms.measure),
        "in the manner of Turney: which of five expressions means the same? (WordNet)",
    ),
    "turney": Evaluation(
        _wrap_single_setup(choice.measure),
        "McPhraSy, table 2: which of five words means what two words mean?",
        has_data=False,
    ),
    "ppdb-filtered": Evaluation(
        _wrap_single_setup(ppdb.measure),
        "McPhraSy, table 2: do two phrases mean the same?",
        has_data=False,
    ),
}
