"""References and remittance texts of wires, from the message to the APIs and the statements."""

import re
from datetime import timedelta
from io import BytesIO
from typing import Any
from uuid import UUID

import mt940
import pytest
from bai2 import bai2
from lxml import etree
from ofxtools.Parser import OFXTree
from tests.reports.formats.readers import read_camt
from tests.support import payees
from tests.support.fedwire import changed

from billfold.accounts.transactions.settlement import SettledDocument
from billfold.payments.wires.iso20022.envelope import write_messages
from billfold.platform.dates import ET, et_date
from billfold.reports.entries.reader import StatementRange
from billfold.reports.entries.types import AccountType
from billfold.reports.requests.renderers import WRITERS, read_file

INVOICE = SettledDocument(
    type="CINV", number="INV-2025-881", date="2025-05-30", amount="12.34", currency="EUR", information="Less discount"
)
CREDITOR_REFERENCE = SettledDocument(reference="RF18539007547034")
LINES = "Rent of June", "and of the garage"


@pytest.fixture
async def payee(partner_desks):
    """A Pocket with money, whose partner may send wires."""
    desk = await partner_desks("acme", features=("wires",))
    pocket = await desk.funded(10_000_00)
    portal = await desk.get(f"{pocket.path}portals/{pocket.portal}/")
    pocket.number = portal["account_number"]
    return desk, pocket


async def transactions_of(desk, pocket):
    shown = await desk.get(f"{pocket.path}transactions/")
    return [each for each in shown["items"] if each["type"] == "WIRE"]


async def statement_in(desk, pocket, name):
    """Return today's statement of the bank account in a format."""
    now = await desk.bank.now()
    wanted = StatementRange(UUID(pocket.customer), UUID(pocket.id), AccountType.BANK, et_date(now), et_date(now), now)
    output = BytesIO()
    await WRITERS[name](await read_file(desk.bank, [wanted]), output)
    return output.getvalue()


async def test_invoice_reference_and_uetr_of_a_wire_appear_in_transaction_wire_and_statement(payee, fedwire):
    desk, pocket = payee
    sent = changed(
        await fedwire.payment("references", pocket.number, 12_34),
        end_to_end_id="E2E  1",
        remittance="\n".join(LINES),
        documents=(INVOICE, CREDITOR_REFERENCE),
    )
    await fedwire.drop("references.xml", sent)
    assert fedwire.taken("references.xml") == ["COMPLETED"]

    (shown,) = [each for each in await transactions_of(desk, pocket) if each["amount"]["value"] == 12_34]
    said = shown["remittance_information"]
    assert said["unstructured"] == [*LINES]
    assert said["structured"]["reference"] == "INV-2025-881"
    assert said["structured"]["end_to_end_identification"] == "E2E  1"
    assert [each.get("number") for each in said["structured"]["documents"]] == ["INV-2025-881", None]
    wire = await desk.get(f"/api/v1/wires/{shown['wire_id']}/")
    assert wire["remittance_information"] == said
    for each in (shown, wire):
        assert (each["end_to_end_identification"], each["uetr"]) == ("E2E  1", sent.message.uetr)
        assert (each["imad"], each["omad"]) == (sent.message.message_id, sent.header.business_id)

    written = await statement_in(desk, pocket, "CAMT053")
    list(read_camt(written))
    details: Any
    (details,) = [each for each in etree.fromstring(written).iter("{*}TxDtls") if each.find("{*}RmtInf") is not None]
    names = {etree.QName(each).localname: each.text for each in details.find("{*}Refs")}
    assert names["EndToEndId"] == "E2E 1"
    assert (names["UETR"], names["ClrSysRef"]) == (sent.message.uetr, sent.message.message_id)
    assert [each.text for each in details.iterfind("{*}RmtInf/{*}Ustrd")] == [*LINES]
    assert details.findtext(".//{*}RfrdDocInf/{*}Nb") == "INV-2025-881"
    assert details.findtext(".//{*}CdtrRefInf/{*}Ref") == CREDITOR_REFERENCE.reference
    amount = details.find(".//{*}RmtdAmt")
    assert (amount.text, amount.get("Ccy")) == ("12.34", "EUR")


