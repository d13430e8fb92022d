"""Start ``ingest`` in a process of its own, with a tiny encoder that can be made to fail."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Any

ROOT = Path(__file__).parents[2]

POISON = "poisonous"
"""A text with this word breaks the encoder of `PROGRAM` if the variable `BREAKS` is set."""

PROGRAM = f"""
import os, random, sys, time
from hybrid_search import encoder
from hybrid_search.ingest import pipeline, prepare
from tests.helpers.tiny_encoder import TinyEncoder

class Faulty(TinyEncoder):
    calls = 0

    def encode(self, texts):
        Faulty.calls += 1
        time.sleep(float(os.environ.get("SLOW", 0)))
        if Faulty.calls > int(os.environ.get("ENCODER_FAILS_AFTER", 10**9)):
            raise RuntimeError("the device is gone")
        if "BREAKS" in os.environ and any("{POISON}" in text for text in texts):
            raise ValueError("an odd shape")
        return super().encode(texts)

encoder.load = lambda *_: Faulty()
encoder.truncate_encoder = lambda whole, *_: whole
pipeline.BLOCK_PASSAGES = int(os.environ.get("BLOCK", 16))
prepare.LOOKUP_DOCUMENTS = 20
if "LARGEST" in os.environ:  # no file may grow beyond so many bytes, as on a full disk
    import resource, signal
    signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
    resource.setrlimit(resource.RLIMIT_FSIZE, (int(os.environ["LARGEST"]), resource.RLIM_INFINITY))
from hybrid_search.cli.app import app
app(["ingest", "--index", "calls", *sys.argv[1:]])
"""


def start_ingest(
    *arguments: str, env: Mapping[str, str] | None = None, **popen_options: Any
) -> subprocess.Popen[str]:
    """Start the process; `env` is added to its environment."""
    command = [sys.executable, "-c", PROGRAM, *arguments]
    environment = {**os.environ, "PYTHONPATH": str(ROOT), **(env or {})}
    return subprocess.Popen(
        command,
        env=environment,
        text=True,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        **popen_options,
    )
