"""The page Liquidity: the reserve by hour, and a wire that waits is released by two operators."""

import re
from dataclasses import replace

from tests.support.fedwire import Fedwire, link, send

PROPOSAL = re.compile(r'href="(/bank/freezes/[0-9a-f-]{36})"')


async def test_a_waiting_wire_is_shown_and_released_by_two_operators(bank, operators, new_holder):
    olga, otto = [await operators(role) for role in ("MANAGER", "APPROVER")]
    await olga.go("/bank/liquidity")
    assert (olga.page.status_code, "No floor is set" in olga.text) == (200, True)
    bank.settings = replace(bank.settings, reserve_floor_cents=1_000_000_00)
    holder, fedwire = await new_holder(), Fedwire(bank)
    await holder.deposit(10_000_00)
    holder.counterparty_id = await link(bank, holder.customer_id)
    wire_id = (await send(holder, 5_000_00))["wire_id"]
    await fedwire.room.sender.send(bank)
    await olga.go("/bank/liquidity")
    assert re.search(r"A holder to Beta LLC.*due since.*\$5,000.00", olga.text)
    form = {"csrf": olga.csrf, "wire_id": wire_id}
    assert (await olga.post("/bank/liquidity", {**form, "reason": ""})).status_code == 422
    assert (await olga.post("/bank/liquidity", {**form, "reason": "Line drawn"})).status_code == 303
    await otto.go("/bank/freezes")
    path = PROPOSAL.findall(otto.page.text)[0]
    assert (await otto.post(path, {"csrf": otto.csrf, "decision": "confirm"})).status_code == 303
    await fedwire.room.sender.send(bank)
    assert (await fedwire.wire(holder, wire_id)).status == "PROCESSING"
