"""In which of its senses is a word used? WordNet's example sentences, of words that no model here was trained on.

Each sentence of a sense that has others is compared with the rest of that sense's, and with those of each other sense of the word. Contexts are
given, not searched: a corpus holds a word in all its senses at once, and what it says of them together is the same for all. Most senses have two or
three sentences, so this asks more of mask vectors than of how they are put together.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from benchmarks.quality.correlation import auc
from benchmarks.quality.mcphrasy.contexts import Context
from benchmarks.quality.mcphrasy.pairs import similarities
from benchmarks.quality.mcphrasy.system import Contextual
from benchmarks.quality.mcphrasy.wordnet import Sense, senses
from benchmarks.quality.systems.base import SpanEncoder, System, unit
from hybrid_search.types import Floats


@dataclass(frozen=True, slots=True)
class Case:
    """A use of a word and other uses of it in one sense: the same one where `same` is 1. Cases of one `use` are choices among senses."""

    use: int
    word: str
    context: Context
    others: tuple[str, ...]
    rest: tuple[Context, ...]
    same: int


def cases(found: Sequence[Sequence[Sense]]) -> list[Case]:
    """The cases of each use, the right sense first."""
    made: list[Case] = []
    uses = 0
    for word in found:
        for sense in (each for each in word if len(each.contexts) > 1):
            for number, context in enumerate(sense.contexts):
                words = sense.words[:number] + sense.words[number + 1 :]
                contexts = sense.contexts[:number] + sense.contexts[number + 1 :]
                made.append(Case(uses, sense.words[number], context, words, contexts, 1))
                made += [Case(uses, sense.words[number], context, other.words, other.contexts, 0) for other in word if other is not sense]
                uses += 1
    return made


def measure(system: System, data: Path) -> dict[str, Any]:
    """The figures of each set-up that the system is able to."""
    return score(system, cases(list(senses(data))))


def score(system: System, found: Sequence[Case]) -> dict[str, Any]:
    """Area under the curve of all cases, and the share of uses whose own sense is the most alike; `chance` is that of a throw of dice."""
    setups = _setups(system, found)
    uses, labels = np.array([case.use for case in found]), [case.same for case in found]
    chance = float(np.mean(1 / np.bincount(uses)))
    figures = {name: {"auc": round(auc(each, labels), 4), "chosen": chosen(each, uses, labels)} for name, each in setups.items()}
    return {"uses": len(set(uses.tolist())), "cases": len(found), "chance": round(chance, 4), "setups": figures}


def _setups(system: System, found: Sequence[Case]) -> dict[str, Floats]:
    """The scores of all cases by each set-up."""
    if isinstance(system, Contextual):
        return {"contexts": system.between([(case.word, [case.context]) for case in found], [(case.word, case.rest) for case in found])}
    setups = {
        "word alone": mean_of(system, [case.word for case in found], [case.others for case in found]),
        "sentence": mean_of(system, [case.context.text for case in found], [[context.text for context in case.rest] for case in found]),
    }
    return setups | {"word in its sentence": inside(system, found)} if isinstance(system, SpanEncoder) else setups


def mean_of(system: System, firsts: Sequence[str], seconds: Sequence[Sequence[str]]) -> Floats:
    """The mean score of each case's first text with each of its second ones, float32 ``[cases]``."""
    pairs = [(first, second) for first, texts in zip(firsts, seconds, strict=True) for second in texts]
    scores = similarities(system, [first for first, _ in pairs], [second for _, second in pairs])
    split = np.split(scores, np.cumsum([len(texts) for texts in seconds])[:-1])
    return np.array([each.mean() for each in split], dtype=np.float32)


def inside(system: SpanEncoder, found: Sequence[Case]) -> Floats:
    """The cosine of the word's vector in its sentence with the mean of its vectors in the others."""
    contexts = list(dict.fromkeys(context for case in found for context in (case.context, *case.rest)))
    vectors = system.inside([each.text for each in contexts], [[(each.start, each.end)] for each in contexts])
    held = dict(zip(contexts, (each[0] for each in vectors), strict=True))
    firsts = np.stack([held[case.context] for case in found])
    seconds = unit(np.stack([np.mean([held[context] for context in case.rest], axis=0) for case in found]))
    cosines: Floats = np.einsum("ij,ij->i", firsts, seconds)
    return cosines


def chosen(scores: Floats, uses: np.ndarray[Any, Any], labels: Sequence[int]) -> float:
    """The share of uses whose right case has the highest score; of n that are equally high, 1/n."""
    right = np.asarray(labels, dtype=bool)
    shares = []
    for use in np.unique(uses):
        of_use = uses == use
        best = scores[of_use] == scores[of_use].max()
        shares.append(float((best & right[of_use]).sum()) / int(best.sum()))
    return round(float(np.mean(shares)), 4)
