"""Incoming Fedwire files: a malformed file is refused, a malformed message only itself."""

import asyncio
import os
import re
from datetime import date, timedelta
from urllib.parse import urlsplit

import asyncpg
import pytest
from msgspec.structs import replace
from tests.support.databases import as_owner
from tests.support.fedwire import changed

from billfold.ledger.scheduler import bank_customer_id
from billfold.payments.clearing.store import EVER, list_cleared
from billfold.payments.clearing.worker import close_bank_days
from billfold.payments.files import retries
from billfold.payments.files import store as file_store
from billfold.payments.wires import cases
from billfold.payments.wires import store as wire_store
from billfold.payments.wires.iso20022.envelope import write_messages
from billfold.payments.wires.iso20022.types import ReturnRequest
from billfold.payments.wires.messages import message_sent
from billfold.platform.errors import Refused
from billfold.verify.runner import verify_bank

needs_cluster = pytest.mark.skipif("BILLFOLD_TEST_CITUS_URL" not in os.environ, reason="no Citus cluster is named")
NAMES = """
SELECT nodename, nodeport, 'directory_' || shardid
  FROM pg_dist_shard JOIN pg_dist_placement USING (shardid) JOIN pg_dist_node USING (groupid)
 WHERE shardid = get_shard_id_for_distribution_column('directory', $1::text)
"""
UNKNOWN = "5f0d2a4e-8f00-4000-8000-0000000000e1"
AGAIN = "20250602SIMFED01999999"


async def the_only_mistake(fedwire, name, *wires):
    """Drop a file that must be refused; return (line, element, reason) of its one mistake."""
    legs = await fedwire.legs()
    await fedwire.drop(name, *wires)
    (mistake,) = fedwire.refused(name)
    assert await fedwire.legs() == legs
    return mistake


def about_another_message(wire, **fields):
    """Return the same message with a reference to another one."""
    original = type(wire.message.original)
    told = {name: getattr(wire.message.original, name) for name in original.__struct_fields__}
    return changed(wire, original=original(**told | fields))


async def test_an_invalid_wire_return_is_refused(fedwire, holder):
    wire_id = await fedwire.settled(holder)
    back = await fedwire.payment_return(wire_id)
    uetr = back.message.original.uetr

    foreign, more = about_another_message(back, message_id="20250602BLFDUS33000099"), changed(back, amount=1_000_01)
    less = changed(back, amount=900_00, original_amount=999_00)
    wrong = [
        (about_another_message(back, uetr=UNKNOWN), "OrgnlUETR", f"no payment {UNKNOWN} was sent"),
        (foreign, "OrgnlUETR", f"no payment {uetr} was sent"),
        (more, "RtrdIntrBkSttlmAmt", "$1,000.01, the payment was $1,000.00"),
        (less, "OrgnlIntrBkSttlmAmt", "$999.00, the payment was $1,000.00"),
        (changed(back, receiver="021000021"), "InstdAgt", "it is for 021000021, not for 061199992"),
    ]
    for nth, (wire, element, reason) in enumerate(wrong):
        assert await the_only_mistake(fedwire, f"{nth}.xml", wire) == (3, element, reason)

    await fedwire.drop("right.xml", back)
    assert fedwire.taken("right.xml") == ["RETURNED"]
    await fedwire.prove()


async def test_a_second_wire_return_is_held_in_the_same_file_and_refused_in_a_later_one(fedwire, holder):
    wire_id = await fedwire.settled(holder)
    back = await fedwire.payment_return(wire_id)
    second = changed(back, message_id=AGAIN)

    await fedwire.drop("one.xml", back, second)
    assert fedwire.taken("one.xml") == ["RETURNED"]
    assert await fedwire.stuck() == [(4, "OrgnlUETR: the payment is returned on line 3 already")]
    mistake = await the_only_mistake(fedwire, "later.xml", second)
    assert mistake == (3, "OrgnlUETR", "the payment is already returned")
    again = write_messages([back], "incoming").replace(b"\n<", b"\n\n<", 1)
    legs = await fedwire.legs()
    await fedwire.drop("other-name-and-layout.xml", again)
    reasons = {reason for _, _, reason in fedwire.refused("other-name-and-layout.xml")}
    assert f"{back.message.message_id} came in the file one.xml already" in reasons
    assert await fedwire.legs() == legs


