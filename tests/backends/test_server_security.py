"""A real Elasticsearch with its security on: https, least privileges, and keys.

No secret may be anywhere that it could be read.
"""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
import time
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from hybrid_search.backends.server.transport.address import Address
from hybrid_search.backends.server.transport.connection import Server, connect
from hybrid_search.client import Client
from hybrid_search.config import Settings
from hybrid_search.credentials import Access, Secret
from hybrid_search.errors import AccessError, DocumentMissingError
from hybrid_search.maintenance.doctor.check import Check
from hybrid_search.maintenance.doctor.server import checks
from tools.servers import start
from tools.servers.security import security

pytestmark = [
    pytest.mark.server,
    pytest.mark.skipif(
        not os.environ.get("HYBRID_SEARCH_TEST_URLS"),
        reason="HYBRID_SEARCH_TEST_URLS names no server: make test-servers",
    ),
]

SERVER = "elasticsearch-9.5.3"
PAGE = Path(__file__).parents[2] / "docs" / "servers.md"
PASSWORD = "s3cret-of-ours-ü"
CALLS: list[dict[str, Any]] = [
    {
        "id": "a",
        "turns": [{"speaker": "customer", "text": "I would like what I paid back on my card."}],
        "sector": "shop",
    },
    {"id": "b", "text": "The kettle leaks, and nobody picks up the phone.", "sector": "home"},
]


@dataclass(frozen=True, slots=True)
class SecuredServer:
    """The server's URL, the certificate of its authority, and an administrator's connection."""

    url: str
    ca: Path
    admin: Server

    def role(self, name: str, role: dict[str, Any]) -> None:
        """Create or change a role, and a user of the same name who has it.

        All users have the same password.
        """
        self.admin.request("PUT", f"/_security/role/{name}", body=role)
        self.admin.request(
            "PUT", f"/_security/user/{name}", body={"password": PASSWORD, "roles": [name]}
        )

    def access(self, name: str) -> Access:
        return Access(name, Secret(PASSWORD), ca=self.ca)

    def client(self, access: Access | str) -> Client:
        return Client(
            Settings(
                self.url, None, "cpu", self.access(access) if isinstance(access, str) else access
            )
        )

    def key(self, **body: Any) -> str:
        """Return a new API key, encoded."""
        return str(
            self.admin.request("POST", "/_security/api_key", body={"name": "ours", **body})[
                "encoded"
            ]
        )

    def clear(self) -> None:
        """Remove all indexes of this project."""
        index_settings = self.admin.request(
            "GET", "/_all/_settings/index.uuid", params={"expand_wildcards": "all"}
        )
        for name in [index_name for index_name in index_settings if index_name.startswith("calls")]:
            self.admin.request("DELETE", f"/{name}")


@pytest.fixture(scope="module")
def secured_server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[SecuredServer]:
    security_setup = security(SERVER, {"admin": ("admin-of-ours", "superuser")})
    ca = tmp_path_factory.mktemp("ca") / "ca.pem"
    ca.write_bytes(security_setup.ca)
    with start(SERVER, security_setup.settings, security_setup.files) as server:
        admin = connect(Address.parse(server.url), Access("admin", Secret("admin-of-ours"), ca=ca))
        running_server = SecuredServer(server.test_url, ca, admin)
        for name, role in roles().items():
            running_server.role(name, role)
        yield running_server


@pytest.fixture
def empty(secured_server: SecuredServer) -> Iterator[SecuredServer]:
    """The server without an index."""
    secured_server.clear()
    yield secured_server
    secured_server.clear()


@pytest.fixture
def filled_server(secured_server: SecuredServer) -> SecuredServer:
    """The server with an index ``calls`` that the documented user has created."""
    if not secured_server.admin.request("HEAD", "/calls"):
        ingest(secured_server, "calls-ingest")
    return secured_server


