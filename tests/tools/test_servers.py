"""Test the launcher of real servers: the choice of Java, the guard, its command, compose.yaml."""

from __future__ import annotations

import os
import re
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Mapping
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
import yaml

from hybrid_search.backends.server.transport.connection import Server
from tests.helpers import live_servers
from tools.servers import __main__ as launcher
from tools.servers import guard, jdk
from tools.servers.catalog import (
    ELASTICSEARCH_8,
    OPENSEARCH_3,
    RELEASES,
    SETS,
    StartError,
    select_releases,
)

ROOT = Path(__file__).parents[2]
PATIENCE = 20


def make_jdk(folder: Path, version: str) -> Path:
    """Make a folder that looks like a JDK."""
    (folder / "bin").mkdir(parents=True)
    (folder / "bin" / "javac").touch()
    (folder / "release").write_text(f'IMPLEMENTOR="x"\nJAVA_VERSION="{version}"\n')
    return folder


@pytest.fixture
def jvms(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """An empty folder of JDKs, and no JAVA_HOME."""
    for name in [variable for variable in os.environ if variable.startswith("JAVA_HOME")]:
        monkeypatch.delenv(name)
    monkeypatch.setattr(jdk, "FOLDER", tmp_path / "jvm")
    return tmp_path / "jvm"


def test_a_server_gets_the_oldest_java_that_it_runs_on(jvms: Path) -> None:
    for name in ("17.0.15", "21.0.2", "25.0.3", "11.0.1"):
        make_jdk(jvms / name, name)
    assert jdk.find_jdk(OPENSEARCH_3) == jdk.Jdk(jvms / "21.0.2", 21)
    assert jdk.find_jdk(ELASTICSEARCH_8) == jdk.Jdk(jvms / "17.0.15", 17)


def test_java_home_is_looked_at_first(
    jvms: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    make_jdk(jvms / "21", "21.0.2")
    monkeypatch.setenv("JAVA_HOME", str(make_jdk(tmp_path / "own", "21.0.9")))
    assert jdk.find_jdk(OPENSEARCH_3).home == tmp_path / "own"


def test_a_missing_java_is_named_with_those_there_are_and_the_server(jvms: Path) -> None:
    make_jdk(jvms / "17", "17.0.15")
    (jvms / "a-jre").mkdir()
    with pytest.raises(
        StartError,
        match=r"^opensearch-3.5.0 needs JDK 21 to 25, but installed is 17: "
        r"install JDK 25 under .*jvm, or set JAVA_HOME$",
    ):
        jdk.find_jdk(OPENSEARCH_3)


def test_servers_are_chosen_by_set_or_by_names() -> None:
    assert [release.name for release in select_releases("default")] == [
        "opensearch-3.5.0",
        "elasticsearch-9.5.3",
    ]
    assert len(select_releases("all")) == 4
    assert select_releases("elasticsearch-8.19.0, opensearch-3.5.0") == (
        ELASTICSEARCH_8,
        OPENSEARCH_3,
    )


@pytest.mark.parametrize("names", ["", ",", "opensearch", "all,default"])
def test_a_server_that_there_is_none_of_is_refused_with_those_there_are(names: str) -> None:
    with pytest.raises(StartError, match=", ".join([*SETS, *RELEASES])):
        select_releases(names)


def wait_until(holds: Callable[[], object]) -> bool:
    """Tell whether `holds` becomes true within some seconds."""
    late = time.monotonic() + PATIENCE
    while not holds() and time.monotonic() < late:
        time.sleep(0.05)
    return bool(holds())


def is_running(process: int) -> bool:
    """Tell whether a process runs; one that ended and was not collected has no command line."""
    try:
        return Path(f"/proc/{process}/cmdline").read_bytes() != b""
    except (FileNotFoundError, ProcessLookupError):  # the latter: it ended after the file was open
        return False


def guard_command(folder: Path, seconds: float = 600) -> list[str]:
    """A guard's command. Its server writes the numbers of its two processes into the file
    ``processes`` beside `folder`, and sleeps.
    """
    folder.mkdir()
    parent = folder.parent
    write_numbers = f"echo $$ $! >> {parent}/new && mv {parent}/new {parent}/processes"
    program = f"sleep 600 & {write_numbers}; wait"
    dies = ["setpriv", "--pdeathsig", "KILL"] if shutil.which("setpriv") else []
    guarded = [sys.executable, "-I", guard.__file__, str(folder), str(seconds)]
    return [*guarded, *dies, "sh", "-c", program]


def processes(folder: Path) -> list[int]:
    """Return the numbers of the processes of the server that was started last."""
    file = folder / "processes"
    assert wait_until(file.is_file)
    return [int(number) for number in file.read_text().split()]


def start_guard(command: list[str]) -> subprocess.Popen[bytes]:
    return subprocess.Popen(command, bufsize=0, stdin=subprocess.PIPE, stdout=subprocess.PIPE)


def ask_guard(process: subprocess.Popen[bytes], order: str) -> str:
    assert process.stdin
    assert process.stdout
    process.stdin.write(f"{order}\n".encode())
    return process.stdout.readline().decode().strip()


def end_guard(process: subprocess.Popen[bytes]) -> None:
    assert process.stdin
    assert process.stdout
    process.stdin.close()
    process.wait(PATIENCE)
    process.stdout.close()


@pytest.mark.faults
def test_a_server_is_killed_started_again_and_asked_to_end(tmp_path: Path) -> None:
    process = start_guard(guard_command(tmp_path / "run"))
    first = processes(tmp_path)
    assert ask_guard(process, "state") == "running"
    assert ask_guard(process, "kill") == "ended"
    assert not any(map(is_running, first))
    (tmp_path / "processes").unlink()
    assert ask_guard(process, "start") == "running"
    second = processes(tmp_path)
    assert set(first).isdisjoint(second)
    assert ask_guard(process, "halt") == "ended"
    assert not any(map(is_running, second))
    assert (tmp_path / "run").is_dir()
    end_guard(process)
    assert not (tmp_path / "run").exists()


def test_a_server_and_its_folder_are_gone_when_its_starter_is_killed(tmp_path: Path) -> None:
    program = (
        "import subprocess, sys, time; "
        "subprocess.Popen(sys.argv[1:], stdin=subprocess.PIPE); time.sleep(600)"
    )
    with subprocess.Popen(
        [sys.executable, "-c", program, *guard_command(tmp_path / "run")]
    ) as starter:
        server = processes(tmp_path)
        assert all(map(is_running, server))
        starter.kill()
    assert wait_until(lambda: not any(map(is_running, server)))
    assert wait_until(lambda: not (tmp_path / "run").exists())


def test_a_server_is_ended_when_its_time_is_up(tmp_path: Path) -> None:
    process = start_guard(guard_command(tmp_path / "run", seconds=0.5))
    server = processes(tmp_path)
    process.wait(PATIENCE)
    assert not any(map(is_running, server))
    assert not (tmp_path / "run").exists()
    end_guard(process)


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGKILL])
def test_a_server_does_not_outlive_its_guard(tmp_path: Path, number: int) -> None:
    if number == signal.SIGKILL and not shutil.which("setpriv"):
        pytest.skip("without setpriv nobody ends the server of a guard that was killed")
    process = start_guard(guard_command(tmp_path / "run"))
    first, second = processes(tmp_path)
    process.send_signal(number)
    process.wait(PATIENCE)
    assert wait_until(lambda: not is_running(first))
    end_guard(process)
    # the second process of a real server ends when the first is gone; this one does not
    if is_running(second):
        os.kill(second, signal.SIGKILL)


