"""The address of a subscription, when it is given."""

from dataclasses import replace
from ipaddress import ip_network

import pytest

from billfold.events.webhooks.http_client import check_url
from billfold.platform.errors import InvalidInput
from billfold.platform.settings.settings import Settings

LOCAL = replace(Settings(), webhook_allowed_networks=(ip_network("127.0.0.0/8"),))


def resolving(*addresses):
    async def resolve(_host, _port):
        return addresses

    return resolve


async def refused(url, settings=LOCAL, *addresses):
    with pytest.raises(InvalidInput) as found:
        await check_url(url, settings, resolve=resolving(*addresses))
    return [error.loc for error in found.value.errors] == [("body", "url")]


async def test_a_public_address_is_accepted():
    await check_url("https://a.example/hook", Settings(), resolve=resolving("8.8.8.8"))


async def test_a_name_that_has_no_address_yet_is_accepted_in_the_usual_form_only():
    await check_url("https://a.example/hook", Settings(), resolve=resolving())
    assert await refused("http://a.example/hook")
    assert await refused("https://a.example:9000/hook")


async def test_an_address_inside_is_refused():
    assert await refused("https://a.example/hook", LOCAL, "8.8.8.8", "10.0.0.1")
    for url in ("https://127.1/", "https://[::1]/", "https://169.254.169.254/latest/meta-data"):
        with pytest.raises(InvalidInput):
            await check_url(url, LOCAL)


async def test_loopback_is_accepted_where_it_is_allowed_and_nowhere_else():
    await check_url("http://127.0.0.1:4242/hook", LOCAL)
    with pytest.raises(InvalidInput):
        await check_url("http://127.0.0.1:4242/hook", Settings())
    with pytest.raises(InvalidInput):
        await check_url("https://127.0.0.1/hook", Settings())
