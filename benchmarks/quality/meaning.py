"""Render the tables of what is marked and found where words differ, models beside each other."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import Any

from benchmarks import results
from benchmarks.markdown import head, row
from benchmarks.quality import marking
from benchmarks.quality.intents import SETS, WORDINGS
from benchmarks.quality.localisation import RECOGNISED, SAMPLE, SQUAD, STSB
from benchmarks.quality.marking import BY_COSINE, CLAUSE, MATCHES, WHOLE
from benchmarks.quality.measures import MAP, NDCG
from benchmarks.quality.text_ranking import BEST_SPAN, BM25, FEEDBACK, ONE_VECTOR
from hybrid_search.text.languages import LANGUAGES

SHIPPED, LARGER, MULTILINGUAL = "slice-bge-small (ships)", "slice-mpnet", "slice-multilingual"

SUFFIXES = {
    "all-MiniLM-L6-v2": "_all-MiniLM-L6-v2_int8_????????",
    "bge-small-en-v1.5 (its base)": "_bge-small_int8_????????",
    SHIPPED: "",
    "all-mpnet-base-v2": "_all-mpnet-base-v2_float32_????????",
    LARGER: "_slice-mpnet_int8_????????",
}
"""What a model adds to the names of its results."""

LANGUAGE_SUFFIXES = {
    SHIPPED: "",
    "multilingual-e5-small as it is": "_multilingual-e5-small_int8_????????",
    MULTILINGUAL: "_slice-multilingual_int8_????????",
}
"""What the models add to the names of results that are compared in several languages."""

STYLES = ("name", "described", "oblique")
CALLS = {
    "de, es": "the hard sample's calls in German and Spanish, by English phrases",
    "en": "its calls in English",
}

BASELINES = {
    WHOLE: "the whole text",
    MATCHES: "BM25: the shortest stretch with the matched words",
    CLAUSE: "the clause with the rarest matched words, or else the longest",
}


def localisation_table() -> str:
    """Render how well marked spans agree with labelled ones, by model and baseline."""
    names = ("sample: F1", "as recognised: F1", "STS-B-Context: found", "SQuAD: F1")
    lines = head("marking", *names)
    shipped = _read_result("localisation", SHIPPED)["sets"]
    for way, label in BASELINES.items():
        lines.append(row(label, *_agreement_cells(shipped, way)))
    for model in _list_models("localisation"):
        sets = _read_result("localisation", model)["sets"]
        for way in (BY_COSINE, marking.BEST_SPAN):  # without a prior both are the same
            if way in sets[SAMPLE]["ways"]:
                lines.append(row(f"{model}, {way}", *_agreement_cells(sets, way)))
    return "\n".join(lines)


def _agreement_cells(sets: dict[str, Any], way: str) -> list[str]:
    columns = (
        (SAMPLE, "f1"),
        (RECOGNISED, "f1"),
        (STSB, "found"),
        (SQUAD, "f1"),
    )
    return [format_summary(sets[name]["ways"][way][measure]) for name, measure in columns]


def topics_table() -> str:
    """Render how well the sample's topics find turns and calls, by system and model."""
    columns = (("turns", NDCG), ("turns", "recall@50"), ("calls", NDCG))
    lines = head("46 topics", *[f"{items}: {name}" for items, name in columns])
    ways = (BEST_SPAN, ONE_VECTOR)
    for label, systems, system in _list_rows("topics", ways, lambda result: result["systems"]):
        cells = [format_summary(systems[system][items][name]) for items, name in columns]
        lines.append(row(label, *cells))
    return "\n".join(lines)


def intents_table() -> str:
    """Render MAP of each wording of the intents of each set, by system and model."""
    lines = head(
        f"{MAP}: {', '.join(WORDINGS)}",
        *[f"{name} ({_count_intents(name)} intents)" for name in SETS],
    )
    systems = (BEST_SPAN, FEEDBACK, ONE_VECTOR)
    for label, sets, system in _list_rows("intents", systems, lambda result: result["sets"]):
        cells = [_format_wordings(sets[name]["wordings"], system) for name in SETS]
        lines.append(row(label, *cells))
    return "\n".join(lines)


def _format_wordings(wordings: dict[str, Any], system: str) -> str:
    means = (wordings[wording][system][MAP]["mean"] for wording in WORDINGS)
    return ", ".join(f"{mean:.3f}" for mean in means)


