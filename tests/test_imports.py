"""Imports point one way, each library is met in its one place, and ``import hybrid_search`` is light."""

from __future__ import annotations

import ast
import subprocess
import sys
from collections.abc import Iterator
from functools import cache
from pathlib import Path

import pytest

import hybrid_search

HOUSE = Path(hybrid_search.__file__).parent

LAYERS = (
    {"types", "errors", "results", "telemetry", "logs"},
    {"access"},
    {"config", "words", "spans", "filters", "calibration", "mappings"},
    {"tokens", "passages"},
    {"covering"},
    {"compat"},
    {"fusion", "encoder", "backends"},
    {"phrase"},
    {"refine", "scoring"},
    {"hits", "compatible"},
    {"facets"},
    {"search", "ingest"},
    {"reindex", "progress", "verify", "doctor", "planning"},
    {"client"},
    {"api"},
    {"aio"},
    {"cli", ""},
    {"__main__", "ingest.__main__"},
)
"""A unit (a module, or a package with all in it; "" is ``hybrid_search`` itself) may import from the layers above it in this list. Units of one
layer do not know each other."""

SEAMS = {("backends", "encoder.base"), ("mappings", "backends.base"), ("mappings", "backends.options")}
"""The exceptions: an index says by which model it was written, its mapping repeats that and the options. They meet frozen types alone."""

PLACES = {
    "onnxruntime": {"encoder.conversions", "encoder.derived", "encoder.devices", "encoder.onnx"},
    "onnx": {"encoder.conversions"},
    "tokenizers": {"encoder.onnx"},
    "usearch": {"backends.embedded.grower", "backends.embedded.neighbours", "backends.embedded.segments"},
    "sqlite3": {
        "backends.embedded.backend",
        "backends.embedded.grower",
        "backends.embedded.lexical",
        "backends.embedded.neighbours",
        "backends.embedded.rows",
        "backends.embedded.schema",
        "backends.embedded.segments",
        "backends.embedded.walking",
        "backends.memory",
        "ingest.seen",
    },
    "opensearchpy": {"backends.server.opensearch"},
    "urllib3": {"backends.server.elasticsearch", "backends.server.opensearch"},
    "elasticsearch": {"backends.server.elasticsearch"},
    "elastic_transport": {"backends.server.elasticsearch"},
    "botocore": {"backends.server.sigv4"},
    "pyarrow": {"ingest.parquet"},
    "pydantic": {"encoder.artifact", "ingest.documents"},
    "platformdirs": {"config"},
    "prometheus_client": {"ingest.metrics"},
    "opentelemetry": {"telemetry"},
    "ray": {"ingest.ray_engine"},
    "typer": {
        *("cli.app", "cli.doctor", "cli.ingest", "cli.inputs", "cli.lasting", "cli.manage", "cli.options", "cli.plan", "cli.query"),
        *("cli.spreading", "cli.verify", "cli.watching", "ingest.__main__"),
    },
    "rich": {"cli.options", "cli.plan", "progress", "cli.query"},
}
"""Libraries and the only modules that may import them."""

NEVER = {"torch", "transformers", "optimum", "export", "benchmarks", "tests", "rank_bm25"}
HEAVY = (
    "onnx",
    "onnxruntime",
    "usearch",
    "typer",
    "rich",
    "pydantic",
    "sqlite3",
    "opensearchpy",
    "elasticsearch",
    "botocore",
    "tokenizers",
    "numpy",
    "pyarrow",
)


@cache
def modules() -> dict[str, Path]:
    """Every module of the house by its name without ``hybrid_search.``; a package by its own."""
    found = {}
    for path in HOUSE.rglob("*.py"):
        parts = path.relative_to(HOUSE).with_suffix("").parts
        found[".".join(parts[:-1] if parts[-1] == "__init__" else parts)] = path
    return found


@cache
def tree(path: Path) -> ast.Module:
    return ast.parse(path.read_text(encoding="utf-8"))


