"""Requests that get money back: reversals of on-us transfers, and disputes of card payments."""

from uuid import UUID

from tests.documents.test_inspection import a_picture
from tests.support.cards import pem, unread_key
from tests.support.whole_bank import EngineCommands

from billfold.documents.rules import DISPUTE_EVIDENCE as EVIDENCE
from billfold.payments.on_us.reversals.commands import RequestReversal

BOX, V1, V2 = "/api/v1/sandbox", "/api/v1", "/api/v2"
ASKED = f"{V1}/reversal-requests/"


async def play_reversals(r, transfer, *, pays=None, **owner):
    """Ask for a transfer back, and cancel; `pays` plays for the partner of its payee."""
    path = f"{V1}/transfers/on-us/{transfer}/reversal-requests/"
    request = {"amount_usdc": 10_000, "reason": "Paid twice"}
    one = (await r.post("create_reversal_request", path, request))["id"]
    await r.get("list_reversal_requests", ASKED, **owner)
    await r.get("get_reversal_request", f"{ASKED}{one}/")
    await r.post("cancel_reversal_request", f"{ASKED}{one}/cancel/", {})
    if pays is not None:
        for verb in ("decline", "accept"):
            one = (await r.post("-", path, request))["id"]
            await pays.post(f"{verb}_reversal_request", f"{ASKED}{one}/{verb}/", {})


async def play_requests_of_both(r, pocket):
    """Ask another customer for money back, and decline what that one asks for."""
    known = EngineCommands(r.desk.bank, "returns")
    own = (UUID(r.desk.team.customer), UUID(pocket))
    other = await known.new_pocket(await known.new_customer("Contoso"))
    await known.receive_money(other, 1_000_00)
    sides = ((own, other), (other, own))
    paid, received = [UUID((await known.transfer(one, two, 500_00))["transfer_id"]) for one, two in sides]
    await play_reversals(r, paid)
    one = known.id_of("request")
    fields = {"reversal_id": one, "transfer_id": received, "amount": 100_00, "references": (received,)}
    await known.submit(RequestReversal, own[0], other.customer, **fields)
    await r.post("decline_reversal_request", f"{ASKED}{one}/decline/", {})


async def play_disputes(r, world, pocket, **owner):
    """Dispute a payment by card, and withdraw; `world` plays for the partner."""
    account = f"{V1}/service-accounts/{pocket}"
    card = (await world.post("-", f"{account}/virtual-cards/", {"public_key": pem(unread_key(4))}))["card_id"]
    paid = await world.post("-", f"{BOX}/card-clearing/", {"card_id": card, "amount_usdc": 4_000})
    body = {"pocket_id": pocket, "transaction_id": paid["transaction_id"], "reason": "NOT_RECEIVED"}
    one = f"{V1}/card-disputes/{(await r.post('create_card_dispute', f'{V1}/card-disputes/', body))['id']}/"
    await r.get("list_card_disputes", f"{V1}/card-disputes/", **owner)
    await r.get("get_card_dispute", one)
    path = (
        f"{V1}/customers/{owner['customer_id']}/documents/{EVIDENCE}/file/" if owner else f"{V1}/documents/{EVIDENCE}/"
    )
    sent = await r.play("-", "POST", path, a_picture("PNG"), headers={"content-type": "image/png"})
    await r.post("add_card_dispute_documents", f"{one}documents/", {"document_ids": [sent["document_id"]]})
    await r.post("withdraw_card_dispute", f"{one}withdraw/", {})
    return body
