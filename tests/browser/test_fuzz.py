"""schemathesis asks the service whatever its description allows, and what it does not."""

from __future__ import annotations

import re
import subprocess
import sys

import pytest

from tests.helpers.service import RunningService

pytestmark = pytest.mark.browser

CHECKS = (
    "not_a_server_error,status_code_conformance,content_type_conformance,"
    "response_schema_conformance,negative_data_rejection,unsupported_method"
)


@pytest.mark.parametrize(
    ("examples", "cases"), [(20, 200), pytest.param(450, 2_000, marks=pytest.mark.long)]
)
def test_fuzzed_requests_get_the_answers_that_are_described(
    service: RunningService, examples: int, cases: int
) -> None:
    result = subprocess.run(
        [
            *(sys.executable, "-m", "schemathesis.cli", "run", f"{service.url}/openapi.json"),
            *("--checks", CHECKS, "--phases", "examples,coverage,fuzzing", "--no-color"),
            *("--max-examples", str(examples), "--seed", "1", "--request-timeout", "60"),
        ],
        capture_output=True,
        text=True,
        check=False,
        timeout=900,
    )
    assert result.returncode == 0, result.stdout[-6_000:] + result.stderr[-1_000:]
    generated = re.search(r"(\d+) generated", result.stdout)
    assert generated, result.stdout[-1_000:]
    assert int(generated[1]) >= cases
    assert not [line for line in service.log if "unexpected" in line or "Traceback" in line]
    assert not re.search(r'" 5\d\d in', "".join(service.log))
