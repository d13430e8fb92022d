"""Recipes: how a run trains, as data.

One TOML file each, in ``export/recipes``; an unknown key is an error.
"""

from __future__ import annotations

import hashlib
import json
import math
import tomllib
from collections.abc import Mapping
from dataclasses import asdict, dataclass, field, fields
from pathlib import Path
from typing import Any

RECIPES = Path(__file__).parent.parent / "recipes"
HEADS = ("none", "identity", "principal", "aligned")
KEEP_CHOICES = ("best", "last")
DECAYS = ("linear", "cosine", "none")
TEACHERS = ("base", "previous", "larger")
TRIPLE_LOSSES = ("slice", "contrast", "within", "topics", "wordings", "marked")
"""The losses that compare the texts of triples."""

START = "start"
"""What `soup` calls the weights that a run begins with."""


@dataclass(frozen=True, slots=True)
class Weights:
    """The weight of each loss; a loss of weight 0 is not computed.

    `export.training.losses` describes them.
    """

    distil: float = 0.0
    relational: float = 0.0
    score: float = 0.0
    slice: float = 0.0
    contrast: float = 0.0
    within: float = 0.0
    topics: float = 0.0
    wordings: float = 0.0
    marked: float = 0.0
    transfer: float = 0.0
    similarity: float = 0.0


@dataclass(frozen=True, slots=True)
class TeacherMixture:
    """Shares of the two vectors that a span is drawn towards.

    The frozen base on the span `alone`, or on the span with `words` either side (`window`). Both
    are normalized and added with these weights.
    """

    alone: float = 1.0
    window: float = 0.0
    words: int = 5


@dataclass(frozen=True, slots=True)
class Mixture:
    """Shares of the kinds of passages that are composed for distillation.

    `export.training.compose` describes them.
    """

    natural: float = 0.3
    shuffled: float = 0.3
    woven: float = 0.25
    single: float = 0.15


@dataclass(frozen=True, slots=True)
class PoolPlan:
    """The short texts that a larger teacher reads: their number, and weights of files.

    `export.training.pool` describes them. `data` and `others` are as in `Stage`. Beside `texts`
    there are so many `translations` of each file named, of which the teacher reads the English.
    """

    texts: int = 0
    data: Mapping[str, float] = field(default_factory=dict)
    others: float = 1.0
    translations: Mapping[str, int] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Stage:
    """Some steps with one set of losses, one learning rate and one set of trained layers.

    A step reads `passages` composed passages, `shorts` short texts, `echoes` more that repeat words
    of those passages, `triples` triples, which come from one file in the share `alike` of all
    steps, with `together` of each intent and as many of each of `sisters` other intents of its
    group, and `texts` texts of the pool. `spans` are distilled of
    every passage, in the share `clauses` a complete sentence or clause, and in the share `whole` of
    passages all of it; `longest` bounds the spans that losses look for, in tokens. The teacher's
    scores are raised to the power `sharpen`. `layers` is a number of top layers, or "all": these
    and the embeddings.
    `data` maps a file's name to its weight; files that it lacks have `others`. With `average` the
    weights that are scored and stored are a running mean of that decay; with `blend` they lie only
    that far from the weights that the stage began with, 0.5 half way, which is better than either
    end (WiSE-FT, arXiv:2109.01903). The frozen teacher is the model that the run began with
    (`distil_from` is "base"), the one that the stage begins with ("previous"), or the `larger` one
    that reads the pool. Stored are the `best` by dev score or the `last`; `patience` evaluations
    without a better one end the stage, 0: none do.
    """

    steps: int
    name: str = ""
    lr: float = 2e-4
    warmup: int = 20
    decay: str = "linear"
    floor: float = 0.05
    weight_decay: float = 0.01
    layers: int | str = "all"
    train_head: bool = True
    passages: int = 12
    shorts: int = 12
    echoes: int = 0
    triples: int = 0
    texts: int = 0
    alike: float = 0.0
    together: int = 1
    sisters: int = 0
    spans: int = 8
    whole: float = 0.0
    clauses: float = 0.4
    longest: int = 10
    scale: float = 30.0
    sharpen: float = 1.0
    average: float = 0.0
    eval_every: int = 0
    blend: float = 1.0
    distil_from: str = "base"
    keep: str = "best"
    patience: int = 0
    others: float = 1.0
    weights: Weights = field(default_factory=Weights)
    teacher: TeacherMixture = field(default_factory=TeacherMixture)
    mixture: Mixture = field(default_factory=Mixture)
    data: Mapping[str, float] = field(default_factory=dict)

    def rate_at(self, step: int) -> float:
        """Return the learning rate of a step, counted from 0.

        It rises over `warmup`, then falls to `floor` of the highest.
        """
        if step < self.warmup:
            return self.lr * (step + 1) / self.warmup
        progress = (step - self.warmup) / max(1, self.steps - self.warmup)
        factor = {
            "linear": 1 - progress,
            "cosine": (1 + math.cos(math.pi * progress)) / 2,
            "none": 1.0,
        }[self.decay]
        return self.lr * (self.floor + (1 - self.floor) * factor)