def names(path: Path) -> Iterator[str]:
    """Full names of what `path` imports, lazily or for the type checker, too."""
    for node in ast.walk(tree(path)):
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            assert node.level == 0, f"{path} has a relative import"
            yield from (f"{node.module}.{alias.name}" for alias in node.names)


def imported(path: Path) -> set[str]:
    """The modules of the house that `path` imports."""
    known = modules()
    inside = [name.removeprefix("hybrid_search").removeprefix(".") for name in names(path) if name.split(".")[0] == "hybrid_search"]
    return {name if name in known else name.rpartition(".")[0] for name in inside}


def unit(module: str) -> str:
    return module if module == "ingest.__main__" else module.split(".")[0]


def height(module: str) -> int:
    return next(number for number, layer in enumerate(LAYERS) if unit(module) in layer)


def test_every_unit_of_the_house_has_its_layer_and_no_layer_names_another() -> None:
    assert {unit(module) for module in modules()} == set().union(*LAYERS)


@pytest.mark.parametrize("module", sorted(modules()))
def test_a_module_imports_only_from_the_layers_under_its_own(module: str) -> None:
    wrong = {
        other
        for other in imported(modules()[module])
        if unit(other) != unit(module) and height(other) >= height(module) and (unit(module), other) not in SEAMS
    }
    assert not wrong


def test_the_reading_of_imports_sees_what_is_there() -> None:
    """The two kinds of import, a lazy one, and one of a name in a package: lest the tests above pass because nothing was found."""
    assert {"backends", "calibration", "encoder", "phrase", "search", "ingest.worker", "fusion", "config"} <= imported(HOUSE / "client.py")
    assert {"client", "config"} <= imported(HOUSE / "api.py")
    assert {"numpy", "onnxruntime", "tokenizers.Tokenizer"} <= set(names(HOUSE / "encoder" / "onnx.py"))


@pytest.mark.parametrize("library", PLACES)
def test_a_library_is_imported_in_its_own_place_only(library: str) -> None:
    met = {module for module, path in modules().items() if library in {name.split(".")[0] for name in names(path)}}
    assert met == PLACES[library]


def test_the_workshop_and_its_libraries_are_never_imported() -> None:
    for module, path in modules().items():
        assert not NEVER & {name.split(".")[0] for name in names(path)}, module


def test_what_measures_never_imports_what_trains() -> None:
    """So that any encoder is measured by the same code, and without torch. (The workshop may ask for dev scores.)"""
    measuring = list((HOUSE.parent / "benchmarks" / "quality").glob("*.py"))
    assert measuring
    for path in measuring:
        assert not {"torch", "transformers", "optimum", "export"} & {name.split(".")[0] for name in names(path)}, path


def test_the_environment_is_read_in_config_alone() -> None:
    readers = {
        module
        for module, path in modules().items()
        for node in ast.walk(tree(path))
        if isinstance(node, ast.Attribute) and node.attr in ("environ", "getenv")
    }
    assert readers == {"config"}


def loaded_by(statement: str) -> set[str]:
    """The modules that a fresh process has after `statement`."""
    program = f"{statement}\nimport sys; print(*sys.modules)"
    return set(subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True).stdout.split())


def test_import_hybrid_search_loads_nothing_heavy() -> None:
    assert not set(HEAVY) & loaded_by("import hybrid_search")


def test_a_client_loads_no_encoder_before_one_is_needed() -> None:
    statement = "import hybrid_search; hybrid_search.connect('embedded:store').indexes()"
    assert not {"onnx", "onnxruntime", "tokenizers", "typer"} & loaded_by(statement)


def test_usearch_may_be_imported_before_onnxruntime_and_behind_it() -> None:
    """usearch 2.26 crashed the interpreter when onnxruntime was imported after it; pyproject.toml leaves it out."""
    assert {"usearch", "onnxruntime"} <= loaded_by("import usearch.index, onnxruntime")
    assert {"usearch", "onnxruntime"} <= loaded_by("import onnxruntime, usearch.index")
