"""Test the wheel as a user installs it, with ``[cpu]``: it has all that is needed, and no more."""

from __future__ import annotations

import json
import os
import re
import shlex
import shutil
import subprocess
import sys
import zipfile
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import pytest

from export.package import write_project
from hybrid_search.encoder import SHIPPED
from hybrid_search.system import DISTRIBUTION

pytestmark = pytest.mark.wheel

ROOT = Path(__file__).parents[2]
EXAMPLES = ROOT / "docs" / "examples"
SECONDS = 12
"""How long a process stays open: ONNX Runtime 1.32, if let, looks up where to report after 8 s."""


@dataclass(frozen=True, slots=True)
class Installation:
    """A wheel, and an environment in which only the wheel is installed."""

    wheel: Path
    folder: Path

    @property
    def home(self) -> Path:
        """The home folder of the user."""
        return self.folder.parent / "home"

    def run(self, *arguments: str, prefix: Sequence[str] = ()) -> str:
        """Return the standard output of ``python arguments`` for a user who has set nothing.

        A variable that says that this is CI would silence ONNX Runtime too, so none is inherited.
        """
        self.home.mkdir(exist_ok=True)
        env = {"PATH": os.environ["PATH"], "HOME": str(self.home)}
        command = [*prefix, str(self.folder / "bin" / "python"), *arguments]
        return subprocess.run(
            command, cwd=self.home, env=env, capture_output=True, text=True, check=True, timeout=600
        ).stdout

    def install(self, *requirements: str) -> None:
        """Install by pip."""
        pip = [str(self.folder / "bin" / "python"), "-m", "pip", "install", "--quiet"]
        subprocess.run(
            [*pip, "--disable-pip-version-check", *requirements], check=True, timeout=600
        )


def build_wheel(project: Path, folder: Path) -> Path:
    """Build the wheel of a project into `folder`, with what is installed here."""
    build = [sys.executable, "-m", "build", "--wheel", "--no-isolation", "--outdir", str(folder)]
    subprocess.run([*build, str(project)], capture_output=True, check=True, timeout=600)
    (wheel,) = folder.glob("*.whl")
    return wheel


