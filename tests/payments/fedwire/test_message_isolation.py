"""Messages of one file are processed one by one, in any position and next to any other message."""

import pytest
from tests.support.fedwire import changed

from billfold.payments.wires.iso20022.envelope import write_messages

AGAIN = "20250602SIMFED01999999"


async def pays(fedwire, holder, named, cents):
    return await fedwire.payment(named, await fedwire.account_of(holder), cents)


def on_one_line(*wires):
    """A file without line ends, as many programs write one."""
    return write_messages(wires, "incoming").replace(b"\n", b"")


async def amounts(fedwire, holder):
    return sorted(each.amount for each in await fedwire.wires(holder))


async def test_fedwire_messages_on_one_line_are_handled_independently(fedwire, holder):
    elsewhere = changed(await pays(fedwire, holder, "elsewhere", 2_00), receiver="021000021")
    strange = on_one_line(await pays(fedwire, holder, "kind", 1_00)).partition(b"<FedwireFundsIncomingMessage>")[2]
    strange = strange.partition(b"</FedwireFundsIncomingMessage>")[0].replace(b"pacs.008.001.08", b"admi.004.001.02")
    strange = strange.replace(b"FedwireFundsCustomerCreditTransfer", b"FedwireFundsOther")
    raw = on_one_line(await pays(fedwire, holder, "first", 3_00), elsewhere, await pays(fedwire, holder, "last", 4_00))
    message = b"<FedwireFundsIncomingMessage>"
    await fedwire.drop("line.xml", raw.replace(message, message + strange + message.replace(b"<", b"</") + message, 1))
    assert sorted(fedwire.taken("line.xml")) == ["COMPLETED", "COMPLETED", "NOT_READ"]
    assert await amounts(fedwire, holder) == [3_00, 4_00]
    ((_, told),) = await fedwire.stuck()
    assert told == "InstdAgt: it is for 021000021, not for 061199992"
    await fedwire.prove()


async def test_a_wire_settled_and_rejected_on_one_line_is_refused(fedwire, holder):
    wire_id = await fedwire.send_wire(holder)
    settled, rejected = await fedwire.status(wire_id), await fedwire.status(wire_id, "AC04")
    await fedwire.drop("line.xml", on_one_line(settled, changed(rejected, message_id=AGAIN)))
    booked, refused = fedwire.taken("line.xml")
    assert (booked, refused.startswith("REFUSED: OrgnlUETR: the payment is settled")) == ("ACSC", True)
    assert (await fedwire.wire(holder, wire_id)).status == "COMPLETED"
    await fedwire.prove()


async def test_a_duplicate_fedwire_message_in_a_file_is_booked_once_and_listed(fedwire, holder):
    first, second = await pays(fedwire, holder, "first", 3_00), await pays(fedwire, holder, "second", 4_00)
    await fedwire.drop("twice.xml", first, second, first)
    *booked, repeated = fedwire.taken("twice.xml")
    assert (booked, repeated.startswith("REFUSED: MsgId: ")) == (["COMPLETED", "COMPLETED"], True)
    assert (await amounts(fedwire, holder), await fedwire.stuck()) == ([3_00, 4_00], [])
    await fedwire.prove()


@pytest.mark.parametrize("changes", [{"amount": 9_00}, {"message_id": AGAIN}, {"message_id": AGAIN, "amount": 9_00}])
async def test_a_wire_that_reuses_a_message_id_of_its_file_is_held_for_review(fedwire, holder, changes):
    first = await pays(fedwire, holder, "first", 3_00)
    await fedwire.drop("both.xml", first, changed(first, **changes))
    assert (fedwire.taken("both.xml"), await amounts(fedwire, holder)) == (["COMPLETED"], [3_00])
    ((line, told),) = await fedwire.stuck()
    assert (line, "on line 3" in told) == (4, True)
    await fedwire.prove()


async def test_a_wire_that_reuses_the_uetr_of_an_earlier_file_is_held_for_review(fedwire, holder):
    first = await pays(fedwire, holder, "first", 3_00)
    await fedwire.drop("one.xml", first)
    other = changed(first, message_id=AGAIN, amount=9_00)
    await fedwire.drop("two.xml", other, await pays(fedwire, holder, "second", 4_00))
    assert (fedwire.taken("two.xml"), await amounts(fedwire, holder)) == (["COMPLETED"], [3_00, 4_00])
    ((line, told),) = await fedwire.stuck()
    assert (line, "came in the file one.xml already" in told) == (3, True)
    await fedwire.prove()


KIND = (b"FedwireFundsCustomerCreditTransfer", b"FedwireFundsCoverPayment")
UNREAD = {
    "another version": [(b"pacs.008.001.08", b"pacs.008.001.13")],
    "a header of another version": [(b"head.001.001.03", b"head.001.001.02")],
    "no header": [(b"AppHdr", b"Header")],
    "an unknown kind without a header": [KIND, (b"AppHdr", b"Header")],
    "an unknown kind with the header of another": [
        KIND,
        (b"<MsgDefIdr>pacs.008.001.08", b"<MsgDefIdr>admi.004.001.02"),
    ],
    "an amount of elements": [(b">3.00<", b">3<x/>.00<")],
    "an amount of more than three dollars": [(b">3.00<", b">3.00" + b"0" * 40 + b"1<")],
    "an amount without end": [(b">3.00<", b">" + b"9" * 1_000_001 + b"<")],
}


@pytest.mark.parametrize("name", UNREAD)
async def test_an_unreadable_wire_is_held_for_review_and_the_other_of_its_file_is_booked(fedwire, holder, name):
    wires = [await pays(fedwire, holder, "first", 3_00), await pays(fedwire, holder, "second", 4_00)]
    first, middle, rest = write_messages(wires, "incoming").partition(b"</FedwireFundsIncomingMessage>")
    for right, wrong in UNREAD[name]:
        assert right in first
        first = first.replace(right, wrong)
    await fedwire.drop("both.xml", first + middle + rest)
    assert (fedwire.taken("both.xml"), await amounts(fedwire, holder)) == (["COMPLETED"], [4_00])
    assert [line for line, _ in await fedwire.stuck()] == [3]
    await fedwire.prove()
