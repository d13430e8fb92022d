"""Run the command line: as users do in a process of its own, or faster in this process."""

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
class CommandResult:
    """Exit status, standard output and standard error."""

    status: int
    stdout: str
    stderr: str

    @property
    def json(self) -> Any:
        """The last line of standard output, parsed as JSON."""
        return json.loads(self.stdout.splitlines()[-1])

    @property
    def error(self) -> str:
        """The one error line; fails if the command did not fail with exactly one."""
        error_lines = [line for line in self.stderr.splitlines() if line.startswith("error: ")]
        assert len(error_lines) == 1, self.stderr
        assert "Traceback" not in self.stderr
        assert self.status == 2
        return error_lines[0].removeprefix("error: ")


def run_cli(
    *arguments: str,
    module: str = "hybrid_search",
    stdin: str = "",
    env: Mapping[str, str] | None = None,
    prefix: Sequence[str] = (),
) -> CommandResult:
    """Run ``python -m module arguments`` in another process, by the command `prefix` if given."""
    command = [*prefix, sys.executable, "-m", module, *arguments]
    process = subprocess.run(
        command,
        input=stdin,
        capture_output=True,
        encoding="utf-8",
        env=env,
        timeout=300,
        check=False,
    )
    return CommandResult(process.returncode, process.stdout, process.stderr)


def invoke_cli(*arguments: str, stdin: str = "") -> CommandResult:
    """Run the command line in this process, where the encoder is loaded once for all tests."""
    outcome = CliRunner().invoke(app, arguments, input=stdin)
    if outcome.exception is not None and not isinstance(outcome.exception, SystemExit):
        raise outcome.exception
    return CommandResult(outcome.exit_code, outcome.stdout, outcome.stderr)
