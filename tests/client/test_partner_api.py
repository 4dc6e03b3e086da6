"""A program works with the Partner API: it signs, repeats under its key, and renews its token."""

import asyncio
from uuid import UUID

import pytest
from tests.access.partners.test_jwt_login_routes import KEYS, pem_of, private_pem

from billfold.access.partners import credentials
from billfold.client.partner_api import PartnerApi
from billfold.client.request_signature import PartnerAuth
from billfold.client.responses import ApiError
from billfold.platform.clock import wall_now


@pytest.fixture
async def api(bank, customer_world, calling):
    """The Partner API in the name of the partner of the customer_world."""
    key, partner = KEYS["ES256"], customer_world.partner
    kid = await credentials.register_partner_key(
        bank.pool, partner.user_id, algorithm="ES256", public_pem=pem_of(key), now=wall_now()
    )
    url = f"https://{partner.slug}.localhost"
    auth = PartnerAuth(
        url=url,
        username=partner.username,
        shared_secret=partner.secret,
        private_key=private_pem(key).decode(),
        kid=str(kid),
    )
    return PartnerApi(calling(url, auth))


async def test_a_partner_opens_funds_and_reads(api, customer_world):
    customer = UUID(await customer_world.customer())

    def work():
        assert customer in {each.id for each in api.customers()}
        assert api.customer(customer).name == "Northwind"
        made = api.open_pocket(customer, "Reserve", "UST-4W", key=str(customer))
        assert api.open_pocket(customer, "Reserve", "UST-4W", key=str(customer)).id == made.id
        other = api.open_pocket(customer, "Other", "UST-4W")
        (portal,) = api.portals(made.id)
        api.simulate("wire", portal_id=portal.id, amount_usdc=9_000_00, sender_name="Contoso")
        moved = api.transfer(
            type="INTERNAL_REALLOCATION",
            from_account={"id": made.id, "type": "SERVICE_ACCOUNT"},
            to_account={"id": other.id, "type": "SERVICE_ACCOUNT"},
            amount={"type": "REQUESTED_AMOUNT", "amount_usdc": 1_000_00},
        )
        assert moved.status == "COMPLETED"
        assert len(list(api.transactions(limit=1))) == 3
        assert api.earnings().aggregate.contributions.value == 10_000_00
        assert api.pocket_earnings(made.id).contributions.value == 9_000_00
        assert len(list(api.trades(made.id))) >= 2
        assert {each.id for each in api.pockets(customer)} == {made.id, other.id}
        assert len(list(api.pockets())) == 2
        assert list(api.counterparties(customer)) == []
        assert api.strategies().count == 4
        told = api.funding_instructions(made.id, portal.id)
        assert told.portal_id == portal.id
        assert api.pocket(made.id).id == made.id

    await asyncio.to_thread(work)


async def test_an_unknown_token_is_renewed(bank, api):
    assert len(await asyncio.to_thread(lambda: list(api.pockets()))) == 0
    await bank.pool.execute("DELETE FROM partner_token")
    await asyncio.sleep(1.1)
    assert len(await asyncio.to_thread(lambda: list(api.pockets()))) == 0


async def test_a_refusal_is_one_exception_with_its_code(api):
    with pytest.raises(ApiError) as refused:
        await asyncio.to_thread(api.customer, UUID(int=0))
    assert (refused.value.status, refused.value.code) == (404, "not-found")
