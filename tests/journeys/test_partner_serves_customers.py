"""A partner funds a customer, who pays a supplier once under one transfer id."""

from tests.support.approvals import counterparty

from billfold.platform import ids

ON_US = "/api/v1/transfers/on-us/"


async def test_a_funded_customer_pays_a_supplier_once_under_its_own_transfer_id(partner_desk):
    own = await partner_desk.facilitation(50_000_00)
    payer, payee = await partner_desk.pocket(), await partner_desk.pocket(weeks=13)
    await partner_desk.transfer(own, payer, 20_000_00, type="PARTNER_CUSTOMER_FUNDING", source="operating account")
    body = {
        "type": "PEER_TO_PEER",
        "from_account": {"id": payer.id},
        "counterparty_id": await counterparty(partner_desk, payer.customer, payee),
        "amount_usdc": 12_345_50,
        "transfer_id": str(ids.new()),
    }
    made = await partner_desk.post(ON_US, body)
    assert (made["id"], made["status"]) == (body["transfer_id"], "COMPLETED")
    before = await partner_desk.counts()
    assert await partner_desk.post(ON_US, body) == made
    await partner_desk.refused("POST", ON_US, body | {"amount_usdc": 20_050}, status=409, code="duplicate-id")
    assert await partner_desk.counts() == before

    back = {"type": "PARTNER_CUSTOMER_DEFUNDING", "target": "payouts"}
    await partner_desk.transfer(payer, own, None, **back)
    assert await partner_desk.value(payer) == 0
    (received,) = (await partner_desk.get(f"{payee.path}transactions/"))["items"]
    assert (received["amount"]["value"], received["status"]) == (12_345_50, "SETTLED")
