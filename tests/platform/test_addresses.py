"""Addresses that rate limits count as one caller."""

import pytest

from billfold.platform.addresses import network_of, own_url_host


@pytest.mark.parametrize(
    ("address", "network"),
    [
        ("192.0.2.1", "192.0.2.1"),
        ("::ffff:192.0.2.1", "192.0.2.1"),
        ("192.0.2.1:4711", "192.0.2.1"),
        ("2001:db8:0:1::1", "2001:db8:0:1::/64"),
        ("2001:DB8:0:1:ffff::", "2001:db8:0:1::/64"),
        ("[2001:db8:0:1::2]:4711", "2001:db8:0:1::/64"),
        ("2001:db8:0:2::1", "2001:db8:0:2::/64"),
        ("fe80::1%eth0", "fe80::/64"),
        ("unknown", "unknown"),
        ("", ""),
    ],
)
def test_an_ipv4_address_and_an_ipv6_site_each_count_as_one_caller(address, network):
    assert network_of(address) == network


@pytest.mark.parametrize(
    ("listening_on", "host"),
    [("127.0.0.1", "127.0.0.1"), ("0.0.0.0", "127.0.0.1"), ("::", "[::1]"), ("2001:db8::1", "[2001:db8::1]")],
)
def test_a_url_of_a_wildcard_listener_uses_the_local_host_name(listening_on, host):
    assert own_url_host(listening_on) == host
