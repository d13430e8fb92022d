"""Run the code of the documentation's pages; ``python -m tools.pages`` writes its outputs.

A page's Python and shell blocks run in their order, as by somebody who has ingested the bundled
sample and has its files beside him. An ``output`` block is what the block before it prints. The
command rewrites these blocks, the outputs of notebooks, the README's picture and its table of first
answers; only scores that differ by more than processors do are exchanged.
"""

from __future__ import annotations

import io
import json
import os
import re
import shlex
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Iterator, Mapping
from contextlib import chdir, redirect_stdout
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from hybrid_search.errors import MissingExtraError
from hybrid_search.ingest.sources.files import SAMPLE
from tools import first_answers, picture
from tools.first_answers import INT8_TOLERANCE

ROOT = Path(__file__).parents[1]
PAGES = [ROOT / "README.md", *sorted((ROOT / "docs").glob("*.md"))]
NOTEBOOKS = sorted((ROOT / "docs" / "examples").glob("*.ipynb"))
TARGETS = set(re.findall(r"^([a-z][a-z-]*):", (ROOT / "Makefile").read_text(), flags=re.MULTILINE))
OWN_COMMAND = re.compile(r"(?:[A-Z_]+=\S+ )*(?:python|hybrid-search) ")
WORKSHOP = ("benchmarks", "export", "papers", "tools")

NUMBER = re.compile(r"\d+\.\d+")
PROBABILITY_TOLERANCE = 0.05
"""Of numbers with two decimals: a probability changes by up to 2.5 times as much as its cosine."""


@dataclass(frozen=True, slots=True)
class CodeBlock:
    """A fenced block: its language, where its first line is, and what is in it."""

    language: str
    line: int
    text: str

    @property
    def commands(self) -> list[str]:
        """The lines of a shell block, continued ones joined; of a console block, the typed ones."""
        lines = self.text.replace("\\\n", " ").splitlines()
        if self.language == "console":
            return [line[2:].strip() for line in lines if line.startswith("$ ")]
        return [line.strip() for line in lines if line.strip() and not line.startswith("#")]


def read_blocks(page: Path) -> Iterator[CodeBlock]:
    """Yield the fenced blocks of a page."""
    text = page.read_text(encoding="utf-8")
    for match in re.finditer(r"^```(\w*)\n(.*?)^```$", text, flags=re.MULTILINE | re.DOTALL):
        yield CodeBlock(match[1], text.count("\n", 0, match.start()) + 2, match[2])


def prepare_folder(folder: Path, store: Path) -> dict[str, str]:
    """Put the sample's files and a copy of its index into `folder`.

    Returns:
        The environment of somebody who works there.
    """
    shutil.copytree(store, folder / "store")
    shutil.copy(SAMPLE, folder / "calls.jsonl")
    shutil.copy(SAMPLE.with_name("topics.yaml"), folder / "topics.yaml")
    shutil.copytree(ROOT / "docs" / "examples" / "your-data", folder, dirs_exist_ok=True)
    return {
        "HYBRID_SEARCH_URL": f"embedded:{folder / 'store'}",
        "PATH": f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}",
    }


def run_page(page: Path) -> Iterator[tuple[CodeBlock, str]]:
    """Run the blocks of a page, and yield each ``output`` block with today's output.

    A ValueError names a command that fails, or a target or a module that does not exist; a
    MissingExtraError code that needs more than is installed.

    Yields:
        The block, and the text that stands in it if the page is true.
    """
    names: dict[str, Any] = {"__name__": "__main__"}
    printed = ""
    for block in read_blocks(page):
        if block.language == "python":
            printed = run_python(page, block, names)
        elif block.language in ("bash", "console", "sh"):
            printed = "".join(_run_command(page, block.line, line) for line in block.commands)
        elif block.language == "output":
            yield block, printed


def run_python(page: Path, block: CodeBlock, names: dict[str, Any]) -> str:
    """Run the code of a block in `names`, and return its output."""
    printed = io.StringIO()
    with redirect_stdout(printed):
        code = compile("\n" * (block.line - 1) + block.text, str(page), "exec")
        exec(code, names)  # noqa: S102 # running the page's code is what this is for
    return printed.getvalue()


