"""The URL of a server: its parts, which URLs are refused, and how it is shown."""

from __future__ import annotations

from dataclasses import replace

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from hybrid_search.backends.server.transport.address import Address
from hybrid_search.errors import UsageError

READ = {
    "opensearch+https://host:9243": Address("opensearch", "https", "host", 9243),
    "opensearch+http://host": Address("opensearch", "http", "host", 9200),
    "elasticsearch+https://host": Address("elasticsearch", "https", "host", 9200),
    "https://host": Address(None, "https", "host", 9200),
    "HTTP://Host.Example": Address(None, "http", "host.example", 9200),
    "http://[::1]:9201": Address(None, "http", "::1", 9201),
    "http://[2001:db8::1]/": Address(None, "http", "2001:db8::1", 9200),
    "https://ada@host": Address(None, "https", "host", 9200, "", "ada"),
    "https://ada%40example@host": Address(None, "https", "host", 9200, "", "ada@example"),
    "https://host/behind/gateway/": Address(None, "https", "host", 9200, "/behind/gateway"),
    "http://host?analyzer=standard&shards=2": Address(
        None, "http", "host", 9200, options={"analyzer": "standard", "shards": "2"}
    ),
    "http://host/?analyzer=": Address(None, "http", "host", 9200, options={"analyzer": ""}),
}


@pytest.mark.parametrize("url", READ)
def test_a_url_is_read_into_its_parts(url: str) -> None:
    assert Address.parse(url) == READ[url]


@pytest.mark.parametrize("url", READ)
def test_an_address_is_shown_as_a_url_that_reads_as_the_same(url: str) -> None:
    """Except for the options, which are not part of the address."""
    address = Address.parse(url)
    assert Address.parse(str(address)) == replace(address, options={})
    assert len({address, Address.parse(url)}) == 1


def test_an_address_is_shown_whole() -> None:
    assert (
        str(Address.parse("opensearch+https://ada@[::1]/a?shards=2"))
        == "opensearch+https://ada@[::1]:9200/a"
    )


WRONG = {
    "opensearch://host": "must begin with one of opensearch+https, opensearch+http",
    "opensearch+ftp://host": ", not with 'opensearch+ftp'",
    "host:9200": ", not with 'host'",
    "https://": "needs a host",
    "https://:9200": "needs a host",
    "https:///calls": "needs a host",
    "https://a b:9200": "needs a host",
    "https://host:99999": "a port from 1 to 65535",
    "https://host:s3cret": "a port from 1 to 65535",
    "https://host:0": "is 0: it must be from 1 to 65535",
    "https://[::1": "needs a valid host",
    "https://host#calls": "must not have a '#'",
    "https://host?m=8&m=16": "an option is given twice",
}


@pytest.mark.parametrize("url", WRONG)
def test_what_is_no_url_of_a_server_is_refused_with_an_example(url: str) -> None:
    with pytest.raises(UsageError) as caught:
        Address.parse(url)
    assert WRONG[url] in str(caught.value)
    assert "s3cret" not in str(caught.value)


@settings(deadline=None, max_examples=300)
@given(
    text=st.text(st.characters(blacklist_categories=["Cs"]), max_size=12),
    host=st.sampled_from(["host", "[::1]", ""]),
)
def test_no_message_repeats_what_stands_where_a_password_would(text: str, host: str) -> None:
    """Whatever the text does to the URL: it is no password there, or the refusal omits it."""
    secret = f"s3cret{text}"
    for url in (f"https://ada:{secret}@{host}", f"https://{host}:{secret}"):
        try:
            address = Address.parse(url)
        except UsageError as error:
            assert secret not in str(error)
            assert "s3cret" not in str(error)
        else:
            raise AssertionError(address)


@pytest.mark.parametrize("host", ["localhost", "127.0.0.1", "127.9.9.9", "[::1]", "a.localhost"])
def test_loopback_is_this_machine(host: str) -> None:
    assert Address.parse(f"http://{host}").is_loopback


OTHER_HOSTS = ("10.0.0.1", "0.0.0.0", "[2001:db8::1]", "127.0.0.1.example.com", "example.com")


@pytest.mark.parametrize("host", [*OTHER_HOSTS, "localhost.example.com"])
def test_other_hosts_are_not_this_machine(host: str) -> None:
    assert not Address.parse(f"http://{host}").is_loopback
