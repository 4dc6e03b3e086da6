"""Wires over files, the whole way: out to the simulated service, back through the gate."""

from datetime import UTC, datetime, timedelta
from uuid import UUID

import msgspec
import pytest
from tests.support.fedwire import link, send

from billfold.payments.files import store as files_store
from billfold.payments.wires import cases as wire_cases
from billfold.payments.wires.store import cases
from billfold.payments.wires.store.wires import LISTS, get_wire
from billfold.platform import ids
from billfold.platform.errors import NotFound, Refused
from billfold.sandbox.clock.stepper import ClockStepper
from billfold.sandbox.simulation import DestinationAccount, Sender
from billfold.verify.runner import verify_bank
from billfold.wiring.fedwire import FedwireService
from billfold.wiring.providers import rail_files_folder

FRIDAY_EVENING = datetime(2025, 8, 29, 22, tzinfo=UTC)
TUESDAY_MORNING = datetime(2025, 9, 2, 12, tzinfo=UTC)


@pytest.fixture
async def holder(bank, new_holder):
    holder = await new_holder()
    await holder.deposit(500_000_00)
    holder.counterparty_id = await link(bank, holder.customer_id)
    holder.room = FedwireService()
    holder.clock = ClockStepper(bank)
    return holder


async def sent(holder, cents):
    return UUID((await send(holder, cents))["wire_id"])


async def wire(holder, wire_id):
    return await get_wire(holder.bank.pool, holder.customer_id, wire_id)


async def all_wires(holder):
    return await LISTS["customer_id"].rows(holder.bank.pool, holder.customer_id, None, None, None, limit=100)


async def expect_proved(holder):
    async with holder.bank.pool.acquire() as conn:
        report = await verify_bank(conn, market=holder.bank.market)
    assert report.is_clean, report.findings


def drop(holder, name, content):
    """Put a file into the inbox, as the connection to the service does."""
    folder = rail_files_folder(holder.bank.settings) / "wire" / "inbox"
    folder.mkdir(parents=True, exist_ok=True)
    (folder / name).write_bytes(content)


def report(holder, folder, name):
    path = rail_files_folder(holder.bank.settings) / "wire" / folder / f"{name}.report.json"
    return msgspec.json.decode(path.read_bytes())


async def test_wires_of_a_day_go_in_one_file_and_are_settled_or_refused(holder):
    good, bad = await sent(holder, 1_000_00), await sent(holder, 2_000_01)

    await holder.clock.advance(timedelta(minutes=1))

    settled, refused = await wire(holder, good), await wire(holder, bad)
    assert (settled.status, settled.imad[:16]) == ("COMPLETED", "20250602BLFDUS33")
    assert (refused.status, refused.reason) == ("REJECTED", "ACCOUNT_UNAVAILABLE")
    files = await files_store.list_files(holder.bank.pool, rail="WIRE")
    assert sorted((file.direction, file.state) for file in files) == [("IN", "PROCESSED"), ("OUT", "TRANSMITTED")]
    await expect_proved(holder)


async def test_a_wire_before_a_holiday_is_booked_on_friday_and_settles_on_tuesday(holder):
    await holder.clock.set_to(FRIDAY_EVENING)
    wire_id = await sent(holder, 1_000_00)
    await holder.clock.set_to(TUESDAY_MORNING - timedelta(seconds=1))
    waiting = await wire(holder, wire_id)
    await holder.clock.advance(timedelta(minutes=1))
    settled = await wire(holder, wire_id)

    assert waiting.status == "PENDING"
    assert settled.status == "COMPLETED"
    assert settled.imad.startswith("20250902")
    assert settled.settled_at == TUESDAY_MORNING + timedelta(seconds=5)


async def test_a_wire_that_comes_back_a_day_later_is_a_wire_of_its_own(holder):
    wire_id = await sent(holder, 1_000_00)
    await holder.clock.advance_business_days(1)

    await holder.room.simulation.give_back(
        holder.bank, holder.customer_id, wire_id, reason="AC04", information="Account closed"
    )

    back = (await all_wires(holder))[0]
    assert (back.wire_type, back.original_wire_id, back.status) == ("RETURN", wire_id, "COMPLETED")
    assert (await wire(holder, wire_id)).status == "COMPLETED"
    with pytest.raises(Refused):
        await holder.room.simulation.give_back(
            holder.bank, holder.customer_id, wire_id, reason="AC04", information="Account closed"
        )
    await expect_proved(holder)


