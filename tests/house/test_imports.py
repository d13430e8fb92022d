"""Imports point one way, each library has one place, and ``import hybrid_search`` is light."""

from __future__ import annotations

import ast
import subprocess
import sys
from collections.abc import Iterator
from functools import cache
from graphlib import TopologicalSorter
from pathlib import Path

import pytest

import hybrid_search

PACKAGE_FOLDER = Path(hybrid_search.__file__).parent

LAYERS = (
    {"errors", "observability", "private_files", "system"},
    {"credentials", "file_errors", "text"},
    {"parameters"},
    {"config"},
    {"encoder"},
    {"backends", "cluster"},
    {"search", "ingest"},
    {"maintenance", "topics"},
    {"discover"},
    {"client"},
    {"api"},
    {"async_client"},
    {""},
    {"serve", "retrievers"},
    {"agents"},
    {"cli"},
    {"__main__", "ingest.__main__"},
)
"""The units of the package, in layers; a unit may import only from layers earlier in this list.

A unit is a module, or a package with everything in it; "" is ``hybrid_search`` itself. Units of one
layer do not import each other.
"""

EMBEDDED = "backend facts record record_reader remains snapshot versions writer"
ALLOWED_IMPORTERS = {
    "onnxruntime": {"encoder.devices", "encoder.onnx"},
    "onnx": set(),
    "tokenizers": {"encoder.onnx"},
    "isal": {"backends.crc"},
    "tantivy": {"text.languages", *(f"backends.embedded.{name}" for name in EMBEDDED.split())},
    "Stemmer": {"text.stems"},
    "py3langid": {"text.languages"},
    "numkong": {"encoder.precisions", "text.codebook", "text.residual_codes"},
    "sqlite3": {"ingest.seen_ids", "ingest.sources.turn_rows"},
    "opensearchpy": {"backends.server.transport.client"},
    "urllib3": {"backends.server.transport.client"},
    "botocore": {"backends.server.transport.sigv4"},
    "charset_normalizer": {"ingest.sources.streams"},
    "pyarrow": {"ingest.sources.arrow_tables", "topics.match_parquet", "topics.matches"},
    "sklearn": {"discover.linkage"},
    "jinja2": {"topics.report.page"},
    "markupsafe": {"topics.report.page"},
    "webvtt": {"ingest.sources.formats.subtitles"},
    "yaml": {"serve.openapi", "topics.topic_file"},
    "pydantic": {
        "backends.server.answers",
        "backends.server.transport.shape",
        "encoder.model_folder",
        "ingest.document_parser",
        "ingest.redactions",
        "ingest.sources.server_index",
        "retrievers.langchain",
        "serve.judging",
        "serve.signatures",
        "topics.topic_file",
    },
    "pydantic_core": {"ingest.sources.formats.base"},
    "platformdirs": {"config"},
    "prometheus_client": {"ingest.metrics", "serve.metrics"},
    "opentelemetry": {"observability.tracing"},
    "ray": {"cluster.actors"},
    "pandas": {"search.result", "search.result_rows"},
    "langchain_core": {"retrievers.langchain"},
    "haystack": {"retrievers.haystack"},
    "llama_index": {"retrievers.llamaindex"},
    "mcp": {"agents.server"},
    "mcp_types": {"agents.server"},
    "starlette": {"agents.server", "serve"},
    "uvicorn": {"serve.server"},
    "typer": {"cli"},
    "rich": {"cli"},
}
"""For each library the only modules, or packages with everything in them, that may import it."""

NEVER_IMPORTED = {
    "torch", "transformers", "optimum", "export", "papers", "benchmarks", "tests", "rank_bm25",
}  # fmt: skip
HEAVY_LIBRARIES = (
    "onnx", "onnxruntime", "numkong", "isal", "typer", "rich", "pydantic", "sqlite3",
    "opensearchpy", "botocore", "tokenizers", "numpy", "pyarrow", "regex", "yaml", "asyncio",
    "hybrid_search.client",
)  # fmt: skip
UNUSED_BY_A_QUERY = (
    "onnx", "opensearchpy", "botocore", "urllib3", "pyarrow", "prometheus_client",
    "opentelemetry", "ray", "asyncio", "rich", "hybrid_search.maintenance",
    "hybrid_search.topics.mining", "hybrid_search.discover.discover", "sklearn",
    "hybrid_search.cli.ingest", "hybrid_search.cli.mine", "hybrid_search.cli.services",
    "hybrid_search.ingest.checkpoint", "hybrid_search.ingest.document_parser",
    "hybrid_search.ingest.encode", "hybrid_search.ingest.pipeline",
    "hybrid_search.ingest.types", "hybrid_search.backends.memory",
    "hybrid_search.backends.server.backend", "hybrid_search.async_client",
    "hybrid_search.serve.server", "starlette", "uvicorn",
)  # fmt: skip
"""What ``hybrid-search query --json`` on an embedded index has no use for.

typer and usearch bring pydantic and tqdm with them.
"""


@cache
def modules() -> dict[str, Path]:
    """Return the path of each module, by its name without ``hybrid_search.``."""
    paths_by_module = {}
    for path in PACKAGE_FOLDER.rglob("*.py"):
        parts = path.relative_to(PACKAGE_FOLDER).with_suffix("").parts
        paths_by_module[".".join(parts[:-1] if parts[-1] == "__init__" else parts)] = path
    return paths_by_module


@cache
def syntax_tree(path: Path) -> ast.Module:
    return ast.parse(path.read_text(encoding="utf-8"))


