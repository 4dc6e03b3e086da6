"""Operators and partner staff open the console of their own organization; the bank is no customer company."""

from uuid import uuid4

import pytest
from tests.support.oauth import program
from tests.support.world import MemberDesk, join, token_for

from billfold.identity.members.store import add_member
from billfold.identity.partners.store import find_partner
from billfold.ledger.scheduler import bank_customer_id
from billfold.oauth import consent
from billfold.platform.clock import wall_now
from billfold.platform.errors import Refused


async def test_members_can_open_only_the_console_of_their_own_organization(
    bank, operators, partner_people, console, customer_desk
):
    operator, person = await operators("VIEWER"), await partner_people("acme", role="VIEWER")
    company = await console(customer_desk, role="VIEWER")
    for browser in (operator, person, company):
        await browser.go("/")
        assert (await browser.follow()).url.path == browser.home
        assert (await browser.go("/partners/nobody")).status_code == 404
        for other in (operator, person, company):
            assert (await browser.go(other.home)).status_code == (200 if other is browser else 404), other.home
    partner = await find_partner(bank.pool, "acme")
    assert partner is not None
    await add_member(bank.pool, partner.own_customer_id, operator.user_id, role="VIEWER", now=wall_now())
    await operator.go("/bank")
    assert ">Team<" in operator.page.text
    assert 'href="/partners/acme"' in operator.page.text


@pytest.mark.usefixtures("customer_desk")
@pytest.mark.parametrize("organization", ["bank", "partner"])
async def test_the_bank_and_partners_have_no_customer_pages(
    bank, organization, operators, partner_people, customer_app
):
    partner = await find_partner(bank.pool, "acme")
    assert partner is not None
    if organization == "bank":
        own, person = bank_customer_id(bank.seed), await operators("ADMIN")
    else:
        own, person = partner.own_customer_id, await partner_people("acme", role="ADMIN")
    assert "/companies/" not in (await person.go("/account")).text
    for path in ("", "/pockets", "/move-money", "/developer", "/applications", "/applications/new", "/agreements"):
        assert (await person.go(f"/companies/{own}{path}")).status_code == 404, path
    assert (await person.go(f"/team/{own}")).status_code == 200
    team = await join(bank, str(own))
    desk = MemberDesk(bank, customer_app, team, token=await token_for(bank, team))
    for path in ("/api/v2/pockets/", "/api/v1/user/memberships/"):
        assert (await desk.send("GET", path)).json()["code"] == "forbidden", path
    await desk.close()
    async with bank.pool.acquire() as conn:
        for owned in ({"customer_id": own, "grant_types": ("client_credentials",)}, {"owner_id": own}):
            with pytest.raises(Refused, match="for companies only"):
                await program(conn, f"own-{uuid4().hex}", keys=(), **owned)
        with pytest.raises(Refused, match="for companies only"):
            await consent._require_allowed(  # what every way to a grant goes through
                conn,
                {"owner_id": None, "max_age": None},
                user_id=person.user_id,
                customer_id=own,
                authenticated_at=wall_now(),
                now=wall_now(),
            )
