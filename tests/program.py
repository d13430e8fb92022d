"""The command line, as users run it: in a process of its own, or, where only its answer matters, in this one."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from typer.testing import CliRunner

from hybrid_search.cli.app import app


@dataclass(frozen=True, slots=True)
class Ran:
    """Exit status, standard output and standard error."""

    status: int
    out: str
    err: str

    @property
    def json(self) -> Any:
        """The last line of standard output."""
        return json.loads(self.out.splitlines()[-1])

    @property
    def error(self) -> str:
        """The one line that says what went wrong; fails where that is not how it was said."""
        told = [line for line in self.err.splitlines() if line.startswith("error: ")]
        assert len(told) == 1, self.err
        assert "Traceback" not in self.err
        assert self.status == 2
        return told[0].removeprefix("error: ")


def run(*arguments: str, module: str = "hybrid_search", given: str = "", env: Mapping[str, str] | None = None, before: Sequence[str] = ()) -> Ran:
    """``python -m module arguments`` in another process; `given` is its standard input, `before` a command that runs it."""
    command = [*before, sys.executable, "-m", module, *arguments]
    done = subprocess.run(command, input=given, capture_output=True, encoding="utf-8", env=env, timeout=300, check=False)
    return Ran(done.returncode, done.stdout, done.stderr)


def invoke(*arguments: str, given: str = "") -> Ran:
    """The same in this process, where the encoder is loaded once for all."""
    done = CliRunner().invoke(app, arguments, input=given)
    if done.exception is not None and not isinstance(done.exception, SystemExit):
        raise done.exception
    return Ran(done.exit_code, done.stdout, done.stderr)