def imported_names(path: Path) -> Iterator[str]:
    """Yield the full names that `path` imports, also inside functions or for the type checker."""
    for node in ast.walk(syntax_tree(path)):
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            assert node.level == 0, f"{path} has a relative import"
            yield from (f"{node.module}.{alias.name}" for alias in node.names)


def house_imports(path: Path) -> set[str]:
    """Return the modules of this package that `path` imports."""
    module_names = modules()
    house_names = [
        name.removeprefix("hybrid_search").removeprefix(".")
        for name in imported_names(path)
        if name.split(".")[0] == "hybrid_search"
    ]
    return {name if name in module_names else name.rpartition(".")[0] for name in house_names}


def unit_of(module: str) -> str:
    return module if module == "ingest.__main__" else module.split(".")[0]


def layer_number(module: str) -> int:
    return next(number for number, layer in enumerate(LAYERS) if unit_of(module) in layer)


def place_of(module: str, places: set[str]) -> str:
    """Return the package of `module` if that is one of `places`, else the module itself."""
    package = module.split(".")[0]
    return package if package in places else module


def test_every_unit_of_the_house_has_its_layer_and_no_layer_names_another() -> None:
    assert {unit_of(module) for module in modules()} == set().union(*LAYERS)


@pytest.mark.parametrize("module", sorted(modules()))
def test_a_module_imports_only_from_the_layers_under_its_own(module: str) -> None:
    unit, layer = unit_of(module), layer_number(module)
    from_elsewhere = {name for name in house_imports(modules()[module]) if unit_of(name) != unit}
    assert not {name for name in from_elsewhere if layer_number(name) >= layer}


def test_no_modules_import_each_other() -> None:
    """Not even through others, inside a function, or for the type checker."""
    imports = {module: house_imports(path) - {module} for module, path in modules().items()}
    TopologicalSorter(imports).prepare()  # CycleError names the modules of a circle


def test_the_reading_of_imports_sees_what_is_there() -> None:
    """Check that all kinds of imports are found: else the tests above would pass on nothing.

    They are both statements, an import inside a function, and a name imported from a package.
    """
    assert {
        "client.encoders",
        "discover.similar",
        "search.phrase_vector",
        "search.pipeline",
        "ingest.pipeline",
        "search.query",
    } <= house_imports(PACKAGE_FOLDER / "client" / "client.py")
    assert {"backends", "encoder"} <= house_imports(PACKAGE_FOLDER / "client" / "client.py")
    assert {"client", "config"} <= house_imports(PACKAGE_FOLDER / "api.py")
    assert {"numpy", "onnxruntime", "tokenizers.Tokenizer"} <= set(
        imported_names(PACKAGE_FOLDER / "encoder" / "onnx.py")
    )


@pytest.mark.parametrize("library", ALLOWED_IMPORTERS)
def test_a_library_is_imported_in_its_own_place_only(library: str) -> None:
    allowed = ALLOWED_IMPORTERS[library]
    importers = {
        module
        for module, path in modules().items()
        if library in {name.split(".")[0] for name in imported_names(path)}
    }
    assert {place_of(module, allowed) for module in importers} == allowed


def test_the_workshop_and_its_libraries_are_never_imported() -> None:
    for module, path in modules().items():
        assert not NEVER_IMPORTED & {name.split(".")[0] for name in imported_names(path)}, module


def test_what_measures_never_imports_what_trains() -> None:
    """Any encoder is measured by the same code, without torch; training may ask for dev scores."""
    benchmark_paths = list((PACKAGE_FOLDER.parent / "benchmarks" / "quality").glob("*.py"))
    assert benchmark_paths
    for path in benchmark_paths:
        assert not {"torch", "transformers", "optimum", "export", "papers"} & {
            name.split(".")[0] for name in imported_names(path)
        }, path


def test_the_environment_is_read_in_config_alone() -> None:
    readers = {
        module
        for module, path in modules().items()
        for node in ast.walk(syntax_tree(path))
        if isinstance(node, ast.Attribute) and node.attr in ("environ", "getenv")
    }
    assert readers == {"config"}


def loaded_by(statement: str) -> set[str]:
    """Return the modules that a new process has loaded after `statement`."""
    program = f"{statement}\nimport sys; print(*sys.modules)"
    return set(
        subprocess.run(
            [sys.executable, "-c", program], capture_output=True, text=True, check=True
        ).stdout.split()
    )


def test_import_hybrid_search_loads_nothing_heavy() -> None:
    assert not set(HEAVY_LIBRARIES) & loaded_by("import hybrid_search")


def test_the_command_line_loads_nothing_that_only_its_work_needs() -> None:
    light = {"typer"}
    assert not set(HEAVY_LIBRARIES) - light & loaded_by("import hybrid_search.cli.app")


QUERY = """
import sys
from hybrid_search.cli.app import app
sys.argv = ["hybrid-search", "query", "refund", "--json", "--device", "cpu", "--url", {url!r}]
try:
    app()
except SystemExit as end:
    assert not end.code
"""


def test_a_query_loads_nothing_of_ingest_and_maintenance(tmp_path: Path) -> None:
    url = f"embedded:{tmp_path}"
    with hybrid_search.connect(url, device="cpu") as client:
        client.ingest([{"id": "a", "text": "Please send my money back."}])
    loaded = loaded_by(QUERY.format(url=url))
    assert {"onnxruntime", "hybrid_search.search.pipeline"} <= loaded  # it did search
    assert not set(UNUSED_BY_A_QUERY) & loaded


def test_a_client_loads_no_encoder_before_one_is_needed() -> None:
    statement = "import hybrid_search; hybrid_search.connect('embedded:store').indexes()"
    assert not {"onnx", "onnxruntime", "tokenizers", "typer"} & loaded_by(statement)
