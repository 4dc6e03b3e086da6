"""Features of one customer that extend or restrict those of its partner."""

from uuid import UUID

from tests.accounts.customers.test_freezing import CLOSING, PATH
from tests.support.world import UNKNOWN

from billfold.accounts.customers import cli


async def test_a_customer_feature_setting_overrides_that_of_its_partner(partner_desks):
    able = await partner_desks("initech", features=("ccd", "customer_closure", "wires"))
    unable = await partner_desks("acme")
    bank = able.bank
    without, with_it = [await able.pocket() for _ in range(2)]
    alone, none = [await unable.pocket() for _ in range(2)]
    for feature in ("ccd", "customer-closure", "wires"):
        await cli.disable(bank, UUID(without.customer), feature)
        await cli.enable(bank, UUID(alone.customer), feature)
    payment = {"counterparty_id": UNKNOWN, "amount_usdc": 1_00}
    entry = payment | {"direction": "CREDIT", "sec_code": "CCD", "company_entry_description": "RENT"}
    for desk, pocket, may in (
        (able, without, False),
        (able, with_it, True),
        (unable, alone, True),
        (unable, none, False),
    ):
        account, closed = f"/api/v1/service-accounts/{pocket.id}/", f"{PATH}{pocket.customer}/"
        statuses = [
            (await desk.send("POST", f"{account}wires/", payment)).status_code,
            (await desk.send("POST", f"{account}ach-originating/", entry)).status_code,
            (await desk.send("PATCH", closed, CLOSING)).status_code,
        ]
        assert statuses == ([404, 404, 200] if may else [403, 403, 403])