def roles() -> dict[str, dict[str, Any]]:
    """Return the roles for Elasticsearch in docs/servers.md."""
    pattern = (
        r"`PUT /_security/role/([a-z-]+)` and `PUT "
        r"/_security/role/([a-z-]+)`:\n\n```json\n(.*)\n(.*)\n```"
    )
    match = re.search(pattern, PAGE.read_text(encoding="utf-8"))
    assert match
    return {match[1]: json.loads(match[3]), match[2]: json.loads(match[4])}


def ingest(server: SecuredServer, user: str) -> None:
    """Do all that writing does: new documents, a rejected one, a new version, a deletion."""
    with server.client(user) as client:
        assert client.ingest([*CALLS, {"id": ""}]).failed == 1
        assert (
            client.ingest(
                [
                    {
                        **CALLS[0],
                        "turns": [{"speaker": "agent", "text": "It is on its way back."}],
                        "urgent": True,
                    }
                ]
            ).documents
            == 1
        )
        assert client.ingest(CALLS).documents == 1
        assert client.ingest([{"id": "c", "text": "Wrong number."}]).documents == 1
        assert client.delete(["c"]) == 1


def query(server: SecuredServer, user: str) -> None:
    """Do all that a query does."""
    with server.client(user) as client:
        result = client.query(
            "refund",
            where={"sector": "shop"},
            highlight=True,
            facets=["sector"],
            facets_over="matches",
            explain=True,
        )
        assert [hit.id for hit in result] == ["a"]
        assert client.describe().documents == 2
        assert client.indexes() == ["calls"]


def drop_privilege(role: dict[str, Any], privilege: str) -> dict[str, Any]:
    """Return `role` without one privilege."""
    less: dict[str, Any] = json.loads(json.dumps(role))
    less["cluster"] = [name for name in role.get("cluster", []) if name != privilege]
    less["indices"][0]["privileges"] = [
        name for name in role["indices"][0]["privileges"] if name != privilege
    ]
    assert less != role
    return less


INGEST, QUERY = roles()["calls-ingest"], roles()["calls-query"]
LATER = {"create_index", "indices:admin/aliases", "cluster:monitor/main"}
"""Privileges needed to create an index, and not afterwards."""


def test_with_the_privileges_of_the_page_an_index_is_made_filled_and_queried(
    empty: SecuredServer,
) -> None:
    ingest(empty, "calls-ingest")
    query(empty, "calls-query")


@pytest.mark.parametrize("privilege", [*INGEST["cluster"], *INGEST["indices"][0]["privileges"]])
def test_without_any_one_of_them_a_new_index_is_not_filled(
    empty: SecuredServer, privilege: str
) -> None:
    empty.role("less", drop_privilege(INGEST, privilege))
    with pytest.raises(
        AccessError,
        match=r"does not let user 'less' do .* \(403\): security_exception: action "
        r"\[.*The documentation lists the privileges needed, under Servers",
    ):
        ingest(empty, "less")


def test_an_index_that_is_there_is_filled_with_less(filled_server: SecuredServer) -> None:
    role = INGEST
    for privilege in LATER:
        role = drop_privilege(role, privilege)
    filled_server.role("updater", role)
    with filled_server.client("updater") as client:
        assert client.ingest([{**CALLS[1], "sector": "garden"}]).documents == 1
        assert client.ingest([CALLS[1]]).documents == 1


def test_a_version_that_is_kept_needs_no_more_and_one_that_is_removed_a_privilege_of_its_own(
    empty: SecuredServer,
) -> None:
    with empty.client("calls-ingest") as client:
        client.setup()
        client.ingest(CALLS)
        assert client.reindex(keep=True).documents == 2
        with pytest.raises(AccessError, match=r"indices:admin/delete"):
            client.drop("calls")
    more = json.loads(json.dumps(INGEST))
    more["indices"][0]["privileges"].append("delete_index")
    empty.role("removing", more)
    with empty.client("removing") as client:
        assert client.reindex().documents == 2
        client.drop("calls")
        assert client.indexes() == []


@pytest.mark.parametrize("privilege", QUERY["indices"][0]["privileges"])
def test_without_any_one_of_them_nothing_is_found(
    filled_server: SecuredServer, privilege: str
) -> None:
    filled_server.role("less", drop_privilege(QUERY, privilege))
    with pytest.raises(AccessError, match="does not let user 'less' do"):
        query(filled_server, "less")


