"""Write the model card: ``README.md`` of a model folder.

From what the export measured and, for trained weights, from the report of their run.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

FILE = "README.md"
LIMITS_HEADING = "## Limits"
PRECISIONS = "Precisions"
"""The title of the section on them."""

WORDNET = "CC BY 4.0 and the WordNet licence (Princeton WordNet, the Open English WordNet team)"
WRITTEN = "CC0, written for this project"

LICENSES = {
    "banking77": "CC BY 4.0",
    "clinc150": "CC BY 3.0",
    "disfl_qa": "questions CC BY 4.0, passages CC BY-SA 4.0",
    "long_turns": WRITTEN,
    "medquad": "CC BY 4.0",
    "more_plain_mentions": WRITTEN,
    "more_topics": WRITTEN,
    "passing": WRITTEN,
    "plain_mentions": WRITTEN,
    "multidogo": "CDLA-Permissive-1.0",
    "multiwoz": "MIT",
    "opensearch_docs": "Apache-2.0",
    "other_languages": WRITTEN,
    "parallel_phrases": WRITTEN,
    "parallel_turns": WRITTEN,
    "qmsum": "MIT",
    "requests": "phrasings CC0; requests of banking77, clinc150, multidogo and sgd",
    "selqa": "questions Apache-2.0, passages CC BY-SA",
    "sentences": "captions and Stack Exchange CC BY-SA, headlines with acknowledgement",
    "sgd": "CC BY-SA 4.0",
    "squad": "CC BY-SA 4.0",
    "taskmaster4": "CC BY 4.0",
    "topics": WRITTEN,
    "verbatim": WRITTEN,
    "wiki_split": "CC BY-SA 4.0",
    "wordnet_definitions": WORDNET,
    "wordnet_examples": WORDNET,
    "written topics": WRITTEN,
}
"""The licences of the public corpora that the recipes, and `export.boundaries`, name."""

GRAPHS = {
    "int8": "`int8.onnx` and `int8-unsigned.onnx` (x86 without VNNI) for CPUs, in dynamic int8",
    "float16": "`float16.onnx` for GPUs; all compute theirs from the same int8 weights, which have"
    " a scale per channel, block or row",
    "float32": "`float32.onnx`",
}
"""The card's words on the graphs in each precision."""

ABOUT = """A span-aggregatable encoder for hybrid_search: a span's vector is the mean of its tokens'
vectors, from one pass over the text around it. Made by `python -m export.to_onnx`."""

PARITY = """Against torch in float32, over {spans:,} spans of 1 to 20 words of the hard sample.
`same` is the share of {best:,} best spans, one for each turn and phrase, that are the same words;
`lost` is how much lower, by torch, the cosine of the chosen words is on average. Measured on a CPU
by `export/check.py`, without which no folder is written."""

LIMITS = {
    "": "What it was measured on is mostly English.",
    "int8": "In int8 the activations are scaled by the largest of a batch: the other texts of a"
    " batch move a text's cosines by some thousandths. A threshold, and the calibration, belong to"
    " the precision that they were found with.",
    "float16": "float16 was compared on a CPU, which computes it in float32:"
    " a GPU may round differently.",
}
"""Of all models, and of one precision."""


def write(folder: Path, settings: Mapping[str, Any], weights: Path) -> None:
    """Write the card of `folder`, whose ``encoder.json`` has `settings`.

    Its weights come from the folder `weights`.
    """
    run, recipe = weights / "run.json", weights / "recipe.toml"
    parts = [_head(settings), f"## {PRECISIONS}\n\n{describe_precisions(settings['parity'])}"]
    if run.is_file():
        parts.append(
            _training_section(
                json.loads(run.read_text(encoding="utf-8")),
                recipe.read_text(encoding="utf-8") if recipe.is_file() else "",
            )
        )
    limits = "\n".join(
        f"- {limit}"
        for precision, limit in LIMITS.items()
        if precision in ("", *settings["parity"])
    )
    (folder / FILE).write_text(
        "\n\n".join([*parts, f"{LIMITS_HEADING}\n\n{limits}"]) + "\n", encoding="utf-8"
    )


