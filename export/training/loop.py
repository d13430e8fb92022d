"""The loop: stages of steps, with dev scores, checkpoints, and the best weights in the folder."""

from __future__ import annotations

import math
import signal
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from types import FrameType
from typing import Any, Self

import torch
from torch import Tensor

from export.training import checkpoint, curve, soup
from export.training.batch import Batch, Batcher
from export.training.data import Corpus
from export.training.model import SpanEncoder, read
from export.training.objective import Goals, goals_of, losses_of
from export.training.pool import Pool
from export.training.recipe import Recipe, Stage
from export.training.teacher import FrozenEncoder
from export.training.texts import Cutter

CPU_BUDGET, CUDA_BUDGET = 2048, 1 << 16
"""Padded tokens a forward pass: on CPUs little padding counts, on a GPU few passes."""

CLIP = 1.0
BETAS = (0.9, 0.98)

Score = Callable[[SpanEncoder], dict[str, float]]
"""Dev scores of a model; the best weights are chosen by `chosen`."""


@dataclass(frozen=True, slots=True, eq=False)
class Run:
    """Everything a run is made of; `folder` gets weights, checkpoint and curve."""

    recipe: Recipe
    corpora: Sequence[Corpus]
    student: SpanEncoder
    teacher: FrozenEncoder
    cutter: Cutter
    folder: Path
    digest: str
    score: Score | None
    device: torch.device
    threads: int = 1
    pool: Pool | None = None
    larger: FrozenEncoder | None = None

    @property
    def base(self) -> Path:
        """The folder that the tokenizer's files are copied from."""
        return self.cutter.path.parent

    @property
    def budget(self) -> int:
        """Padded tokens of a forward pass on this device."""
        return CUDA_BUDGET if self.device.type == "cuda" else CPU_BUDGET

    @property
    def bfloat16(self) -> bool:
        """True if products are computed in bfloat16."""
        return self.teacher.bfloat16

    def make_teacher(self, model: SpanEncoder) -> FrozenEncoder:
        """Return a model that this run trained, as a teacher."""
        cutter = Cutter(self.base)
        return FrozenEncoder(model, cutter, self.budget, self.bfloat16, special_tokens=False)

    def dimensions(self) -> list[int]:
        """Return the sizes that losses are averaged over."""
        return sorted(
            {
                *(size for size in self.recipe.dimensions if size < self.student.hidden),
                self.student.hidden,
            }
        )


def train(run: Run) -> checkpoint.State:
    """Return the state after all stages, or those that remain.

    The folder then has the weights of the last stage, or the recipe's soup, and in ``stages/`` the
    weights of each, in ``stages/0`` those of the start. Raises SystemExit if it is interrupted.
    """
    saved = checkpoint.load(run.folder, run.digest)
    state, tensors = saved or (checkpoint.State(run.digest), None)
    if saved:
        state.sittings += 1
    else:
        run.student.save(soup.folder_of(run.folder, soup.START_NUMBER), run.base)
    curve.rewind(run.folder, state.curve)
    with interruptions() as interrupted:
        while state.stage < len(run.recipe.stages):
            _stage(run, state, tensors, interrupted)
            # the next stage begins with this one's stored weights
            stage_model = SpanEncoder.load(run.folder)
            stage_model.save(soup.folder_of(run.folder, state.stage), run.base)
            state.stage, state.step, state.best, state.since = state.stage + 1, 0, None, 0
            tensors = {"model": stage_model.state_dict()}
            checkpoint.save(run.folder, state, tensors)
    if run.recipe.soup:
        _soup(run, state)
    return state


def _soup(run: Run, state: checkpoint.State) -> None:
    """Store the mean of the stages' weights in the folder.

    No checkpoint follows: run again, only this is repeated.
    """
    stages = soup.number_stages([stage.name for stage in run.recipe.stages])
    model = soup.mean(
        {soup.folder_of(run.folder, stages[name]): share for name, share in run.recipe.soup.items()}
    )
    model.save(run.folder, run.base)
    if run.score:
        curve.note_scores(run.folder, state, run.score(model.to(run.device)), is_best=True)


def _stage(
    run: Run,
    state: checkpoint.State,
    tensors: dict[str, Any] | None,
    interrupted: Callable[[], bool],
) -> None:
    """Run the steps of the stage that `state` is in, from where it is."""
    stage = run.recipe.stages[state.stage]
    if stage.distil_from == "larger" and run.larger:
        run = replace(run, teacher=run.larger)
    if stage.distil_from == "previous" and state.stage:
        model = SpanEncoder.load(soup.folder_of(run.folder, state.stage - 1)).to(run.device)
        run = replace(run, teacher=run.make_teacher(model))
    with Trainer(run, stage, state) as trainer:
        if tensors:
            trainer.restore(tensors)
        _steps(run, trainer, interrupted)