@pytest.mark.parametrize(
    "attempt",
    [
        lambda client: client.ingest([{"id": "d", "text": "x"}]),
        lambda client: client.ingest([{"id": "d", "text": "x"}], index="others"),
        lambda client: client.delete(["a"]),
        lambda client: client.drop("calls"),
        lambda client: client.query("x", index="others"),
    ],
)
def test_who_may_query_may_do_no_more(filled_server: SecuredServer, attempt: Any) -> None:
    with (
        filled_server.client("calls-query") as client,
        pytest.raises(AccessError, match=r"user 'calls-query' do .* \(403\)"),
    ):
        attempt(client)
    query(filled_server, "calls-query")


def test_a_url_without_an_engine_needs_to_ask(filled_server: SecuredServer) -> None:
    plain = SecuredServer(
        filled_server.url.removeprefix("elasticsearch+"), filled_server.ca, filled_server.admin
    )
    with pytest.raises(AccessError, match=r"do GET / \(403\): .*cluster:monitor/main"):
        query(plain, "calls-query")
    filled_server.role("asking", {**QUERY, "cluster": ["cluster:monitor/main"]})
    query(plain, "asking")


REFUSED = {
    "wrong password": (
        Access("calls-query", Secret("wr0ng")),
        "refused user 'calls-query' (401): security_exception: unable to authenticate user",
    ),
    "unknown user": (Access("nobody", Secret(PASSWORD)), "refused user 'nobody' (401)"),
    "wrong key": (Access(api_key=Secret("aWQ6a2V5")), "refused the API key (401)"),
    "no key": (Access(api_key=Secret("n0nsense")), "refused the API key (401)"),
    "wrong token": (Access(token=Secret("AAEAn0nsense")), "refused the token (401)"),
    "no login": (
        Access(),
        "refused a request without login (401): security_exception: missing authentication "
        "credentials",
    ),
}


@pytest.mark.parametrize("case", REFUSED)
def test_a_login_that_is_none_is_refused_in_words(filled_server: SecuredServer, case: str) -> None:
    access, message = REFUSED[case]
    trusted = Access(
        access.username, access.password, access.api_key, access.token, ca=filled_server.ca
    )
    with filled_server.client(trusted) as client, pytest.raises(AccessError) as caught:
        client.query("refund")
    assert message in str(caught.value)
    assert "Check HYBRID_SEARCH_" in str(caught.value)
    assert not any(
        secret in str(caught.value) for secret in (PASSWORD, "wr0ng", "n0nsense", "aWQ6a2V5")
    )


def test_a_key_opens_until_it_is_taken_back(filled_server: SecuredServer) -> None:
    key = filled_server.key(role_descriptors={"query": QUERY})
    with filled_server.client(Access(api_key=Secret(key), ca=filled_server.ca)) as client:
        assert client.query("refund").total == 2
        filled_server.admin.request("DELETE", "/_security/api_key", body={"name": "ours"})
        with pytest.raises(AccessError, match=r"refused the API key \(401\): security_exception: "):
            client.query("refund")


def test_a_key_opens_until_it_expires(filled_server: SecuredServer) -> None:
    """The server says only that it is not valid; our message says that it may have expired."""
    key = filled_server.key(role_descriptors={"query": QUERY}, expiration="3s")
    late = time.monotonic() + 3.5
    with filled_server.client(Access(api_key=Secret(key), ca=filled_server.ca)) as client:
        assert client.query("refund").total == 2
        time.sleep(late - time.monotonic())
        with pytest.raises(
            AccessError, match=r"\(401\): .* and whether the key has expired"
        ) as caught:
            client.query("refund")
    assert key not in str(caught.value)


def test_a_bearer_token_is_one_of_a_service_account(filled_server: SecuredServer) -> None:
    credential = filled_server.admin.request(
        "POST", "/_security/service/elastic/fleet-server/credential/token/ours"
    )
    server = connect(
        Address.parse(filled_server.url),
        Access(token=Secret(credential["token"]["value"]), ca=filled_server.ca),
    )
    assert server.request("GET", "/_security/_authenticate")["username"] == "elastic/fleet-server"