@dataclass(frozen=True, slots=True)
class Recipe:
    """A complete run.

    `window` is the longest text that is trained on, in tokens; `dimensions` are the Matryoshka
    prefixes beside the full vector. `soup` maps names of stages, and ``start`` for the weights that
    the run begins with, to shares, together 1: the run ends with the weighted mean of their weights
    (model soups, arXiv:2203.05482), and without it with those of the last stage.
    """

    name: str
    stages: tuple[Stage, ...]
    about: str = ""
    seed: int = 1
    window: int = 112
    head: str = "none"
    dimensions: tuple[int, ...] = ()
    checkpoint_every: int = 200
    dev_rows: int = 256
    pool: PoolPlan = field(default_factory=PoolPlan)
    soup: Mapping[str, float] = field(default_factory=dict)

    def digest(self) -> str:
        """Return the SHA-256 of all that the steps depend on, first 16 digits.

        Not of the soup, which is made from their weights.
        """
        steps = {key: value for key, value in self.to_dict().items() if key != "soup"}
        return hashlib.sha256(json.dumps(steps, sort_keys=True).encode()).hexdigest()[:16]

    def to_dict(self) -> dict[str, Any]:
        """Return the recipe as a table."""
        return asdict(self)


def find(path: Path) -> Path:
    """Return `path` if it is a file, or the recipe of that name in the project."""
    file = next(
        (candidate for candidate in (path, RECIPES / f"{path.name}.toml") if candidate.is_file()),
        None,
    )
    if file is None:
        names = sorted(recipe.stem for recipe in RECIPES.glob("*.toml"))
        raise SystemExit(f"there is no recipe {path}: give a file, or one of {', '.join(names)}")
    return file


def read(path: Path) -> Recipe:
    """Return the recipe in the file `path`; raises SystemExit that names a wrong key."""
    try:
        table = tomllib.loads(path.read_text(encoding="utf-8"))
    except tomllib.TOMLDecodeError as error:
        raise SystemExit(f"{path}: not TOML: {error}") from error
    return parse({"name": path.stem} | table, str(path))


def parse(table: Mapping[str, Any], where: str = "recipe") -> Recipe:
    """Return a recipe from its table.

    The keys of ``[defaults]`` count for every stage that does not set them.

    Raises:
        SystemExit: With a message that names a wrong key.
    """
    table = dict(table)
    defaults = table.pop("defaults", {})
    stages = table.pop("stages", [])
    pool = _build(PoolPlan, table.pop("pool", {}), f"{where}: pool")
    if not stages:
        raise SystemExit(f"{where}: no [[stages]]: a recipe needs one or more")
    parsed_stages = tuple(
        _stage(_merge_tables(defaults, stage), f"{where}: stage {number}")
        for number, stage in enumerate(stages, 1)
    )
    recipe: Recipe = _build(
        Recipe,
        table
        | {
            "stages": parsed_stages,
            "dimensions": tuple(table.get("dimensions", ())),
            "pool": pool,
        },
        where,
    )
    _require(recipe.head in HEADS, f"{where}: head is {recipe.head!r}: one of {', '.join(HEADS)}")
    _require(recipe.window >= 16, f"{where}: window is {recipe.window}: at least 16 tokens")
    _check_pool(recipe, where)
    _check_soup(recipe, where)
    return recipe


def _check_pool(recipe: Recipe, where: str) -> None:
    has_readers = recipe.head == "aligned" or any(
        stage.texts or stage.distil_from == "larger" for stage in recipe.stages
    )
    _require(
        recipe.pool.texts > 0 or not has_readers,
        f"{where}: the pool is empty, and a stage or the head needs it: give [pool] texts",
    )


