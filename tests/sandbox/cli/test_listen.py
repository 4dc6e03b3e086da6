"""`billfold listen`: where events are forwarded, and how they are signed."""

import pytest

from billfold.cli.context import CliError
from billfold.events.kinds import CUSTOMER_KINDS
from billfold.sandbox.cli.listen import check_kinds, check_secret, parse_url


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
def test_a_port_or_host_is_completed_to_a_url(text, url):
    assert parse_url(text) == url


@pytest.mark.parametrize("text", ["ftp://localhost", "http://", ""])
def test_an_invalid_listen_url_is_rejected(text):
    with pytest.raises(CliError):
        parse_url(text)


def test_listen_errors_have_a_next_step():
    with pytest.raises(CliError) as refused:
        check_kinds(["trades.maturty"], CUSTOMER_KINDS)
    assert "trades.maturity" in refused.value.next_step
    with pytest.raises(CliError):
        check_secret("whsec_***")