def test_its_certificate_is_checked(filled_server: SecuredServer) -> None:
    with (
        filled_server.client(Access("calls-query", Secret(PASSWORD))) as client,
        pytest.raises(AccessError, match=r"is not trusted: .* HYBRID_SEARCH_CA"),
    ):
        client.query("refund")
    with filled_server.client(Access("calls-query", Secret(PASSWORD), verify=False)) as client:
        assert client.query("refund").total == 2


def environment(server: SecuredServer, user: str, password: str = PASSWORD) -> dict[str, str]:
    """Return the environment of a user of the command line."""
    ours = {"URL": server.url, "USERNAME": user, "PASSWORD": password, "CA": str(server.ca)}
    return {
        **os.environ,
        "PYTHONIOENCODING": "utf-8",
        **{f"HYBRID_SEARCH_{name}": value for name, value in ours.items()},
    }


def run_cli(
    server: SecuredServer, *arguments: str, user: str, password: str = PASSWORD
) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-m", "hybrid_search", *arguments]
    return subprocess.run(
        command,
        env=environment(server, user, password),
        capture_output=True,
        encoding="utf-8",
        check=False,
    )


def test_the_command_line_logs_in_by_the_environment_and_shows_no_secret(
    filled_server: SecuredServer,
) -> None:
    finished = run_cli(filled_server, "query", "refund", "--json", user="calls-query")
    assert json.loads(finished.stdout)["total"] == 2
    password = "wr0ng-of-ours"
    wrong = run_cli(filled_server, "query", "refund", user="calls-query", password=password)
    assert wrong.returncode == 2
    assert re.fullmatch(
        r"error: elasticsearch\+https://\S+ refused user 'calls-query' \(401\): [^\n]+\n",
        wrong.stderr,
    )
    assert not any(
        secret in text
        for text in (finished.stdout, finished.stderr, wrong.stdout, wrong.stderr)
        for secret in (PASSWORD, "wr0ng-of-ours")
    )


@pytest.mark.skipif(not Path("/proc/self/cmdline").exists(), reason="there is no /proc here")
def test_a_worker_that_runs_shows_no_secret_in_the_list_of_processes(
    filled_server: SecuredServer,
) -> None:
    command = [sys.executable, "-m", "hybrid_search.ingest", "--index", "calls", "-"]
    pipe = subprocess.PIPE
    with subprocess.Popen(
        command,
        env=environment(filled_server, "calls-ingest"),
        stdin=pipe,
        stdout=pipe,
        stderr=pipe,
    ) as worker:
        assert worker.stdin
        worker.stdin.write(json.dumps(CALLS[0]).encode() + b"\n")
        worker.stdin.flush()
        command_line = b""
        while (
            b"hybrid_search.ingest" not in command_line and worker.poll() is None
        ):  # empty until the new process has become the program
            command_line = Path(f"/proc/{worker.pid}/cmdline").read_bytes()
        output, error = worker.communicate()
    assert worker.returncode == 0
    assert b"hybrid_search.ingest" in command_line
    assert not [text for text in (command_line, output, error) if PASSWORD.encode() in text]


def run_doctor(server: SecuredServer, access: Access | str) -> dict[str, Check]:
    """Return what ``doctor`` finds for a user."""
    resolved_access = server.access(access) if isinstance(access, str) else access
    return {
        check.name: check
        for check in checks(Settings(server.url, None, "cpu", resolved_access), "calls")
    }


def test_doctor_says_what_a_login_may_do(filled_server: SecuredServer) -> None:
    filled_server.role("less", drop_privilege(QUERY, "view_index_metadata"))
    may = {
        name: run_doctor(filled_server, name)["privileges"]
        for name in ("calls-ingest", "calls-query", "less")
    }
    assert may["calls-ingest"].state == "ok"
    assert (
        may["calls-ingest"].found == "user 'calls-ingest' may search, ingest into and make 'calls'"
    )
    assert may["calls-query"].state == "warning"
    assert (
        "may not ingest into (write, maintenance) "
        "or make (create_index, indices:admin/aliases, cluster:monitor/main)"
        in may["calls-query"].found
    )
    assert may["less"].state == "problem"
    assert "may not search (view_index_metadata) or" in may["less"].found
    assert "under Servers" in may["less"].remedy


