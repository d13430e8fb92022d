"""Written topics of kept-out trades in other languages, and sentences with their translations.

The topics are those of ``export/data/written/other_languages.jsonl`` whose trade is never trained
on. A phrasing ranks the turns of its language's topics, as in `benchmarks.quality.written`: in the
same language, and in English, by the phrasings of the English topic. The sentences are those of
``data/stsb_multi`` marked ``dev``: how many English ones are nearest to their own translation. And
the English topics of the hard sample rank its calls, of which a few are in German and Spanish.
"""

from __future__ import annotations

import gzip
import json
from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np

from benchmarks.quality import bootstrap, hard_sample
from benchmarks.quality.measures import MAP, evaluate
from benchmarks.quality.span_scores import score_texts
from benchmarks.quality.vectors import means
from benchmarks.quality.written import (
    DEV_DOMAINS,
    FILE,
    MORE_TOPICS,
    STYLES,
    WrittenTopic,
    list_rows,
    list_texts,
    parse_topic,
)
from hybrid_search.encoder import Encoder

TOPICS = MORE_TOPICS.with_name("other_languages.jsonl")
SENTENCES = "stsb_multi/sentences.jsonl.gz"
LANGUAGES = ("de", "es", "fr", "it")
TRANSLATIONS = (*LANGUAGES, "pt", "nl")
SAMPLE_LANGUAGES = {"en": ("en",), "de, es": ("de", "es")}


def measure(encoder: Encoder, data: Path) -> dict[str, Any]:
    """Return MAP by language and style, and the share of translations that are nearest."""
    english = _read_topics(data / FILE, None)
    figures: dict[str, Any] = {"topics": {}, "map": {}}
    for language in LANGUAGES:
        topics = _read_topics(TOPICS, language)
        topics_by_wording = {
            language: topics,
            f"{language} by English phrases": {
                name: replace(topic, phrases=english[name].phrases)
                for name, topic in topics.items()
            },
            f"en, the topics of {language}": {name: english[name] for name in topics},
        }
        figures["topics"][language] = len(topics)
        for name, phrased in topics_by_wording.items():
            figures["map"][name] = _measure_topics(encoder, list(phrased.values()))
    return {
        **figures,
        "calls by English phrases": _measure_calls(encoder),
        "nearest translation": _measure_translations(encoder, data),
    }


def _read_topics(path: Path, language: str | None) -> dict[str, WrittenTopic]:
    """Return the topics of kept-out trades in a language, by the name of the English topic."""
    rows = map(json.loads, path.read_text(encoding="utf-8").splitlines())
    kept_out = [row for row in rows if row["domain"] in DEV_DOMAINS]
    return {
        row["topic"].partition(".")[0]: parse_topic(row)
        for row in kept_out
        if row.get("language") == language
    }


def _measure_topics(encoder: Encoder, topics: Sequence[WrittenTopic]) -> dict[str, Any]:
    """Return MAP by the best span, by style, with intervals over topics."""
    texts = [text for topic in topics for text in list_texts(topic)]
    grades = [dict.fromkeys(rows.says, 1) for rows in list_rows(topics)]
    phrases = [topic.phrases[style] for style in STYLES for topic in topics]
    scores = score_texts(encoder, texts, means(encoder, phrases)).span  # reads the turns once
    figures = {}
    for style, table in zip(STYLES, np.split(scores, len(STYLES), axis=1), strict=True):
        ranked = [np.argsort(-column, kind="stable").tolist() for column in table.T]
        figures[style] = bootstrap.summary(evaluate(ranked, grades, [MAP])[MAP])
    return figures


def _measure_calls(encoder: Encoder) -> dict[str, Any]:
    """Return MAP of the right calls of the hard sample in a language, among those in all."""
    turns = hard_sample.read_turns(("en", "de", "es"))
    topics = hard_sample.read_topics()
    scores = score_texts(
        encoder, list(turns.values()), means(encoder, [topic.phrase for topic in topics])
    ).span
    keys = list(turns)
    rankings = [
        list(dict.fromkeys(keys[number][0] for number in np.argsort(-column, kind="stable")))
        for column in scores.T
    ]
    figures = {}
    for name, languages in SAMPLE_LANGUAGES.items():
        grades = [dict.fromkeys(topic.calls, 1) for topic in hard_sample.read_topics(languages)]
        labelled = [number for number, right in enumerate(grades) if right]
        values = evaluate(
            [rankings[number] for number in labelled],
            [grades[number] for number in labelled],
            [MAP],
        )[MAP]
        figures[name] = {"topics": len(labelled), **bootstrap.summary(values)}
    return figures


def _measure_translations(encoder: Encoder, data: Path) -> Mapping[str, float]:
    """Return for each language the share of English sentences next to their own translation."""
    with gzip.open(data / SENTENCES, "rt", encoding="utf-8") as lines:
        rows = [row for row in map(json.loads, lines) if row["split"] == "dev"]
    english = means(encoder, [row["en"] for row in rows])
    shares = {}
    for language in TRANSLATIONS:
        translated = means(encoder, [row[language] for row in rows])
        nearest = (english @ translated.T).argmax(axis=1)
        shares[language] = round(float((nearest == np.arange(len(rows))).mean()), 4)
    return shares
