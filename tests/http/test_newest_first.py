"""Lists while the clock of the bank stands still: the newest row comes first in every list."""

import csv
from io import StringIO
from typing import Any

import pytest
from tests.support import payees
from tests.support.approvals import REQUESTS, on_us

from billfold.accounts.counterparties.store import COUNTERPARTIES
from billfold.accounts.customers.store import CUSTOMERS
from billfold.accounts.transactions import store as transaction_store
from billfold.approvals.store.requests import AUTHORIZATION_REQUESTS, TRANSFER_REQUESTS
from billfold.dual_control.store import PROPOSALS
from billfold.payments.ach.store import ORIGINATIONS, ORIGINATIONS_OF_PARTNER
from billfold.payments.cards.store import CARDS_OF_PARTNER
from billfold.payments.wires import store
from billfold.platform import ids

V1, V2 = "/api/v1/customers/{customer}/", "/api/v2/customers/{customer}/"
ACCOUNT = "/api/v1/service-accounts/{pocket}/"
PAGED = {
    "partner": {
        "customers": ("/api/v1/customers/",),
        "pockets": ("/api/v2/pockets/", V2 + "pockets/"),
        "portals": (V2 + "portals/",),
        "portals of one": ("/api/v2/pockets/{pocket}/portals/",),
        "counterparties": (V2 + "counterparties/",),
        "originations": (V1 + "ach-originating/", ACCOUNT + "ach-originating/"),
        "paid into": ("/api/v1/wires/", "/api/v2/transactions/", V2 + "transactions/"),
    },
    "customer": {
        "portals": ("/api/v2/portals/",),
        "counterparties": ("/api/v2/counterparties/",),
        "paid into": ("/api/v1/wires/", "/api/v2/transactions/"),
        "requests": (REQUESTS,),
    },
}
WHOLE = {
    "partner": {
        "pockets": (V1 + "service-accounts/", "items"),
        "portals of one": (ACCOUNT + "portals/", "portals"),
        "counterparties": (V1 + "counterparties/", "counterparties"),
    },
    "customer": {"pockets": ("/api/v2/pockets/", "items")},
}


async def write_several(partner, *members):
    """Write several of everything at one instant; return their entries in lists, in the order of writing."""
    customer = members[0].team.customer
    pockets = [await partner.pocket(customer, name=f"No. {n}") for n in range(5)]
    for each in pockets:
        await partner.wire(each, 100_00)
    first, account = pockets[0], f"/api/v1/service-accounts/{pockets[0].id}/"
    portals = [(await partner.post(account + "portals/", {"name": f"No. {n}"}))["id"] for n in range(5)]
    counterparties, originations = [], []
    for n in range(5):
        sent = payees.ach(account_number=f"5647772{n:05}")
        payee = (await partner.post(f"/api/v2/customers/{customer}/counterparties/", sent))["id"]
        counterparties.append(payee)
        verified = {"counterparty_id": payee, "status": "APPROVED"}
        await partner.ask("POST", "/api/v1/sandbox/counterparty-verification/", verified, status=202)
        entry = {"counterparty_id": payee, "direction": "CREDIT", "amount_usdc": 1_00}
        originations.append((await partner.post(account + "ach-originating/", entry, status=200))["id"])
    asked = [(each, on_us(first, 1_00, to=pockets[1])) for each in members]
    return {
        "customers": [str(partner.partner.own_customer_id), customer, *[await partner.customer() for _ in range(4)]],
        "pockets": [each.id for each in pockets],
        "paid into": [each.id for each in pockets],
        "portals": [each.portal for each in pockets] + portals,
        "portals of one": [first.portal, *portals],
        "counterparties": counterparties,
        "originations": originations,
        "requests": [(await each.post(REQUESTS, body))["id"] for each, body in asked],
    }


@pytest.mark.parametrize("api", ["partner", "customer"])
async def test_every_list_is_ordered_newest_first(api, world, customer_desk, customer_desks):
    members = [customer_desk, *[await customer_desks(customer_desk.team.customer) for _ in range(4)]]
    written = await write_several(world, *members)
    desk = world if api == "partner" else customer_desk
    places = {"customer": customer_desk.team.customer, "pocket": written["pockets"][0]}
    for kind, paths in PAGED[api].items():
        name = "pocket_id" if kind == "paid into" else "id"
        filters = {"type[]": "WIRE"} if kind == "paid into" else {}
        for path in paths:
            wanted = filters if "transactions" in path else {}
            shown = await desk.pages(path.format(**places), wanted)
            assert [each[name] for each in shown] == written[kind][::-1], path
    for kind, (path, items) in WHOLE[api].items():
        shown = (await desk.get(path.format(**places)))[items]
        assert [each["id"] for each in shown] == written[kind][::-1], path
    if api == "customer":
        first, second = [await desk.get("/api/v2/pockets/", {"limit": 3, "offset": offset}) for offset in (0, 3)]
        assert [each["id"] for each in first["items"] + second["items"]] == written["pockets"][::-1]
        text = (await desk.ask("GET", "/api/v2/transactions.csv", status=200, filters={"type[]": "WIRE"})).text
        assert [row["pocket_id"] for row in csv.DictReader(StringIO(text))] == written["paid into"][::-1]


async def test_a_cursor_of_a_different_list_order_is_refused(world):
    for _ in range(2):
        await world.customer()
    of = {"filters": (world.partner.partner_id, None, None), "descending": True}
    place = ("2025-06-02T13:00:00+00:00", str(world.partner.own_customer_id))
    pager = world.bank.pager
    earlier = pager.seal("customers", of, "next", place=place)
    await world.invalid("GET", "/api/v1/customers/", loc="query.cursor", filters={"cursor": earlier})
    now = pager.seal("customers", of | {"order": CUSTOMERS.order}, "next", place=(place[0], 1))
    await world.get("/api/v1/customers/", {"cursor": now})


@pytest.mark.one_server
async def test_every_list_order_has_an_index(conn):
    await conn.execute("SET enable_seqscan = off; SET plan_cache_mode = force_generic_plan")
    # Those of operators cost the same while a table is empty.
    await conn.execute("DROP INDEX customer_of_bank, wire_of_bank, ach_entry_of_bank, card_of_bank")
    listed: Any
    for listed, index in [
        (CUSTOMERS, "customer_partner"),
        (COUNTERPARTIES, "counterparty_list"),
        (ORIGINATIONS, "ach_entry_list"),
        (ORIGINATIONS_OF_PARTNER, "ach_entry_partner"),
        (AUTHORIZATION_REQUESTS.listed, "authorization_request_list"),
        (TRANSFER_REQUESTS.listed, "transfer_request_list"),
        (transaction_store._OF_PARTNER[False, False], "transaction_partner"),
        (PROPOSALS, "freeze_proposal_list"),
        (CARDS_OF_PARTNER, "card_partner"),
        (store.LISTS["customer_id"], "wire_customer"),
        (store.LISTS["partner_id"], "wire_partner"),
    ]:
        statement = await conn.prepare(listed.statements[True])
        filters = [None] * (len(statement.get_parameters()) - 1)
        plan = str(await statement.explain(ids.new(), *filters))
        assert index in plan
        assert "Sort" not in plan