def test_doctor_goes_on_where_a_login_is_not_shown_something(filled_server: SecuredServer) -> None:
    checks_by_name = run_doctor(filled_server, "calls-query")
    assert {name: check.state for name, check in checks_by_name.items()} == dict.fromkeys(
        ["version", "health", "privileges"], "warning"
    ) | {"index": "ok"}
    assert "this login may not see it: " in checks_by_name["health"].found
    assert "[cluster:monitor/health]" in checks_by_name["health"].found
    assert {
        check.state
        for check in run_doctor(
            filled_server, Access("admin", Secret("admin-of-ours"), ca=filled_server.ca)
        ).values()
    } == {"ok"}


def test_doctor_asks_no_more_with_a_login_that_is_refused(filled_server: SecuredServer) -> None:
    (check,) = run_doctor(
        filled_server, Access("calls-query", Secret("wr0ng"), ca=filled_server.ca)
    ).values()
    assert (check.name, check.state) == ("login", "problem")
    assert "refused user 'calls-query' (401)" in check.found
    assert "wr0ng" not in str(check)


def test_a_role_that_sees_a_part_of_an_attached_index_gets_no_word_of_the_rest(
    secured_server: SecuredServer,
) -> None:
    """Document-level security is part of the trial licence, which the server grants itself."""
    admin = secured_server.admin
    admin.request("POST", "/_license/start_trial", params={"acknowledge": "true"})
    properties = {"transcript": {"type": "text"}, "sector": {"type": "keyword"}}
    made = {"settings": {"number_of_replicas": 0}, "mappings": {"properties": properties}}
    admin.request("PUT", "/raw-calls", body=made)
    texts = {
        "seen": ("bank", "The card was charged twice, please return one of the payments."),
        "secret": ("clinic", "Doctor Quillfeather will call about the biopsy on Monday."),
    }
    for id_, (sector, text) in texts.items():
        source = {"transcript": text, "sector": sector}
        admin.request("PUT", f"/raw-calls/_doc/{id_}", body=source, params={"refresh": "true"})
    of_admin = Access("admin", Secret("admin-of-ours"), ca=secured_server.ca)
    with secured_server.client(of_admin) as client:
        assert client.attach("raw-calls", "transcript").documents == 2
        assert client.query("biopsy", index="raw-calls").hits[0].id == "secret"
    privileges = ["read", "view_index_metadata"]
    part = {"names": ["raw-calls"], "query": {"term": {"sector": "bank"}}}
    spans = {"names": ["raw-calls.spans*"]}  # the alias alone is not enough
    indices = [{**names, "privileges": privileges} for names in (part, spans)]
    secured_server.role("part", {"indices": indices})
    with secured_server.client("part") as client:
        for alpha in (0, 0.5, 1):
            result = client.query(
                texts["secret"][1], index="raw-calls", alpha=alpha, highlight=True
            )
            assert [hit.id for hit in result] == ["seen"] * (alpha > 0 or len(result))
            told = json.dumps(result.to_dict(texts=True)["hits"])
            assert not [word for word in ("Quillfeather", "biopsy", "clinic") if word in told]
        with pytest.raises(DocumentMissingError):
            client.open_document("secret", index="raw-calls")
        topic = {"name": "biopsy", "phrases": [texts["secret"][1]], "threshold": 0.1}
        assert {match.id for match in client.mine([topic], index="raw-calls")} <= {"seen"}
    # who may not read the index itself gets nothing of it by its spans
    secured_server.role("spans", {"indices": [{**spans, "privileges": privileges}]})
    for name in ("raw-calls", "raw-calls.spans"):
        with secured_server.client("spans") as client, pytest.raises(AccessError):
            client.query("biopsy", index=name)