def _steps(run: Run, trainer: Trainer, interrupted: Callable[[], bool]) -> None:
    stage, state, recorder = trainer.stage, trainer.state, curve.Recorder(run.folder, trainer.state)
    progress = curve.Progress(stage.name or f"stage {state.stage + 1}", stage.steps, state.step)
    if state.step == 0 and run.score and stage.eval_every:
        trainer.evaluate(run.score, keep=True)
    while state.step < stage.steps:
        values = trainer.step()
        progress(values, state.step)
        recorder(values)
        if stage.eval_every and state.step % stage.eval_every == 0 and run.score:
            trainer.evaluate(run.score)
            if stage.patience and state.since >= stage.patience:
                curve.say(f"no better for {state.since} evaluations: ends at step {state.step}")
                return
        stopped = interrupted()
        if stopped or state.step % run.recipe.checkpoint_every == 0:
            trainer.save()
        if stopped:
            raise SystemExit(
                f"interrupted at step {state.step} of stage {state.stage + 1};"
                " run the same command again to continue"
            )
    if not (run.score and stage.eval_every and state.step % stage.eval_every == 0):
        trainer.evaluate(run.score) if run.score else trainer.keep()


class Trainer:
    """One stage's optimizer, averaged weights and batches; `state` counts its steps."""

    def __init__(self, run: Run, stage: Stage, state: checkpoint.State) -> None:
        self.run, self.stage, self.state = run, stage, state
        run.student.train_only(stage.layers, stage.train_head)
        self.trainable = run.student.trainable_parameters()
        self.average = self._clones() if stage.average else {}
        self.starting_weights = self._clones() if stage.blend < 1 else {}
        plain = [value for value in self.trainable.values() if value.ndim < 2]
        matrices = [value for value in self.trainable.values() if value.ndim >= 2]
        groups = [
            {"params": matrices, "weight_decay": stage.weight_decay},
            {"params": plain, "weight_decay": 0.0},
        ]
        self.optimizer = torch.optim.AdamW(
            [group for group in groups if group["params"]], lr=stage.lr, betas=BETAS, fused=True
        )
        seed = f"{run.recipe.seed}/{state.stage}"
        self.batcher = Batcher(run.corpora, stage, run.cutter, seed, run.pool)
        # all of them, although the teacher reads the next batch meanwhile: half would idle after it
        torch.set_num_threads(run.threads)
        self._ahead = ThreadPoolExecutor(1, initializer=_stay_mixed, initargs=(run,))
        self._next: Future[tuple[Batch, Goals | None]] | None = None

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self._ahead.shutdown(cancel_futures=True)

    def step(self) -> dict[str, float]:
        """Return the losses of one more step, their weighed sum as `loss`, rate and speed.

        The speed is tokens a second.

        Raises:
            SystemExit: If the gradient is not finite.
        """
        started = time.perf_counter()
        batch, goals = self._take_batch()
        vectors = read(
            self.run.student, self.run.cutter, batch.texts, self.run.budget, self.run.bfloat16
        )
        sizes, pool = self.run.dimensions(), self.run.pool
        loss_values = losses_of(batch, goals, vectors, self.stage, sizes, pool)
        weights = self.stage.weights
        total = torch.stack(
            [getattr(weights, name) * value for name, value in loss_values.items()]
        ).sum()
        rate = self.stage.rate_at(self.state.step)
        for group in self.optimizer.param_groups:
            group["lr"] = rate
        self.optimizer.zero_grad(set_to_none=True)
        total.backward()
        norm = torch.nn.utils.clip_grad_norm_(list(self.trainable.values()), CLIP)
        if not math.isfinite(float(norm)):
            raise SystemExit(
                f"the gradient at step {self.state.step + 1} is {float(norm)}: a lower lr may help"
            )
        self.optimizer.step()
        self.state.step += 1
        self._average()
        seconds = time.perf_counter() - started
        self.state.seconds += seconds
        self.state.tokens += batch.tokens
        values = {name: float(value.detach()) for name, value in loss_values.items()}
        return {
            "loss": float(total.detach()),
            **values,
            "lr": rate,
            "norm": float(norm),
            "tokens": batch.tokens,
            "seconds": seconds,
        }

    def _take_batch(self) -> tuple[Batch, Goals | None]:
        """Return this step's batch and its goals, and begin the next one's in a thread.

        The teacher then works beside the student.
        """
        prepared = (self._next or self._ahead.submit(self._prepare, self.state.step)).result()
        more = self.state.step + 1 < self.stage.steps
        self._next = self._ahead.submit(self._prepare, self.state.step + 1) if more else None
        return prepared

    def _prepare(self, step: int) -> tuple[Batch, Goals | None]:
        run, batch = self.run, self.batcher.batch(step)
        return batch, goals_of(batch, run.teacher, self.stage)

    def _average(self) -> None:
        """Move the averaged weights.

        Over the first steps it is the plain mean, so that the start is soon forgotten.
        """
        if self.average:
            share = max(1 - self.stage.average, 1 / (self.state.step + 1))
            with torch.no_grad():
                torch._foreach_lerp_(
                    list(self.average.values()),
                    [value.detach() for value in self.trainable.values()],
                    share,
                )

    @contextmanager
    def use_average(self) -> Iterator[SpanEncoder]:
        """Yield the student with its averaged weights.

        In a stage that blends them they are drawn back towards those that it began with.
        """
        own = self._clones()
        self._copy(self.average, self.trainable)
        if self.starting_weights:
            with torch.no_grad():
                torch._foreach_lerp_(
                    [self.trainable[name] for name in self.starting_weights],
                    list(self.starting_weights.values()),
                    1 - self.stage.blend,
                )
        try:
            yield self.run.student
        finally:
            self._copy(own, self.trainable)

    def _clones(self) -> dict[str, Tensor]:
        return {name: value.detach().clone() for name, value in self.trainable.items()}

    @staticmethod
    def _copy(values: Mapping[str, Tensor], into: Mapping[str, Tensor]) -> None:
        with torch.no_grad():
            for name, value in values.items():
                into[name].copy_(value)

    def evaluate(self, score: Score, keep: bool = False) -> None:
        """Score the averaged weights, and store them if they are the best or `keep` is set."""
        threads = torch.get_num_threads()
        torch.set_num_threads(self.run.threads)
        with self.use_average() as model:
            scores = score(model)
            better = self.state.best is None or scores["chosen"] > self.state.best
            self.state.since = 0 if better else self.state.since + 1
            if better:
                self.state.best = scores["chosen"]
            if better or keep or self.stage.keep == "last":
                model.save(self.run.folder, self.run.base)
        torch.set_num_threads(threads)
        curve.note_scores(self.run.folder, self.state, scores, better)

    def keep(self) -> None:
        """Store the averaged weights as they are."""
        with self.use_average() as model:
            model.save(self.run.folder, self.run.base)

    def save(self) -> None:
        """Write a checkpoint, and usable weights if there are none yet."""
        if not (self.run.folder / "config.json").is_file():
            self.keep()
        tensors = {
            "model": {
                name: value.detach() for name, value in self.run.student.state_dict().items()
            },
            "optimizer": self.optimizer.state_dict(),
            "average": self.average,
            "began": self.starting_weights,
        }
        checkpoint.save(self.run.folder, self.state, tensors)

    def restore(self, tensors: dict[str, Any]) -> None:
        """Restore what `save` wrote; between two stages, the weights alone."""
        self.run.student.load_state_dict(tensors["model"])
        if "optimizer" in tensors:
            self.optimizer.load_state_dict(tensors["optimizer"])
        for name, target in (("average", self.average), ("began", self.starting_weights)):
            if target:
                self._copy(
                    tensors.get(
                        name, {key: value.detach() for key, value in self.trainable.items()}
                    ),
                    target,
                )


def _stay_mixed(run: Run) -> None:
    """Hold an autocast open in the teacher's thread.

    torch caches weights that were cast for all threads together, and drops them when any thread
    leaves its outermost autocast. Without this the student would cast some weights twice, which
    ones by chance, and no two runs would be alike.
    """
    torch.autocast(run.device.type, torch.bfloat16, enabled=run.bfloat16).__enter__()


@contextmanager
def interruptions() -> Iterator[Callable[[], bool]]:
    """Yield a function that tells whether the process was asked to end.

    Asked a second time, it ends at once.
    """
    signals_received: list[int] = []

    def on_signal(number: int, _: FrameType | None) -> None:
        if signals_received:
            raise KeyboardInterrupt
        signals_received.append(number)
        curve.say("ending after this step (once more: at once)")

    old_handlers = {
        number: signal.signal(number, on_signal) for number in (signal.SIGINT, signal.SIGTERM)
    }
    try:
        yield lambda: bool(signals_received)
    finally:
        for number, handler in old_handlers.items():
            signal.signal(number, handler)