@pytest.fixture(scope="module")
def wheel(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return build_wheel(ROOT, tmp_path_factory.mktemp("wheel"))


@pytest.fixture(scope="module")
def installation(wheel: Path) -> Installation:
    folder = wheel.parent
    subprocess.run([sys.executable, "-m", "venv", str(folder / "venv")], check=True, timeout=600)
    installation = Installation(wheel, folder / "venv")
    installation.install(f"{wheel}[cpu]")
    return installation


@pytest.mark.parametrize("dockerfile", sorted(EXAMPLES.glob("*.Dockerfile")), ids=lambda p: p.stem)
def test_the_commands_of_a_dockerfile_run_in_an_empty_folder(
    wheel: Path, dockerfile: Path, tmp_path: Path
) -> None:
    """Docker cannot run in a test; what would be the container's folder is `tmp_path` here."""
    subprocess.run([sys.executable, "-m", "venv", str(tmp_path / ".local")], check=True)
    shutil.copy(wheel, tmp_path)
    text = dockerfile.read_text().replace("/app", str(tmp_path))
    (settings,) = re.findall(r"^ENV (.*)$", text, flags=re.MULTILINE)
    exports = " ".join(shlex.quote(word).replace("'", '"') for word in settings.split())
    outputs = [
        subprocess.run(
            ["sh", "-ec", f"export {exports}; {command}"],
            cwd=tmp_path,
            env={"PATH": os.environ["PATH"]},
            capture_output=True,
            text=True,
            check=True,
            timeout=600,
        ).stdout
        for command in re.findall(r"^RUN (.*)$", text, flags=re.MULTILINE)
    ]
    assert "[I want my money back]" in outputs[-1]


def test_the_wheel_holds_the_product_its_model_and_its_sample_and_nothing_else(
    installation: Installation,
) -> None:
    names = zipfile.ZipFile(installation.wheel).namelist()
    assert {name.split("/")[0].split("-")[0] for name in names} == {
        "hybrid_search",
        DISTRIBUTION.replace("-", "_"),  # its .dist-info
    }
    expected_files = {"py.typed", "sample/calls.jsonl", "sample/topics.jsonl"} | {
        f"models/{SHIPPED.name}/{file}"
        for file in ("int8.onnx", "weights.data", "tokenizer.json", "encoder.json")
    }
    expected_files |= {
        f"serve/static/{path.name}" for path in (ROOT / "hybrid_search/serve/static").iterdir()
    }
    assert {f"hybrid_search/{name}" for name in expected_files} <= set(names)


def test_every_file_of_the_package_that_git_knows_is_in_the_wheel(
    installation: Installation,
) -> None:
    tracked_files = subprocess.run(
        ["git", "ls-files", "hybrid_search"], cwd=ROOT, capture_output=True, text=True, check=False
    ).stdout.split()
    if not tracked_files:
        pytest.skip("this is no git checkout")
    present = {name for name in tracked_files if (ROOT / name).is_file()}
    assert present <= set(zipfile.ZipFile(installation.wheel).namelist())


def test_the_mappings_are_in_the_wheel_and_are_found_there(installation: Installation) -> None:
    packed = {
        name
        for name in zipfile.ZipFile(installation.wheel).namelist()
        if name.startswith("hybrid_search/_mappings/")
    }
    source_files = {
        path.relative_to(ROOT / "mappings").as_posix()
        for path in (ROOT / "mappings").rglob("*")
        if path.is_file()
    }
    assert packed == {f"hybrid_search/_mappings/{name}" for name in source_files}
    program = """
from hybrid_search.backends.index_options import IndexOptions
from hybrid_search.backends.server.mappings import FOLDER, index_body
from hybrid_search.backends.types import IndexSpec
spec = IndexSpec("model", "fingerprint", 384, "int8", "turn", "6/1")
body = index_body("opensearch", spec, IndexOptions(graph_dimension=64), (2, 12, 0))
print(FOLDER.name, body["mappings"]["properties"]["spans"]["properties"]["vector"]["dimension"])
"""
    assert installation.run("-c", program).split() == ["_mappings", "64"]


def test_nothing_of_the_workshop_can_be_imported(installation: Installation) -> None:
    """What is of this project's own is not in the wheel at all."""
    names = ["torch", "transformers", "optimum", "rank_bm25", "pytest"]
    program = f"from importlib.util import find_spec; print([*filter(find_spec, {names})])"
    assert installation.run("-c", program).strip() == "[]"


def test_ingest_and_query_work_in_two_processes_as_written(installation: Installation) -> None:
    summary = json.loads(
        installation.run("-m", "hybrid_search.ingest", "--index", "calls").splitlines()[-1]
    )
    assert (summary["documents"], summary["failed"]) == (100, 0)
    program = (
        'import hybrid_search; result = hybrid_search.query("refund request", alpha=0.5); '
        "print(len(result), result.hits[0].spans[0].text)"
    )
    count, _, text = installation.run("-c", program).strip().partition(" ")
    assert count == "10"
    assert "money back" in text or "refund" in text


@pytest.mark.skipif(shutil.which("strace") is None, reason="strace is not installed")
def test_a_process_that_stays_open_connects_to_nobody(installation: Installation) -> None:
    trace = installation.folder.parent / "trace"
    strace = ["strace", "--follow-forks", "--trace=connect", f"--output={trace}"]
    if subprocess.run([*strace, "true"], capture_output=True, check=False).returncode:
        pytest.skip("strace may not trace processes here")
    program = (
        "import hybrid_search, time; hybrid_search.best_spans('refund request', 'A refund.'); "
        f"time.sleep({SECONDS})"
    )
    installation.run("-c", program, prefix=strace)
    assert "exited with 0" in trace.read_text()
    assert re.findall(r"connect\(.*AF_INET.*", trace.read_text()) == []
    assert list(installation.home.rglob(".onnxruntime")) == []


def test_the_console_script_is_installed(installation: Installation) -> None:
    assert (installation.folder / "bin" / "hybrid-search").is_file()
    assert "best-spans" in installation.run("-m", "hybrid_search", "--help")


def test_the_version_is_that_of_the_package(installation: Installation) -> None:
    program = (
        "import hybrid_search, importlib.metadata as metadata; "
        f"print(metadata.version({DISTRIBUTION!r}) == hybrid_search.__version__)"
    )
    assert installation.run("-c", program).strip() == "True"


def test_a_model_that_is_packed_and_installed_is_found_by_its_name(
    installation: Installation, tmp_path: Path
) -> None:
    project = tmp_path / "project"
    write_project(SHIPPED, project, "acme-small")
    installation.install("--no-deps", str(build_wheel(project, tmp_path)))
    program = (
        "import hybrid_search; client = hybrid_search.connect('memory:', model='acme-small'); "
        "print(client.encoder.info.name)"
    )
    assert installation.run("-c", program).strip() == "acme-small"
