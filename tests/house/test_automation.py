"""Test that what runs on GitHub exists here: targets, modules and files, and one version."""

from __future__ import annotations

import importlib.util
import re
import tomllib
from pathlib import Path
from typing import Any

import pytest
import yaml

import hybrid_search
from tools.pages import TARGETS

ROOT = Path(__file__).parents[2]
WORKFLOWS = sorted((ROOT / ".github" / "workflows").glob("*.yml"))
TEMPLATES = sorted((ROOT / ".github" / "ISSUE_TEMPLATE").glob("*.yml"))


def read_jobs(workflow: Path) -> dict[str, dict[str, Any]]:
    jobs: dict[str, dict[str, Any]] = yaml.safe_load(workflow.read_text(encoding="utf-8"))["jobs"]
    return jobs


def list_commands(workflow: Path) -> list[str]:
    """Return the commands of all jobs, each value of the matrix in its place."""
    commands = []
    for job in read_jobs(workflow).values():
        matrix = job.get("strategy", {}).get("matrix", {})
        for step in job.get("steps", ()):
            command = step.get("run", "")
            names = re.findall(r"\$\{\{ matrix\.(\w+) \}\}", command)
            values = matrix[names[0]] if names else [""]
            commands += [re.sub(r"\$\{\{.*?\}\}", value, command) for value in values]
    return commands


@pytest.mark.parametrize("workflow", WORKFLOWS, ids=lambda path: path.stem)
def test_the_commands_of_a_workflow_exist(workflow: Path) -> None:
    commands = "\n".join(list_commands(workflow))
    assert set(re.findall(r"^make ([\w-]+)", commands, flags=re.MULTILINE)) <= TARGETS
    modules = set(re.findall(r"python -m ([\w.]+)", commands)) - {"twine"}  # installed there
    assert [name for name in modules if importlib.util.find_spec(name) is None] == []
    paths = re.findall(r"(?<=\s)(?:tests|hybrid_search)/[\w./-]+", commands)
    assert [path for path in paths if not (ROOT / path).exists()] == []


@pytest.mark.parametrize("workflow", WORKFLOWS, ids=lambda path: path.stem)
def test_a_job_comes_after_jobs_that_exist_and_may_do_no_more_than_it_needs(
    workflow: Path,
) -> None:
    jobs = read_jobs(workflow)
    for job in jobs.values():
        assert {job.get("needs", next(iter(jobs)))} <= set(jobs)
        called = job.get("uses", "").removeprefix("./")
        assert (ROOT / called).exists()
    text = workflow.read_text(encoding="utf-8")
    assert "\npermissions: {contents: read}\n" in text
    assert "secrets." not in text  # PyPI and the pages trust the workflow itself


def test_pull_requests_run_what_must_pass_before_a_change_lands() -> None:
    """All targets of ``.ci/run`` run somewhere, and all jobs call the same tests."""
    landing = (ROOT / ".ci" / "run").read_text(encoding="utf-8")
    targets = set(re.findall(r"^make ([a-z-]+)", landing, flags=re.MULTILINE))
    commands = "\n".join(command for path in WORKFLOWS for command in list_commands(path))
    assert targets <= set(re.findall(r"^make ([\w-]+)", commands, flags=re.MULTILINE))


def test_what_is_published_is_this_distribution() -> None:
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    release = read_jobs(ROOT / ".github" / "workflows" / "release.yml")["publish"]
    assert release["environment"]["url"] == f"https://pypi.org/project/{project['name']}/"
    assert release["permissions"] == {"id-token": "write"}


def test_the_citation_names_this_version_and_licence() -> None:
    citation = yaml.safe_load((ROOT / "CITATION.cff").read_text(encoding="utf-8"))
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    assert citation["version"] == hybrid_search.__version__
    assert citation["license"] == project["license"].split()[0]  # and that of the weights
    assert set(citation["keywords"]) == set(project["keywords"])


@pytest.mark.parametrize("template", TEMPLATES, ids=lambda path: path.stem)
def test_a_template_asks_for_something_and_names_commands_that_exist(template: Path) -> None:
    form = yaml.safe_load(template.read_text(encoding="utf-8"))
    if template.stem == "config":
        assert form == {"blank_issues_enabled": True}
        return
    identifiers = [item["id"] for item in form["body"] if item["type"] != "markdown"]
    assert identifiers
    assert len(set(identifiers)) == len(identifiers)