async def test_a_wire_is_not_rejected_and_returned_or_settled_in_one_file(fedwire, holder):
    wire_id = await fedwire.send_wire(holder)
    rejected = await fedwire.status(wire_id, "AC04")
    settled = changed(await fedwire.status(wire_id), message_id=AGAIN)
    back = await fedwire.payment_return(wire_id)

    await fedwire.drop("one.xml", rejected, back, settled)
    told = "OrgnlUETR: the payment is rejected on line 3 already"
    assert fedwire.taken("one.xml") == ["RJCT", f"REFUSED: {told}"]
    assert await fedwire.stuck() == [(4, told)]
    await fedwire.prove()


async def test_a_wire_is_settled_and_returned_in_one_file_in_any_order(fedwire, holder):
    wire_id = await fedwire.send_wire(holder)
    await fedwire.drop("three.xml", await fedwire.payment_return(wire_id), await fedwire.status(wire_id))
    assert fedwire.taken("three.xml") == ["RETURNED", "ACSC"]
    await fedwire.prove()


async def test_a_wire_returned_before_its_settlement_status_counts_as_settled(fedwire, holder):
    wire_id = await fedwire.send_wire(holder)
    rejected = await fedwire.status(wire_id, "AC04")
    await fedwire.drop("back.xml", await fedwire.payment_return(wire_id))
    assert (await fedwire.wire(holder, wire_id)).status == "COMPLETED"
    mistake = await the_only_mistake(fedwire, "late.xml", rejected)
    assert mistake[1:] == ("TxSts", "RJCT, but the wire is COMPLETED already")
    await fedwire.prove()


async def test_a_wire_return_less_charges_books_the_returned_amount(fedwire, holder):
    wire_id = await fedwire.settled(holder)
    back = await fedwire.payment_return(wire_id, amount=975_00, original_amount=1_000_00, charges=25_00)
    await fedwire.drop("back.xml", back)
    (wire,) = [each for each in await fedwire.wires(holder) if each.direction == "INCOMING"]
    assert (wire.wire_type, wire.amount, wire.original_wire_id) == ("RETURN", 975_00, wire_id)
    assert wire.description == "Account closed, less $25.00 in charges"
    rest = changed(back, message_id=AGAIN, amount=25_00, charges=None)
    mistake = await the_only_mistake(fedwire, "rest.xml", rest)
    assert mistake[2] == "the payment is already returned"
    await fedwire.clock.advance(timedelta(days=4))
    await close_bank_days(fedwire.bank, await fedwire.bank.now())
    assert await list_cleared(fedwire.bank.pool, bank_customer_id(fedwire.bank.seed), EVER) == []
    await fedwire.prove()


async def test_charges_of_every_intermediary_bank_of_a_return_are_added_up(fedwire, holder):
    wire_id = await fedwire.settled(holder)
    back = await fedwire.payment_return(wire_id, amount=975_00, original_amount=1_000_00, charges=10_00)
    message = write_messages([back], "incoming")
    (block,) = re.findall(rb"<[^<>]*ChrgsInf>.*</[^<>]*ChrgsInf>", message, re.DOTALL)
    await fedwire.drop("back.xml", message.replace(block, block + block.replace(b"10.00", b"15.00")))
    (wire,) = [each for each in await fedwire.wires(holder) if each.direction == "INCOMING"]
    assert wire.description == "Account closed, less $25.00 in charges"


async def test_a_partial_wire_return_leaves_the_rest_outstanding(fedwire, holder):
    wire_id = await fedwire.settled(holder)
    part = await fedwire.payment_return(wire_id, amount=400_00, original_amount=1_000_00)
    await fedwire.drop("part.xml", part)
    more = changed(part, message_id="20250602SIMFED01999998", amount=575_01, charges=25_00)
    assert (await the_only_mistake(fedwire, "more.xml", more))[1:] == (
        "RtrdIntrBkSttlmAmt",
        "$575.01 and charges, of the payment $600.00 is outstanding",
    )
    await cases.recall(fedwire.bank, wire_id, "DUPL")
    rest = changed(more, message_id=AGAIN, amount=575_00)
    await fedwire.drop("rest.xml", rest)
    await fedwire.drop("rest again.xml", write_messages([rest], "incoming") + b"\n")
    returned = [each for each in await fedwire.wires(holder) if each.wire_type == "RETURN"]
    assert sorted((each.amount, each.original_wire_id, each.description) for each in returned) == [
        (400_00, wire_id, "Account closed, $600.00 stays claimed"),
        (575_00, wire_id, "Account closed, less $25.00 in charges"),
    ]
    with pytest.raises(Refused, match="wire-already-returned"):
        await cases.recall(fedwire.bank, wire_id, "DUPL")
    await fedwire.prove()


