"""Draw ``docs/answer.svg``, the README's picture of an answer: ``python -m tools.picture``.

The command is run on the bundled sample, and what it prints on a terminal becomes an SVG that loads
nothing: no font, no script, no other file.
"""

from __future__ import annotations

import os
import re
import shlex
import subprocess
import sys
import tempfile
from pathlib import Path

from rich.console import Console
from rich.terminal_theme import TerminalTheme
from rich.text import Text

PICTURE = Path(__file__).parents[1] / "docs" / "answer.svg"
COMMAND = 'hybrid-search query "give me back what I paid" --size 2 --spans 1'
COLUMNS = 66
"""Narrow, so that the letters can still be read on a phone."""

COLORS = TerminalTheme(
    (24, 26, 32),
    (224, 226, 230),
    [(24, 26, 32)] * 3 + [(255, 213, 79)] + [(224, 226, 230)] * 4,
)
"""Light letters on a dark ground, black on amber where a span is marked."""

FORMAT = """\
<svg viewBox="0 0 {width} {height}" xmlns="http://www.w3.org/2000/svg">
<style>
.{unique_id}-matrix {{
  font-family: ui-monospace, SFMono-Regular, Menlo, Consolas, monospace;
  font-size: {char_height}px;
  line-height: {line_height}px;
}}
{styles}
</style>
<defs>
<clipPath id="{unique_id}-clip-terminal">
<rect x="0" y="0" width="{terminal_width}" height="{terminal_height}" />
</clipPath>
{lines}
</defs>
{chrome}
<g transform="translate({terminal_x}, {terminal_y})" clip-path="url(#{unique_id}-clip-terminal)">
{backgrounds}
<g class="{unique_id}-matrix" xml:space="preserve">
{matrix}
</g>
</g>
</svg>
"""
"""As rich's own, without the web font that it loads."""

SCORE = re.compile(r"(?:(?<=&#160;)|(?<=>))\d+\.\d{2,3}")
"""A score in the picture. The last digits depend on the processor's int8 instructions."""

HITS = re.compile(r"(?<=of&#160;)\d+(?=&#160;hits)")
"""The number of hits in the picture, which depends on them, too: by what ends a leg's window."""


def run_query() -> str:
    """Return what the command prints on a terminal of `COLUMNS` columns, with its colours.

    The index is that of ``HYBRID_SEARCH_URL``.
    """
    environment = {name: value for name, value in os.environ.items() if name != "NO_COLOR"}
    environment |= {
        "COLUMNS": str(COLUMNS),
        "FORCE_COLOR": "1",
        "TERM": "xterm",
        "COLORTERM": "",
    }
    command = [sys.executable, "-m", "hybrid_search", *shlex.split(COMMAND)[1:]]
    return subprocess.run(
        command, env=environment, capture_output=True, text=True, check=True
    ).stdout


def draw(printed: str) -> str:
    """Return the SVG of the command and of what it `printed`."""
    with Path(os.devnull).open("w", encoding="utf-8") as nowhere:
        console = Console(record=True, width=COLUMNS, file=nowhere, force_terminal=True)
        console.print(Text(f"$ {COMMAND}\n"))
        console.print(Text.from_ansi(printed))
    drawing = console.export_svg(
        title="", theme=COLORS, code_format=FORMAT, font_aspect_ratio=0.61, unique_id="answer"
    )
    return "\n".join(line.rstrip() for line in drawing.splitlines() if line.strip()) + "\n"


def main() -> None:
    """Ingest the sample into a temporary folder, ask it, and write the picture."""
    with tempfile.TemporaryDirectory() as folder:
        os.environ["HYBRID_SEARCH_URL"] = f"embedded:{folder}"
        command = [sys.executable, "-m", "hybrid_search", "ingest", "--sample"]
        subprocess.run(command, stdout=subprocess.DEVNULL, check=True)
        PICTURE.write_text(draw(run_query()), encoding="utf-8")


if __name__ == "__main__":
    main()