def _check_soup(recipe: Recipe, where: str) -> None:
    names = [START, *(stage.name for stage in recipe.stages)]
    for name, share in recipe.soup.items():
        _require(
            names.count(name) == 1,
            f"{where}: soup names {name!r}, the name of {names.count(name)} stages:"
            f" name one of {', '.join(names)}",
        )
        _check("float", share, f"{where}: soup, {name}")
    total = sum(recipe.soup.values())
    _require(
        not recipe.soup or abs(total - 1) < 1e-6,
        f"{where}: the shares of soup sum to {total:g}: they must sum to 1",
    )


def _stage(table: Mapping[str, Any], where: str) -> Stage:
    inner: dict[str, type] = {"weights": Weights, "teacher": TeacherMixture, "mixture": Mixture}
    parsed_tables = {
        key: _build(kind, table[key], f"{where}, {key}")
        for key, kind in inner.items()
        if key in table
    }
    stage: Stage = _build(Stage, dict(table) | parsed_tables, where)
    _require(stage.steps > 0, f"{where}: steps is {stage.steps}: at least 1")
    _require(
        stage.decay in DECAYS, f"{where}: decay is {stage.decay!r}: one of {', '.join(DECAYS)}"
    )
    _require(
        stage.keep in KEEP_CHOICES,
        f"{where}: keep is {stage.keep!r}: one of {', '.join(KEEP_CHOICES)}",
    )
    _require(
        stage.distil_from in TEACHERS,
        f"{where}: distil_from is {stage.distil_from!r}: one of {', '.join(TEACHERS)}",
    )
    _require(
        stage.layers == "all" or isinstance(stage.layers, int),
        f'{where}: layers is {stage.layers!r}: "all" or a number of top layers',
    )
    _require(
        0 <= stage.average < 1,
        f"{where}: average is {stage.average}: a decay from 0 (none) to below 1",
    )
    _require(
        0 < stage.blend <= 1,
        f"{where}: blend is {stage.blend}: give a number above 0 (where the stage began) and"
        " at most 1 (its own weights)",
    )
    _require(
        any(asdict(stage.weights).values()),
        f"{where}: no loss has a weight: give one of {', '.join(asdict(stage.weights))}",
    )
    weights = stage.weights
    _require(
        bool(stage.triples) or not any(getattr(weights, name) for name in TRIPLE_LOSSES),
        f"{where}: triples is 0, and a loss needs them",
    )
    _require(
        stage.texts >= 2 or not (weights.transfer or weights.similarity),
        f"{where}: texts is {stage.texts}, and a loss needs at least 2",
    )
    _require(
        bool(stage.echoes + stage.triples) or not weights.score,
        f"{where}: no echoes and no triples to score passages for",
    )
    _require(
        bool(stage.passages + stage.triples) or not weights.distil,
        f"{where}: no passages and no triples to distil from",
    )
    return stage


def _build(kind: type, table: Mapping[str, Any], where: str) -> Any:
    fields_by_name = {attribute.name: attribute for attribute in fields(kind)}
    unknown = sorted(set(table) - set(fields_by_name))
    _require(
        not unknown,
        f"{where}: unknown key {', '.join(unknown)}; known are {', '.join(fields_by_name)}",
    )
    for key, value in table.items():
        _check(fields_by_name[key].type, value, f"{where}: {key}")
    try:
        return kind(**table)
    except TypeError as error:
        raise SystemExit(f"{where}: {error}") from error


def _check(kind: Any, value: Any, where: str) -> None:
    """Check a value against its annotation.

    Annotations are strings here; only the plain ones are checked.
    """
    plain: dict[Any, tuple[type, ...]] = {
        "int": (int,),
        "float": (int, float),
        "str": (str,),
        "bool": (bool,),
    }
    expected_types = plain.get(kind)
    wrong = expected_types is not None and (
        not isinstance(value, expected_types) or (isinstance(value, bool) and kind != "bool")
    )
    _require(not wrong, f"{where} is {value!r}: it must be {kind}")


def _require(good: bool, message: str) -> None:
    if not good:
        raise SystemExit(message)


def _merge_tables(defaults: Mapping[str, Any], stage: Mapping[str, Any]) -> dict[str, Any]:
    """Return `stage` over `defaults`, table by table."""
    merged = dict(defaults)
    for key, value in stage.items():
        is_nested = isinstance(value, Mapping) and isinstance(merged.get(key), Mapping)
        merged[key] = {**merged[key], **value} if is_nested else value
    return merged