def _run_command(page: Path, line: int, command: str) -> str:
    """Run a command of ours and return its output; others are only looked at."""
    words = shlex.split(command)
    if OWN_COMMAND.match(command) and not _is_of_workshop(words):
        result = subprocess.run(
            ["/bin/sh", "-c", command], capture_output=True, text=True, check=False, timeout=300
        )
        if result.returncode:
            raise ValueError(f"{page}:{line}: {command}\n{result.stderr}")
        return result.stdout
    if words[0] == "make" and not set(words[1:]) <= TARGETS:
        raise ValueError(f"{page}:{line}: {command}: no such target")
    if _is_of_workshop(words):
        path = ROOT.joinpath(*words[2].split("."))
        if not (path.is_dir() or path.with_suffix(".py").is_file()):
            raise ValueError(f"{page}:{line}: {command}: no such module")
    return ""


def _is_of_workshop(words: list[str]) -> bool:
    return words[:2] == ["python", "-m"] and words[2].split(".")[0] in WORKSHOP


def is_same_output(printed: str, expected: str, number: re.Pattern[str] = NUMBER) -> bool:
    """Return whether two outputs agree, with scores as near as on different processors."""
    if number.sub("#", printed) != number.sub("#", expected):
        return False
    pairs = zip(number.findall(printed), number.findall(expected), strict=True)
    return all(abs(float(a) - float(b)) <= _tolerance(b) for a, b in pairs)


def _tolerance(number: str) -> float:
    """Return how much a number may differ from that of another processor."""
    decimals = len(number.partition(".")[2])
    return PROBABILITY_TOLERANCE if decimals == 2 else INT8_TOLERANCE


def rewrite_outputs(page: Path) -> int:
    """Write today's outputs of a page into its ``output`` blocks; return how many changed."""
    changed = [
        (block, printed)
        for block, printed in run_page(page)
        if not is_same_output(printed, block.text)
    ]
    lines = page.read_text(encoding="utf-8").splitlines(keepends=True)
    for block, printed in reversed(changed):
        first = block.line - 1
        lines[first : first + block.text.count("\n")] = printed.splitlines(keepends=True)
    page.write_text("".join(lines), encoding="utf-8")
    return len(changed)


def run_notebook(path: Path) -> Iterator[tuple[dict[str, Any], str]]:
    """Run the code cells of a notebook, and yield each with today's output."""
    names: dict[str, Any] = {"__name__": "__main__"}
    for number, cell in enumerate(json.loads(path.read_text(encoding="utf-8"))["cells"]):
        if cell["cell_type"] == "code":
            block = CodeBlock("python", 1, "".join(cell["source"]))
            yield cell, run_python(path.with_name(f"{path.name}:{number}"), block, names)


def read_cell_output(cell: Mapping[str, Any]) -> str:
    """Return the output that a notebook has of a cell."""
    return "".join(line for output in cell["outputs"] for line in output["text"])


def rewrite_notebook(path: Path) -> int:
    """Write today's outputs of a notebook's cells, and return how many changed."""
    notebook = json.loads(path.read_text(encoding="utf-8"))
    cells = (cell for cell in notebook["cells"] if cell["cell_type"] == "code")
    changed = 0
    for cell, (_, printed) in zip(cells, run_notebook(path), strict=True):
        if not is_same_output(printed, read_cell_output(cell)):
            (output,) = cell["outputs"]
            output["text"] = printed.splitlines(keepends=True)
            changed += 1
    path.write_text(f"{json.dumps(notebook, indent=1, ensure_ascii=False)}\n", encoding="utf-8")
    return changed


def main() -> None:
    """Run the command."""
    os.environ["MPLBACKEND"] = "Agg"
    with tempfile.TemporaryDirectory() as scratch:
        store = Path(scratch) / "sample"
        command = [sys.executable, "-m", "hybrid_search.ingest", "--index", "calls"]
        subprocess.run([*command, "--url", f"embedded:{store}"], check=True, capture_output=True)
        for page in PAGES:
            folder = Path(scratch) / page.stem
            folder.mkdir()
            os.environ.update(prepare_folder(folder, store))
            try:
                with chdir(folder):
                    print(f"{page.relative_to(ROOT)}: {rewrite_outputs(page)} outputs rewritten")
            except MissingExtraError as missing:
                print(f"{page.relative_to(ROOT)}: left as it is, {missing}")
    for notebook in NOTEBOOKS:
        print(f"{notebook.relative_to(ROOT)}: {rewrite_notebook(notebook)} outputs rewritten")
    first_answers.rewrite(PAGES[0])
    picture.main()


if __name__ == "__main__":
    main()