async def test_a_wire_to_an_unknown_account_is_returned_by_a_message(holder):
    routing_number = holder.bank.settings.bank_routing_number
    booked = await holder.room.simulation.pay(
        holder.bank, ids.new(), DestinationAccount(routing_number, "999999999999"), 5_00, Sender("Acme")
    )
    await holder.clock.advance(timedelta(minutes=1))

    assert not booked
    (out,) = await files_store.list_files(holder.bank.pool, rail="WIRE", direction="OUT")
    content = await files_store.read_content(holder.bank.pool, out.file_id)
    assert b"pacs.004.001.10" in content
    assert b"<Cd>AC01</Cd>" in content


async def test_a_wire_that_arrives_is_paid_back_when_its_sender_asks(holder):
    await holder.room.simulation.pay(holder.bank, ids.new(), await address(holder), 5_00, Sender("A"))
    (arrived,) = await all_wires(holder)
    await holder.room.simulation.ask_for(holder.bank, holder.customer_id, arrived.wire_id, reason="DUPL")
    (case,) = await cases.list_cases(holder.bank.pool, status="OPEN")
    assert (case.wire_id, case.direction) == (arrived.wire_id, "INCOMING")

    returned = await wire_cases.pay_back(holder.bank, arrived.wire_id, "FOCR")
    await holder.clock.advance(timedelta(minutes=1))

    back = await wire(holder, returned)
    assert (back.wire_type, back.status, back.original_wire_id) == ("RETURN", "COMPLETED", arrived.wire_id)
    (ended,) = await cases.list_cases(holder.bank.pool)
    assert ended.status == "ACCEPTED"
    await expect_proved(holder)


async def test_a_wire_of_ours_that_we_ask_for_comes_back(holder):
    wire_id = await sent(holder, 1_000_00)
    await holder.clock.advance(timedelta(minutes=1))

    await wire_cases.recall(holder.bank, wire_id, "DUPL")
    await holder.clock.advance(timedelta(minutes=1))

    back = (await all_wires(holder))[0]
    assert (back.wire_type, back.original_wire_id) == ("RETURN", wire_id)
    (case,) = await cases.list_cases(holder.bank.pool)
    assert case.status == "ACCEPTED"
    await expect_proved(holder)


async def test_a_return_request_may_be_refused(holder):
    await holder.room.simulation.pay(holder.bank, ids.new(), await address(holder), 5_00, Sender("A"))
    (arrived,) = await all_wires(holder)
    await holder.room.simulation.ask_for(holder.bank, holder.customer_id, arrived.wire_id, reason="CUST")

    await wire_cases.refuse(holder.bank, arrived.wire_id, "LEGL")
    await holder.clock.advance(timedelta(minutes=1))

    (file,) = await files_store.list_files(holder.bank.pool, rail="WIRE", direction="OUT")
    assert b"<Conf>RJCR</Conf>" in await files_store.read_content(holder.bank.pool, file.file_id)
    with pytest.raises(NotFound):
        await wire_cases.refuse(holder.bank, arrived.wire_id, "LEGL")


async def test_a_file_is_refused_whole_with_line_and_reason(holder):
    paid = await holder.room.simulation.pay(holder.bank, ids.new(), await address(holder), 5_00, Sender("Acme"))
    assert paid
    (first,) = await files_store.list_files(holder.bank.pool, rail="WIRE", direction="IN")
    content = await files_store.read_content(holder.bank.pool, first.file_id)
    other = content.replace(b"5.00", b"6.00")
    drop(holder, "again.xml", content)
    drop(holder, "half.xml", content[: len(content) // 2])
    drop(holder, "two.xml", content.replace(b"<NbOfTxs>1<", b"<NbOfTxs>2<"))
    drop(holder, "same-number.xml", other)

    await holder.room.gate(holder.bank)

    def why(name):
        (mistake, *_) = report(holder, "refused", name)["mistakes"]
        return mistake["line"], mistake["reason"]

    assert "arrived as" in why("again.xml")[1]
    assert why("half.xml")[0] == 3
    assert why("two.xml") == (3, "should be 1, not '2'")
    assert why("same-number.xml")[1].endswith(f"came in the file {first.name} already")
    assert len(await all_wires(holder)) == 1


async def address(holder):
    row = await holder.bank.pool.fetchrow(
        "SELECT routing_number, account_number FROM portal WHERE portal_id = $1", holder.portal_id
    )
    return DestinationAccount(*row)
