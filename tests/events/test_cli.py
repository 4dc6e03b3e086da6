"""Listening: where events go, and what they are signed with."""

import pytest

from billfold.cli.context import CannotGoOn
from billfold.events.cli import address, api_named, check_kinds, check_secret
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
    assert address(text) == url


@pytest.mark.parametrize("text", ["ftp://localhost", "http://", ""])
def test_what_is_no_address_is_refused(text):
    with pytest.raises(CannotGoOn):
        address(text)


def test_mistakes_are_told_with_a_next_step():
    with pytest.raises(CannotGoOn) as refused:
        check_kinds(["trades.maturty"], CUSTOMER_KINDS)
    assert "trades.maturity" in refused.value.next_step
    with pytest.raises(CannotGoOn):
        api_named("house")
    with pytest.raises(CannotGoOn):
        check_secret("whsec_***")
    assert [api_named(name) for name in ("partner", "customer")] == [False, True]
