"""No retriever makes its framework report to anybody: neither its import nor its queries.

A process of a user with an empty home, in which every connection is refused and written down.
"""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from hybrid_search import config

ROOT = Path(__file__).parents[2]

pytestmark = pytest.mark.frameworks

PROGRAM = """
import atexit, sys
connections = []
def refuse(event, arguments):
    if event in ("socket.connect", "socket.getaddrinfo", "socket.sendto"):
        connections.append(event)
        raise ConnectionError("this test sends nothing")
sys.addaudithook(refuse)
atexit.register(lambda: print(connections))  # after what the frameworks do at the end
import hybrid_search
client = hybrid_search.connect("memory:", device="cpu")
client.ingest([{{"id": "a", "text": "Please send my money back."}}])
from hybrid_search.retrievers.{name} import HybridSearchRetriever
{program}
"""

PROGRAMS = {
    "langchain": 'HybridSearchRetriever(client=client).invoke("refund")',
    "llamaindex": 'HybridSearchRetriever(client=client).retrieve("refund")',
    "haystack": """
from haystack import Pipeline
pipeline = Pipeline()
pipeline.add_component("retriever", HybridSearchRetriever(client=client))
pipeline.run({"retriever": {"query": "refund"}})
""",
}
LIBRARIES = {
    "langchain": "langchain_core",
    "llamaindex": "llama_index.core",
    "haystack": "haystack",
}


def new_user(home: Path, **variables: str) -> dict[str, str]:
    """The environment of a user who has set nothing, also not that this is CI."""
    home.mkdir()
    return {
        "PATH": os.environ["PATH"],
        "HOME": str(home),
        "PYTHONPATH": str(ROOT),
        **variables,
    }


def run_program(program: str, env: dict[str, str]) -> str:
    return subprocess.run(
        [sys.executable, "-c", program], env=env, capture_output=True, text=True, check=True
    ).stdout.strip()


@pytest.mark.parametrize("name", PROGRAMS)
def test_a_framework_that_a_retriever_imports_talks_to_nobody(name: str, tmp_path: Path) -> None:
    pytest.importorskip(LIBRARIES[name], reason="make test-frameworks installs it")
    env = new_user(tmp_path / "user")
    program = PROGRAM.format(name=name, program=PROGRAMS[name])
    assert run_program(program, env).splitlines()[-1] == "[]"
    assert [path for path in (tmp_path / "user").rglob("*") if path.is_file()] == []


def test_the_listener_hears_what_haystack_would_report(tmp_path: Path) -> None:
    """The tests above pass only because nothing is sent: with its reports on, Haystack is heard."""
    pytest.importorskip("haystack", reason="make test-frameworks installs it")
    env = new_user(tmp_path / "user", **{config.HAYSTACK_SWITCH: "true"})
    program = PROGRAM.format(name="haystack", program=PROGRAMS["haystack"])
    assert "socket.getaddrinfo" in run_program(program, env)
    assert (tmp_path / "user" / ".haystack" / "config.yaml").is_file()
