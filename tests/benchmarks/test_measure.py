"""The steps of an exchange of weights: each once, in order, and none behind one that failed."""

from __future__ import annotations

import re
import sys
from collections.abc import Sequence
from pathlib import Path

import pytest

from benchmarks.measure import STEPS, run_steps

ROOT = Path(__file__).parents[2]


def append(path: Path, word: str, status: int = 0) -> Sequence[str]:
    code = (
        f"import sys; open({str(path)!r}, 'a').write({word!r}); print('said'); sys.exit({status})"
    )
    return (sys.executable, "-c", code)


def test_a_step_that_is_done_is_not_repeated(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    marks = tmp_path / "marks"
    steps = {"one": [append(marks, "1"), append(marks, "2")], "two": [append(marks, "3")]}
    run_steps(steps, tmp_path / "stamps")
    run_steps(steps, tmp_path / "stamps")
    assert marks.read_text() == "123"
    assert (tmp_path / "stamps" / "one.log").read_text() == "said\nsaid\n"
    assert capsys.readouterr().out.endswith("one: done before\ntwo: done before\n")


def test_nothing_follows_a_step_that_failed_and_the_next_run_goes_on_with_it(
    tmp_path: Path,
) -> None:
    marks, stamps = tmp_path / "marks", tmp_path / "stamps"
    steps = {"one": [append(marks, "1")], "two": [append(marks, "2", 3)]}
    with pytest.raises(SystemExit, match=r"^two: .* failed, see .*two\.log$"):
        run_steps({**steps, "three": [append(marks, "3")]}, stamps)
    assert marks.read_text() == "12"
    run_steps({**steps, "two": [append(marks, "4")], "three": [append(marks, "5")]}, stamps)
    assert marks.read_text() == "1245"


def test_every_step_calls_what_there_is() -> None:
    targets = re.findall(r"^([a-z-]+):", (ROOT / "Makefile").read_text(), flags=re.MULTILINE)
    for commands in STEPS.values():
        for command in commands:
            if command[0] == "make":
                assert command[1] in targets
            elif command[1:2] == ("-m",) and command[2] != "pytest":
                path = ROOT.joinpath(*command[2].split("."))
                assert path.is_dir() or path.with_suffix(".py").is_file(), command
