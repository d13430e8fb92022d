"""The evaluations of the papers, by the name that ``--task`` takes.

Each gives ``{"setups": {set-up: {metric: value}}}``, and what it was measured on.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np

from benchmarks.quality import answers, stsb_context
from benchmarks.quality.mcphrasy import choice, clusters, ppdb, senses, synonyms
from benchmarks.quality.pic import files, ranking, selection, sense, similarity
from benchmarks.quality.systems.base import System

Measure = Callable[[System, Path], dict[str, Any]]


@dataclass(frozen=True, slots=True)
class Evaluation:
    """`at_hand` says whether the data folder has what it takes; `about` which task of which paper it is."""

    measure: Measure
    about: str
    at_hand: bool = True


def contexts(system: System, data: Path, file: Path | None = None, columns: stsb_context.Columns = stsb_context.SAME) -> dict[str, Any]:
    """STS-B-Context, of `file` where it is given. Gold scores are the data's, and data are not kept here."""
    path = file or data / stsb_context.FILE
    found = stsb_context.measure(system, stsb_context.read(path, columns=columns), sweep=True)
    del found["gold"]
    return {"file": path.name, **found}


def _phrases(system: System, data: Path) -> dict[str, Any]:
    """PS with one set-up for each way to decide: by the cosine's threshold, by a classifier."""
    made = similarity.measure(system, data)
    flat = {_decided(name, way): _plain(held) for name, ways in made["setups"].items() for way, held in ways.items()}
    return {**made, "setups": flat}


def _decided(name: str, way: str) -> str:
    return f"classifier, {name}" if way == "classifier" else name


def _plain(held: Mapping[str, Any]) -> dict[str, Any]:
    """Means as plain numbers, their intervals beside them."""
    plain: dict[str, Any] = {}
    for name, value in held.items():
        if isinstance(value, Mapping):
            plain |= {name: value["mean"], f"{name} interval": value["interval"]}
        else:
            plain[name] = value
    return plain


def _phrases_found(system: System, data: Path, task: str) -> dict[str, Any]:
    """PR: the ranking, and what a reader selects."""
    made = ranking.measure(system, data, task)
    return {**made, "setups": {**made["setups"], **_selected(system, data, task)}}


def _selected(system: System, data: Path, task: str) -> dict[str, Any]:
    """Span selection, of a system that is able to it."""
    return {"span selection": _plain(selection.measure(system, data, task))} if isinstance(system, selection.Reader) else {}


def _senses_of_phrases(system: System, data: Path) -> dict[str, Any]:
    """PSD: the best of all n-grams, the choice between the two places, and what a reader selects."""
    made = sense.measure(system, data)
    best = {f"best n-gram, {name}": _plain(held) for name, held in made.pop("best of all").items()}
    chosen = {f"choice, {name}": _plain(held) for name, held in made.pop("choice").items()}
    return {**made, "setups": {**best, **chosen, **_selected(system, data, files.PSD)}}


def _answers(system: System, data: Path) -> dict[str, Any]:
    """What a reader selects of SQuAD's paragraphs."""
    return {"setups": {"span selection": _plain(answers.measure(system, data))}}


def _clusters(system: System, data: Path) -> dict[str, Any]:
    """The mean over the sources, which have as many groups each, and each source by itself with as many clusters as there are."""
    made = clusters.measure(system, data)
    ks = next(iter(made.values()))["k"]
    means = {f"k = {k}": {name: round(float(np.mean([each["k"][k][name] for each in made.values()])), 4) for name in ks[k]} for k in ks}
    own = {f"{source}, k = {clusters.GOLD}": each["k"][clusters.GOLD] for source, each in made.items()}
    return {"setups": {**means, **own}, "sources": made}


def _single(measure: Measure) -> Measure:
    """Of an evaluation with one set-up."""

    def measured(system: System, data: Path) -> dict[str, Any]:
        return {"setups": {"similarity": measure(system, data)}}

    return measured


EVALUATIONS = {
    "stsb-context": Evaluation(contexts, "SLICE, table 1: the best span of a context against people's scores"),
    "pic-ps": Evaluation(_phrases, "PiC: do two phrases mean the same in a sentence?"),
    "pic-pr-pass": Evaluation(partial(_phrases_found, task=files.PR_PASS), "PiC: the phrase of a passage that means what another one does"),
    "pic-pr-page": Evaluation(partial(_phrases_found, task=files.PR_PAGE), "PiC: the same in a whole page"),
    "pic-psd": Evaluation(_senses_of_phrases, "PiC: which of two places uses a phrase in the right sense?"),
    "answers": Evaluation(_answers, "SQuAD: which words of a paragraph answer a question?"),
    "clusters": Evaluation(_clusters, "McPhraSy, table 3: groups of phrases by complete linkage"),
    "senses": Evaluation(senses.measure, "which sense of a word does a sentence use? (WordNet's examples)"),
    "synonyms": Evaluation(_single(synonyms.measure), "in the manner of Turney: which of five expressions means the same? (WordNet)"),
    "turney": Evaluation(_single(choice.measure), "McPhraSy, table 2: which of five words means what two words mean?", at_hand=False),
    "ppdb-filtered": Evaluation(_single(ppdb.measure), "McPhraSy, table 2: do two phrases mean the same?", at_hand=False),
}