def _count_intents(name: str) -> int:
    count: int = _read_result("intents", SHIPPED)["sets"][name]["intents"]
    return count


def languages_table() -> str:
    """Render MAP of kept-out topics and calls in other languages, models beside each other."""
    models = [model for model in LANGUAGE_SUFFIXES if _has_languages(model)]
    figures = {model: _read_languages(model) for model in models}
    lines = head(f"{MAP}: {', '.join(STYLES)}", *models)
    for name in figures[models[0]]["map"]:
        cells = [_format_styles(figures[model]["map"][name]) for model in models]
        lines.append(row(_name_wording(name), *cells))
    for name, label in CALLS.items():
        calls = [figures[model]["calls by English phrases"][name] for model in models]
        lines.append(row(label, *map(format_summary, calls)))
    return "\n".join(lines)


def english_table() -> str:
    """Render what the models of this project find in English."""
    suffixes = {**SUFFIXES, **LANGUAGE_SUFFIXES}
    models = (SHIPPED, LARGER, MULTILINGUAL)
    topics, intents, marks = (
        {
            model: results.read_result(f"{measurement}{suffixes[model]}", results.QUALITY)
            for model in models
        }
        for measurement in ("topics", "intents", "localisation")
    )
    lines = head("in English, by the best span", *models)
    for items in ("turns", "calls"):
        summaries = (topics[model]["systems"][BEST_SPAN][items][NDCG] for model in models)
        lines.append(row(f"46 topics, {items}: {NDCG}", *map(format_summary, summaries)))
    for name in SETS:
        sets = (intents[model]["sets"][name]["wordings"] for model in models)
        cells = (_format_wordings(wordings, BEST_SPAN) for wordings in sets)
        lines.append(row(f"{name}, {MAP}: {', '.join(WORDINGS)}", *cells))
    ways = (marks[model]["sets"][STSB]["ways"][marking.BEST_SPAN] for model in models)
    lines.append(row("STS-B-Context: found", *(format_summary(way["found"]) for way in ways)))
    return "\n".join(lines)


def _name_wording(name: str) -> str:
    """Return the name of a row: ``de``, ``de by English phrases`` or ``en, the topics of de``."""
    code, by_english, _ = name.partition(" by ")
    if by_english:
        return "... by English phrases"
    if name.startswith("en, "):
        return "... the same in English"
    return f"{LANGUAGES[code].capitalize()} topics"


def _format_styles(by_style: dict[str, Any]) -> str:
    return ", ".join(f"{by_style[style]['mean']:.3f}" for style in STYLES)


def _has_languages(model: str) -> bool:
    return results.has_result(f"languages{LANGUAGE_SUFFIXES[model]}", results.QUALITY)


def _read_languages(model: str) -> dict[str, Any]:
    return results.read_result(f"languages{LANGUAGE_SUFFIXES[model]}", results.QUALITY)


def _list_rows(
    measurement: str,
    systems: Sequence[str],
    select: Callable[[dict[str, Any]], dict[str, Any]],
) -> Iterable[tuple[str, dict[str, Any], str]]:
    """Yield label, figures and system of each row: BM25 once, and `systems` of every model."""
    yield "BM25", select(_read_result(measurement, SHIPPED)), BM25
    for model in _list_models(measurement):
        figures = select(_read_result(measurement, model))
        for system in systems:
            yield f"{model}, {system}", figures, system


def _list_models(measurement: str) -> list[str]:
    """Return the models that were measured."""
    return [
        model
        for model, suffix in SUFFIXES.items()
        if results.has_result(f"{measurement}{suffix}", results.QUALITY)
    ]


def _read_result(measurement: str, model: str) -> dict[str, Any]:
    return results.read_result(f"{measurement}{SUFFIXES[model]}", results.QUALITY)


def format_summary(summary: dict[str, Any]) -> str:
    """Return a mean with its interval."""
    low, high = summary["interval"]
    return f"{summary['mean']:.3f} ({low:.3f}-{high:.3f})"


TABLES: dict[str, Callable[[], str]] = {
    "localisation": localisation_table,
    "topics": topics_table,
    "intents": intents_table,
    "languages": languages_table,
    "english": english_table,
}