@pytest.mark.parametrize("name", ["CAMT053", "BAI2", "MT940", "OFX"])
async def test_remittance_information_appears_once_in_a_statement(payee, fedwire, name):
    desk, pocket = payee
    sent = changed(
        await fedwire.payment("once", pocket.number, 12_34), remittance="\n".join(LINES), documents=(INVOICE,)
    )
    await fedwire.drop("once.xml", sent)
    text = re.sub(r"\s*\r?\n(88,)?", " ", (await statement_in(desk, pocket, name)).decode())

    assert [text.count(each) for each in (*LINES, "INV-2025-881")] == [1, 1, 1]


async def test_two_wires_of_one_sender_and_day_have_distinct_references_in_mt940_and_bai2(payee, fedwire):
    desk, pocket = payee
    first, second = [await fedwire.payment(name, pocket.number, cents) for name, cents in (("1", 5_00), ("2", 6_00))]
    day_and_source = first.message.message_id[:16]
    first = changed(first, message_id=f"{day_and_source}000001", end_to_end_id="SAME", instruction_id="SAME")
    second = changed(second, message_id=f"{day_and_source}000002", end_to_end_id="SAME", instruction_id="SAME")
    await fedwire.drop("two.xml", write_messages([first, second], "incoming"))
    assert fedwire.taken("two.xml") == ["COMPLETED"] * 2

    message = (await statement_in(desk, pocket, "MT940")).decode()
    own = [each.data["customer_reference"] for each in mt940.parse(message.removesuffix("-\r\n"))]
    wires = [each for each in own if each.startswith(day_and_source[6:])]
    assert wires[-2:] == [first.message.message_id[-16:], second.message.message_id[-16:]]
    (group,) = bai2.parse_from_string((await statement_in(desk, pocket, "BAI2")).decode()).children
    numbers = [each.customer_reference for each in group.children[0].children]
    assert {first.message.message_id, second.message.message_id} <= {*numbers}


async def test_an_outgoing_wire_shows_its_imad_when_sent_and_its_return_shows_its_references(payee, fedwire):
    desk, pocket = payee
    linked = await desk.post(f"/api/v2/customers/{pocket.customer}/counterparties/", payees.wire())
    verified = {"counterparty_id": linked["id"], "status": "APPROVED"}
    await desk.ask("POST", "/api/v1/sandbox/counterparty-verification/", verified, status=202)
    body = {"counterparty_id": linked["id"], "amount_usdc": 7_00, "description": "Rent"}
    path = f"/api/v1/service-accounts/{pocket.id}/wires/"
    made = await desk.post(path, body | {"end_to_end_identification": "OUR-1"})
    assert made["remittance_information"] == {
        "unstructured": ["Rent"],
        "structured": {"end_to_end_identification": "OUR-1"},
    }

    def shown_of(each):
        return each["end_to_end_identification"], each["uetr"], each["imad"]

    booked = (await transactions_of(desk, pocket))[0]
    assert shown_of(booked) == ("OUR-1", made["uetr"], None)
    await fedwire.room.sender.send(desk.bank)
    sent = await desk.get(f"/api/v1/wires/{made['id']}/")
    assert shown_of((await transactions_of(desk, pocket))[0]) == ("OUR-1", made["uetr"], sent["imad"])
    await desk.later(seconds=1)
    assert sent["imad"] in (await statement_in(desk, pocket, "CAMT053")).decode()

    await fedwire.drop("settled.xml", await fedwire.status(made["id"]))
    await fedwire.drop("back.xml", await fedwire.payment_return(made["id"]))
    back = (await transactions_of(desk, pocket))[0]
    assert (back["wire_type"], back["end_to_end_identification"], back["uetr"]) == ("RETURN", "OUR-1", made["uetr"])


async def test_an_ofx_statement_dates_the_last_half_hour_of_a_year_in_that_year(payee, fedwire):
    desk, pocket = payee
    await desk.until("2025-12-31T23:30:00-05:00")
    await fedwire.drop("late.xml", await fedwire.payment("late", pocket.number, 5_00))
    written = await statement_in(desk, pocket, "OFX")

    assert b"<DTPOSTED>20251231233000.000[-5:EST]" in written
    tree = OFXTree()
    tree.parse(BytesIO(written))
    posted = [each.dtposted.astimezone(ET) for each in tree.convert().statements[0].transactions]
    assert posted
    assert {(each.year, each.hour, each.minute // 30) for each in posted} == {(2025, 23, 1)}
    assert max(posted) - min(posted) < timedelta(minutes=1)