async def test_a_fedwire_file_without_any_valid_message_is_refused_by_line(fedwire, holder):
    account = await fedwire.account_of(holder)
    good = [await fedwire.payment(str(nth), account, 100_00 + nth) for nth in range(3)]
    raw = write_messages(good, "incoming")
    spoiled = {
        "euros": write_messages(good[:1], "incoming").replace(b'Ccy="USD"', b'Ccy="EUR"'),
        "count": raw.replace(b"<NbOfTxs>1<", b"<NbOfTxs>7<"),
        "nothing": b"",
        "an empty file": write_messages([], "incoming"),
        "half": raw[: len(raw) // 2],
        "outgoing": write_messages(good, "outgoing"),
    }
    legs = await fedwire.legs()
    for name, content in spoiled.items():
        await fedwire.drop(f"{name}.xml", content)
        assert fedwire.refused(f"{name}.xml"), name
    assert await fedwire.legs() == legs
    assert fedwire.refused("euros.xml")[0] == (3, "IntrBkSttlmAmt", "currency is EUR, not USD")
    assert [line for line, *_ in fedwire.refused("count.xml")] == [3, 4, 5]
    # The file may come again when it has been mended, under the name that was refused.
    await fedwire.drop("half.xml", raw)
    assert fedwire.taken("half.xml") == ["COMPLETED"] * 3
    refused = await file_store.list_files(fedwire.bank.pool, rail="WIRE", state="REFUSED")
    assert len(refused) == len(spoiled)
    await fedwire.prove()


@pytest.mark.parametrize(
    ("right", "wrong", "element"),
    [
        (b'Ccy="USD">100.01', b'Ccy="EUR">100.01', "IntrBkSttlmAmt"),
        (b">100.01<", b">100.011<", "IntrBkSttlmAmt"),
        (b"<EndToEndId>", b"<EndToEndId>TWICE</EndToEndId><EndToEndId>", "EndToEndId"),
        (b"<NbOfTxs>1<", b"<NbOfTxs>7<", "NbOfTxs"),
        (b"<MsgDefIdr>pacs.008.001.08<", b"<MsgDefIdr>admi.004.001.02<", "AppHdr"),
    ],
)
async def test_a_malformed_wire_is_held_for_review_and_the_other_of_its_file_is_booked(
    fedwire, holder, right, wrong, element
):
    account = await fedwire.account_of(holder)
    lines = write_messages([await fedwire.payment(str(n), account, 100_00 + n) for n in (1, 2)], "incoming")
    first, middle, rest = lines.partition(b"</FedwireFundsIncomingMessage>")
    assert right in first
    await fedwire.drop("both.xml", first.replace(right, wrong, 1) + middle + rest)
    assert fedwire.taken("both.xml") == ["COMPLETED"]
    (file,) = await retries.list_failing(fedwire.bank.pool)
    assert f"line 3, {element}: " in (file.report or "")
    await fedwire.prove()


def after_another_message(raw, kind, envelope):
    """Return a file with a message of another kind, empty but for its header, before the others."""
    head = "urn:iso:std:iso:20022:tech:xsd:head.001.001.03"
    other = (
        f"<FedwireFundsIncomingMessage><{envelope}><AppHdr xmlns='{head}'><BizMsgIdr>OTHER1</BizMsgIdr>"
        f"<MsgDefIdr>{kind}</MsgDefIdr></AppHdr><Document xmlns='urn:iso:std:iso:20022:tech:xsd:{kind}'/>"
        f"</{envelope}></FedwireFundsIncomingMessage>"
    )
    return raw.replace(b"<FedwireFundsIncomingMessage>", other.encode() + b"<FedwireFundsIncomingMessage>", 1)


@pytest.mark.parametrize(
    "kind",
    ["admi.002.001.01", "admi.004.001.02", "admi.007.001.01", "camt.052.001.08", "camt.110.001.01", "pain.013.001.07"],
)
async def test_an_unsupported_fedwire_message_is_listed_and_the_wire_of_its_file_booked(fedwire, holder, kind):
    raw = write_messages([await fedwire.payment(kind, await fedwire.account_of(holder))], "incoming")
    await fedwire.drop("both.xml", after_another_message(raw, kind, "FedwireFundsOther"))
    assert sorted(fedwire.taken("both.xml")) == ["COMPLETED", "NOT_READ"]
    await fedwire.prove()


async def test_a_bank_to_bank_transfer_is_held_for_review_and_the_wire_of_its_file_booked(fedwire, holder):
    raw = write_messages([await fedwire.payment("one", await fedwire.account_of(holder))], "incoming")
    await fedwire.drop(
        "both.xml", after_another_message(raw, "pacs.009.001.08", "FedwireFundsFinancialInstitutionCreditTransfer")
    )
    assert fedwire.taken("both.xml") == ["COMPLETED"]
    (file,) = await retries.list_failing(fedwire.bank.pool)
    assert "pacs.009.001.08 is not read here" in (file.report or "")
    await fedwire.prove()


async def test_a_status_for_an_unknown_message_is_listed_and_the_wire_of_its_file_booked(fedwire, holder):
    wire_id = await fedwire.settled(holder)
    told = changed(await fedwire.status(wire_id), message_id=AGAIN)
    strange = about_another_message(told, message_id="20250602BLFDUS33000099")
    await fedwire.drop("both.xml", strange, await fedwire.payment("one", await fedwire.account_of(holder)))
    refused, booked = fedwire.taken("both.xml")
    assert (refused, booked) == ("REFUSED: OrgnlMsgId: no message 20250602BLFDUS33000099 was sent", "COMPLETED")
    await fedwire.prove()


async def test_a_return_of_an_unknown_wire_is_held_for_review_and_its_retry_books_nothing_twice(fedwire, holder):
    back = about_another_message(await fedwire.payment_return(await fedwire.settled(holder)), uetr=UNKNOWN)
    await fedwire.drop("both.xml", back, await fedwire.payment("one", await fedwire.account_of(holder)))
    assert fedwire.taken("both.xml") == ["COMPLETED"]
    legs = await fedwire.legs()
    (file,) = await retries.list_failing(fedwire.bank.pool)
    await fedwire.room.gate.process(fedwire.bank, file)
    assert await fedwire.legs() == legs
    (file,) = await retries.list_failing(fedwire.bank.pool)
    assert f"no payment {UNKNOWN} was sent" in (file.report or "")
    await fedwire.prove()


async def test_wires_to_unknown_or_closed_portals_are_returned_and_others_booked(fedwire, holder):
    closed = await fedwire.second_pocket(holder)
    await fedwire.close_portal(closed)
    accounts = [await fedwire.account_of(each) for each in (holder, closed)] + ["999999999999"]
    paid = [await fedwire.payment(each, each) for each in accounts]
    await fedwire.drop("mixed.xml", *paid)
    assert fedwire.taken("mixed.xml") == ["COMPLETED", "ACCOUNT_UNAVAILABLE", "NO_ACCOUNT"]
    await fedwire.clock.advance(timedelta(minutes=1))
    out = "".join(path.read_text() for path in (fedwire.folder / "outbox").iterdir())
    assert out.count("pacs.004.001.10</MsgDefIdr>") == 2
    assert ("<Cd>AC04</Cd>" in out, "<Cd>AC01</Cd>" in out) == (True, True)
    await fedwire.prove()


@pytest.mark.parametrize("status", ["XXXX", "RJCT"])
async def test_a_wire_status_with_an_unknown_code_or_original_is_refused(fedwire, holder, status):
    wire_id = await fedwire.settled(holder)
    told = changed(await fedwire.status(wire_id), status=status, message_id=AGAIN)
    strange = about_another_message(told, message_id="20250602BLFDUS33000099")
    reasons = {"XXXX": "XXXX is not a known status", "RJCT": "RJCT, but the wire is COMPLETED already"}
    assert (await the_only_mistake(fedwire, "odd.xml", told))[2] == reasons[status]
    assert (await the_only_mistake(fedwire, "strange.xml", strange))[2] == (
        "no message 20250602BLFDUS33000099 was sent"
    )


async def test_a_return_request_for_an_unknown_wire_or_amount_is_refused(fedwire, holder):
    paid = await fedwire.payment("one", await fedwire.account_of(holder))
    await fedwire.drop("in.xml", paid)
    now = await fedwire.bank.now()
    asked = fedwire.fed.return_request(paid.message, now, paid.message.settles_on, reason="DUPL")
    wrong = changed(asked, amount=6_00)
    assert (await the_only_mistake(fedwire, "amount.xml", wrong))[1:] == (
        "OrgnlIntrBkSttlmAmt",
        "$6.00, the payment was $5.00",
    )
    strange = about_another_message(asked, uetr=UNKNOWN)
    reason = (await the_only_mistake(fedwire, "strange.xml", strange))[2]
    assert reason == f"no payment {UNKNOWN} arrived"
    await fedwire.drop("right.xml", asked)
    assert fedwire.taken("right.xml") == ["OPEN"]


async def answered(fedwire, wire_id, verdict, reason):
    """The response of the other bank to our last request for return of a wire."""
    bank = fedwire.bank
    await fedwire.room.sender.send(bank)
    sent = await wire_store.find_last_sent(bank.pool, wire_id, ["camt.056"])
    assert sent is not None
    asked = await message_sent(bank, sent)
    assert isinstance(asked, ReturnRequest)
    accept_return = fedwire.fed.accept_return(asked, await bank.now())
    return changed(accept_return, verdict=verdict, reason=reason)


async def test_a_refused_wire_return_request_can_be_repeated(fedwire, holder):
    wire_id = await fedwire.settled(holder)
    bank, named = fedwire.bank, []
    for nth, (verdict, reason) in enumerate((("RJCR", "LEGL"), ("RJCR", "CUST"), ("CNCL", None))):
        named.append(await cases.recall(bank, wire_id, "DUPL"))
        with pytest.raises(Refused, match="is open: wait for its answer"):
            await cases.recall(bank, wire_id, "DUPL")
        answer = await answered(fedwire, wire_id, verdict, reason=reason)
        assert answer.message.case_id == named[-1]
        await fedwire.drop(f"{nth}.xml", answer)
        assert fedwire.taken(f"{nth}.xml") == ["ACCEPTED" if reason is None else "REFUSED"]
    assert named == [wire_id.hex, f"{wire_id.hex}-2", f"{wire_id.hex}-3"]
    with pytest.raises(Refused, match="is accepted: the wire is being returned") as refused:
        await cases.recall(bank, wire_id, "DUPL")
    assert refused.value.code == "wire-already-recalled"
    # The money has not come by the next day of Fedwire.
    await fedwire.clock.advance_business_days(1)
    assert await cases.recall(bank, wire_id, "DUPL") == f"{wire_id.hex}-4"
    await fedwire.prove()
    await as_owner(bank, "DELETE FROM wire_message WHERE terms->>'case_id' = $1", named[1])
    async with bank.pool.acquire() as conn:
        report = await verify_bank(conn, market=bank.market)
    assert "the case requires it, and it is missing" in str(report.findings)


async def test_a_wire_with_a_closed_or_future_settlement_day_or_wrong_environment_is_refused(fedwire, holder):
    paid = await fedwire.payment("one", await fedwire.account_of(holder))
    days = {
        date(2025, 6, 1): "Fedwire is closed on 2025-06-01",
        date(2025, 7, 4): "Fedwire is closed on 2025-07-04",
        date(2025, 6, 4): "2025-06-04 is in the future",
    }
    for day, reason in days.items():
        mistake = await the_only_mistake(fedwire, f"{day}.xml", changed(paid, settles_on=day))
        assert mistake == (3, "IntrBkSttlmDt", reason)
    real = replace(paid, header=replace(paid.header, environment="PROD"))
    mistake = await the_only_mistake(fedwire, "real.xml", real)
    assert mistake == (3, "BizSvc", "it is of PROD, the bank of TEST")
    await fedwire.drop("late.xml", changed(paid, settles_on=date(2025, 5, 30)))
    assert fedwire.taken("late.xml") == ["COMPLETED"]


@needs_cluster
async def test_a_wire_to_an_account_whose_name_is_only_prepared_on_a_node_is_booked_when_it_can_be_read(
    fedwire, holder, bank_dsn
):
    number = await fedwire.account_of(holder)
    name = f"{fedwire.bank.settings.bank_routing_number}:{number}"
    conn = await asyncpg.connect(bank_dsn)
    ((host, port, names),) = await conn.fetch(NAMES, name)
    await conn.close()
    parts = urlsplit(bank_dsn)
    node = await asyncpg.connect(parts._replace(netloc=f"{parts.username}@{host}:{port}").geturl())
    # As after a crash between the phases of the commit that opened the account.
    await node.execute(f"CREATE TABLE kept AS SELECT * FROM {names} WHERE kind = 'account' AND value = '{name}'")
    await node.execute(f"DELETE FROM {names} WHERE kind = 'account' AND value = '{name}'")
    await node.execute(f"BEGIN; INSERT INTO {names} SELECT * FROM kept; PREPARE TRANSACTION '{port} {number}'")
    booking = asyncio.create_task(fedwire.drop("early.xml", await fedwire.payment("early", number)))
    await asyncio.wait([booking], timeout=1)
    assert not booking.done(), "whether there is such an account is not known yet"
    await node.execute(f"COMMIT PREPARED '{port} {number}'")
    await booking
    assert fedwire.taken("early.xml") == ["COMPLETED"]
    await node.execute("DROP TABLE kept")
    await node.close()