def replace_section(folder: Path, title: str, body: str) -> None:
    """Write a section into the card of `folder`, in the place of that with the same title.

    A new one comes before the limits. A folder without a card gets one of this section alone.
    """
    path = folder / FILE
    text = path.read_text(encoding="utf-8") if path.is_file() else ""
    section = f"## {title}\n\n{body}\n\n"
    before, heading, after = text.partition(f"## {title}\n")
    if heading:
        _, next_heading, rest = after.partition("\n## ")
        after = next_heading.lstrip("\n") + rest
    else:
        before, limits, rest = text.partition(LIMITS_HEADING)
        after = limits + rest
    path.write_text((before + section + after).rstrip("\n") + "\n", encoding="utf-8")


def _head(settings: Mapping[str, Any]) -> str:
    sizes = settings.get("sizes", ())
    cut = (
        f"; cut to their first {', '.join(map(str, sorted(sizes)))} they can be used by"
        f" themselves, and {sizes[0]} is usual"
        if sizes
        else ""
    )
    rows = {
        "weights": settings["origin"],
        "licence": settings["license"],
        "vectors": f"{settings['dimension']} numbers a token, special tokens left out{cut}",
        "reads": f"a {settings['context']}, in windows of {settings['max_length']} word pieces",
        "graphs": describe_graphs(settings),
        "fingerprint": f"`{settings['fingerprint']}`",
    }
    return f"# {settings['name']}\n\n{ABOUT}\n\n{_table(('', ''), rows.items())}"


def describe_graphs(settings: Mapping[str, Any]) -> str:
    """Return the card's words on the graphs of a folder with these settings."""
    graphs = "; ".join(GRAPHS[precision] for precision in settings["parity"])
    return f"{graphs}; opset {settings['opset']}"


def describe_precisions(parity: Mapping[str, Mapping[str, Any]]) -> str:
    """Return the card's section on how close the precisions are to float32."""
    rows = [
        (
            name,
            f"{figures['mean']:.5f}",
            f"{figures['min']:.4f}",
            f"{figures['same']:.1%}",
            f"{figures['lost']:.4f}",
        )
        for name, figures in parity.items()
    ]
    first = next(iter(parity.values()))
    introduction = PARITY.format(spans=first["spans"], best=first["best spans"])
    table = _table(("precision", "mean cosine", "least cosine", "same", "lost"), rows)
    return f"{introduction}\n\n{table}"


def _training_section(run: Mapping[str, Any], recipe: str) -> str:
    data = [
        (name, f"{corpus['triples']:,}", corpus.get("license") or LICENSES.get(name, "unknown"))
        for name, corpus in run["data"].items()
    ]
    machine = run["machine"]
    duration = (
        f"{run['seconds'] / 3600:.1f} hours on {machine['device']} ({machine['cores']} cores)"
    )
    summary = (
        f"Base: {Path(run['base']).name}. Recipe `{run['recipe']}`, seed {run['seed']},"
        f" commit {run['commit']}, {duration}."
    )
    parts = [f"## Training\n\n{summary}", _table(("data", "triples", "licence"), data)]
    if recipe:
        parts.append(f"```toml\n{recipe.strip()}\n```")
    scores = (run.get("dev") or {}).get("dev", {})
    if scores:
        table = _table(("", ""), [(name, f"{value:.4f}") for name, value in scores.items()])
        parts.append(f"On the dev set, by which the weights were chosen:\n\n{table}")
    return "\n\n".join(parts)


def _table(head: Sequence[str], rows: Iterable[Sequence[str]]) -> str:
    lines = [head, ["---"] * len(head), *rows]
    return "\n".join("| " + " | ".join(line) + " |" for line in lines)
