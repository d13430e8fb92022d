"""Word senses: in which of its senses does a sentence use a word?

WordNet's example sentences, of words that no model here was trained on. Each sentence of a sense
that has others is compared with the rest of that sense's, and with those of each other sense of the
word. Contexts are given, not searched: a corpus has a word in all its senses at once, and what it
tells of them together is the same for all. Most senses have two or three sentences, so this tests
mask vectors more than the way they are combined.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from benchmarks.quality.correlation import auc
from benchmarks.quality.systems import SpanEncoder, System, normalize_rows
from hybrid_search.text.types import Floats
from papers.mcphrasy.contexts import Context
from papers.mcphrasy.pairs import similarities
from papers.mcphrasy.system import Contextual
from papers.mcphrasy.wordnet import Sense, senses


@dataclass(frozen=True, slots=True)
class Case:
    """A use of a word and other uses of it in one sense; `same` is 1 for its own sense.

    Cases of one `use` are choices among senses.
    """

    use: int
    word: str
    context: Context
    other_words: tuple[str, ...]
    other_contexts: tuple[Context, ...]
    same: int


def build_cases(senses_by_word: Sequence[Sequence[Sense]]) -> list[Case]:
    """Return the cases of each use, the right sense first."""
    collected_cases: list[Case] = []
    uses = 0
    for word in senses_by_word:
        for sense in (usable_sense for usable_sense in word if len(usable_sense.contexts) > 1):
            for number, context in enumerate(sense.contexts):
                words = sense.words[:number] + sense.words[number + 1 :]
                contexts = sense.contexts[:number] + sense.contexts[number + 1 :]
                collected_cases.append(Case(uses, sense.words[number], context, words, contexts, 1))
                collected_cases += [
                    Case(
                        uses,
                        sense.words[number],
                        context,
                        other_sense.words,
                        other_sense.contexts,
                        0,
                    )
                    for other_sense in word
                    if other_sense is not sense
                ]
                uses += 1
    return collected_cases


def measure(system: System, data: Path) -> dict[str, Any]:
    """Return the figures of each set-up that the system supports."""
    return score(system, build_cases(list(senses(data))))


def score(system: System, word_cases: Sequence[Case]) -> dict[str, Any]:
    """Return the area under the curve, and the share of uses whose own sense scores highest.

    `chance` is that share for a random choice.
    """
    setups = _setups(system, word_cases)
    uses, labels = np.array([case.use for case in word_cases]), [case.same for case in word_cases]
    chance = float(np.mean(1 / np.bincount(uses)))
    figures = {
        name: {
            "auc": round(auc(case_scores, labels), 4),
            "chosen": choice_accuracy(case_scores, uses, labels),
        }
        for name, case_scores in setups.items()
    }
    return {
        "uses": len(set(uses.tolist())),
        "cases": len(word_cases),
        "chance": round(chance, 4),
        "setups": figures,
    }


def _setups(system: System, word_cases: Sequence[Case]) -> dict[str, Floats]:
    """Return the scores of all cases by each set-up."""
    if isinstance(system, Contextual):
        return {
            "contexts": system.compare_contexts(
                [(case.word, [case.context]) for case in word_cases],
                [(case.word, case.other_contexts) for case in word_cases],
            )
        }
    setups = {
        "word alone": mean_pair_scores(
            system, [case.word for case in word_cases], [case.other_words for case in word_cases]
        ),
        "sentence": mean_pair_scores(
            system,
            [case.context.text for case in word_cases],
            [[context.text for context in case.other_contexts] for case in word_cases],
        ),
    }
    return (
        setups | {"word in its sentence": cosines_in_sentence(system, word_cases)}
        if isinstance(system, SpanEncoder)
        else setups
    )


def mean_pair_scores(
    system: System, firsts: Sequence[str], seconds: Sequence[Sequence[str]]
) -> Floats:
    """Return the mean score of each case's first text with its second ones, float32 ``[cases]``."""
    pairs = [
        (first, second) for first, texts in zip(firsts, seconds, strict=True) for second in texts
    ]
    scores = similarities(system, [first for first, _ in pairs], [second for _, second in pairs])
    split = np.split(scores, np.cumsum([len(texts) for texts in seconds])[:-1])
    return np.array([text_scores.mean() for text_scores in split], dtype=np.float32)


def cosines_in_sentence(system: SpanEncoder, word_cases: Sequence[Case]) -> Floats:
    """Return the cosine of the word in its sentence with the mean of its vectors in the others."""
    contexts = list(
        dict.fromkeys(
            context for case in word_cases for context in (case.context, *case.other_contexts)
        )
    )
    vectors = system.encode_spans(
        [sentence_context.text for sentence_context in contexts],
        [[(sentence_context.start, sentence_context.end)] for sentence_context in contexts],
    )
    vectors_by_context = dict(
        zip(contexts, (span_vectors[0] for span_vectors in vectors), strict=True)
    )
    firsts = np.stack([vectors_by_context[case.context] for case in word_cases])
    seconds = normalize_rows(
        np.stack(
            [
                np.mean([vectors_by_context[context] for context in case.other_contexts], axis=0)
                for case in word_cases
            ]
        )
    )
    cosines: Floats = np.einsum("ij,ij->i", firsts, seconds)
    return cosines


def choice_accuracy(scores: Floats, uses: np.ndarray[Any, Any], labels: Sequence[int]) -> float:
    """Return the share of uses whose right case has the highest score; n equal ones count 1/n."""
    right = np.asarray(labels, dtype=bool)
    shares = []
    for use in np.unique(uses):
        of_use = uses == use
        best = scores[of_use] == scores[of_use].max()
        shares.append(float((best & right[of_use]).sum()) / int(best.sum()))
    return round(float(np.mean(shares)), 4)