def run_with_servers(urls: str, *command: str) -> subprocess.CompletedProcess[str]:
    """``python -m tools.servers -- command`` where servers are named."""
    env = {**os.environ, "HYBRID_SEARCH_TEST_URLS": urls}
    line = [sys.executable, "-m", "tools.servers", "--", *command]
    return subprocess.run(
        line, cwd=ROOT, env=env, capture_output=True, text=True, check=False, timeout=60
    )


def test_a_named_server_that_does_not_answer_is_an_error() -> None:
    ran = run_with_servers("opensearch+http://127.0.0.1:1?replicas=0", "true")
    assert ran.returncode == 1
    assert (
        "error: HYBRID_SEARCH_TEST_URLS is set, but no server answers at "
        "opensearch+http://127.0.0.1:1?replicas=0" in ran.stderr
    )


def test_without_a_command_the_urls_are_printed_and_the_servers_end_at_their_time(
    capsys: pytest.CaptureFixture[str],
) -> None:
    url = "opensearch+http://127.0.0.1:9?replicas=0"
    server: Any = SimpleNamespace(test_url=url, release=OPENSEARCH_3, is_alive=lambda: True)
    assert launcher._wait([server], time.monotonic() + 0.5) == 0
    output = capsys.readouterr()
    assert output.out == f"{url}\n"
    assert f"export HYBRID_SEARCH_URL='{url}'" in output.err
    assert "time is up" in output.err


