"""Listening: where events go, and what they are signed with."""

import pytest

from billfold.cli.context import CliError
from billfold.events.cli import check_kinds, check_secret, is_customer_api, parse_url
from billfold.events.kinds import CUSTOMER_KINDS


@pytest.mark.parametrize(
    ("text", "url"),
    [
        ("4242", "http://localhost:4242"),
        (":4242/hooks", "http://localhost:4242/hooks"),
        ("4242/hooks", "http://localhost:4242/hooks"),
        ("localhost:4242/hooks", "http://localhost:4242/hooks"),
        ("https://127.0.0.1:4242/", "https://127.0.0.1:4242/"),
    ],
)
def test_an_address_is_what_a_person_means(text, url):
    assert parse_url(text) == url


@pytest.mark.parametrize("text", ["ftp://localhost", "http://", ""])
def test_what_is_no_address_is_refused(text):
    with pytest.raises(CliError):
        parse_url(text)


def test_mistakes_are_told_with_a_next_step():
    with pytest.raises(CliError) as refused:
        check_kinds(["trades.maturty"], CUSTOMER_KINDS)
    assert "trades.maturity" in refused.value.next_step
    with pytest.raises(CliError):
        is_customer_api("house")
    with pytest.raises(CliError):
        check_secret("whsec_***")
    assert [is_customer_api(name) for name in ("partner", "customer")] == [False, True]