@pytest.mark.server
@pytest.mark.parametrize("url", live_servers.URLS)
def test_where_servers_are_named_none_is_started_and_the_status_is_the_commands(url: str) -> None:
    ran = run_with_servers(url, "sh", "-c", "echo $HYBRID_SEARCH_TEST_URLS; exit 7")
    assert (ran.returncode, ran.stdout.strip()) == (7, url)


@pytest.mark.server
@pytest.mark.parametrize("url", live_servers.URLS)
def test_the_indexes_that_a_test_made_are_removed_and_no_others(url: str) -> None:
    def list_index_names(server: Server) -> set[str]:
        return {
            row["index"]
            for row in server.request("GET", "/_cat/indices", params={"format": "json"})
        }

    with (
        live_servers.open_server(url) as server,
        live_servers.scratch_index(server, {}) as other_index,
    ):
        before = list_index_names(server)
        with live_servers.remove_new_indexes(url):
            for name in ("made", "anrufe_k%C3%B6ln"):
                server.request("PUT", f"/{name}")
            assert list_index_names(server) - before == {"made", "anrufe_köln"}
        assert other_index in list_index_names(server)
        assert list_index_names(server) == before


@pytest.fixture(scope="module")
def services() -> Mapping[str, Any]:
    services: Mapping[str, Any] = yaml.safe_load((ROOT / "compose.yaml").read_text())["services"]
    return services


def test_compose_has_both_servers_with_their_pages_elasticsearch_only_if_asked_for(
    services: Mapping[str, Any],
) -> None:
    profiles = {name: service.get("profiles") for name, service in services.items()}
    assert profiles == {
        "opensearch": None,
        "dashboards": None,
        "elasticsearch": ["elasticsearch"],
        "kibana": ["elasticsearch"],
    }


def test_compose_pins_the_versions_that_are_tested(services: Mapping[str, Any]) -> None:
    versions = {name: service["image"].rpartition(":")[2] for name, service in services.items()}
    opensearch, elasticsearch = (release.version for release in SETS["default"])
    assert versions == {
        "opensearch": opensearch,
        "dashboards": opensearch,
        "elasticsearch": elasticsearch,
        "kibana": elasticsearch,
    }


def test_compose_opens_nothing_but_loopback_each_port_once(services: Mapping[str, Any]) -> None:
    ports = [port for service in services.values() for port in service["ports"]]
    assert len(ports) == 4
    assert all(re.fullmatch(r"127\.0\.0\.1:\d+:\d+", port) for port in ports)
    assert len({port.split(":")[1] for port in ports}) == 4


def test_compose_waits_for_the_servers_and_keeps_their_data(services: Mapping[str, Any]) -> None:
    assert all("curl" in service["healthcheck"]["test"] for service in services.values())
    assert {
        name: list(service["depends_on"])
        for name, service in services.items()
        if "depends_on" in service
    } == {"dashboards": ["opensearch"], "kibana": ["elasticsearch"]}
    volumes = {
        volume.split(":")[0]
        for service in services.values()
        for volume in service.get("volumes", [])
    }
    assert volumes == set(yaml.safe_load((ROOT / "compose.yaml").read_text())["volumes"])
