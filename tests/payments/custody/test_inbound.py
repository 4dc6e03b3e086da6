"""Files of the custodian: what does not fit is refused or waits for a person, and the next message continues."""

import json
from datetime import UTC, date, datetime, timedelta
from uuid import UUID

import pytest
from msgspec.structs import replace
from tests.support.cases import in_one_bank
from tests.support.whole_bank import close_bank, expect_clean, open_bank
from tests.trading.desk_by_hand import OLGA, OTTO, DeskByHand
from tests.trading.settlement.test_stories import expect_clean as expect_clean_but_roots

from billfold.dual_control.decisions import confirm
from billfold.monitoring.health import check_bank
from billfold.payments.custody import messages
from billfold.payments.custody.inbound import CustodianFiles
from billfold.payments.custody.outbound import InstructionSender, tx_id_of
from billfold.payments.custody.rules import DeliverBills, ReceiveBills
from billfold.payments.files.exchange import RailExchanges
from billfold.payments.files.store import list_files
from billfold.platform.dates import et_instant
from billfold.platform.errors import Refused
from billfold.sandbox.control.clock_stepper import ClockStepper
from billfold.trading.decisions import propose_amendment
from billfold.trading.settlement.decisions import propose_difference, send_again
from billfold.trading.settlement.store import list_closed, list_held, list_open
from billfold.trading.settlement.types import instruction_id_of

BOMB = b"".join(
    (b'<!DOCTYPE a [<!ENTITY e0 "ha">', *(b'<!ENTITY e%d "%s">' % (n + 1, b"&e%d;" % n * 10) for n in range(9)), b"]>?")
)
ENDS = messages.MessageEnds("CUSTUS33", "BLFDUS33", datetime(2025, 6, 3, 14, tzinfo=UTC))


class Custodian:
    """A custodian by hand: the bank's instructions are sent, and nobody answers them but the test."""

    def __init__(self, bank, desk):
        self.bank, self.desk, self.count = bank, desk, 0

    async def trade(self):
        [order] = await self.desk.send_orders()
        fill = await self.desk.fill_of(order)
        await self.desk.book(fill)
        self.execution_id = fill.execution_id
        await self.until(date(2025, 6, 3), 10)
        return messages.Confirmation(
            tx_id=tx_id_of(instruction_id_of(fill.execution_id)),
            movement="RECE",
            payment="APMT",
            settled_on=date(2025, 6, 3),
            cusip=fill.cusip,
            units=fill.units,
            account="BILLFOLD",
            money=fill.money,
            credit_or_debit="DBIT",
        )

    async def send(self, *several, name=None):
        """Send messages in a file; return its state and the outcomes, of stuck ones the errors."""
        self.count += 1
        ends = ENDS._replace(at=ENDS.at + timedelta(minutes=self.count))
        return await self.send_file(messages.write_messages(several, ends), name=name)

    async def send_file(self, content, *, name=None):
        name = name or f"c-{self.count}.xml"
        exchange = self.bank.ports[RailExchanges].custody
        await exchange.network_side().transmit(name, content)
        await CustodianFiles().process_all(self.bank)
        assert await exchange.list_inbound() == [], "every file leaves the inbox"
        [file, *_] = await list_files(self.bank.pool, rail="CUSTODY", direction="IN")
        report = json.loads(file.report or "{}")
        stuck = [each["error"] for each in report.get("stuck", ())]
        mistakes = [each["reason"] for each in report.get("mistakes", ())]
        return file.state, [each["outcome"] for each in report.get("items", ())] + stuck + mistakes

    async def until(self, day, hour):
        await ClockStepper(self.bank).set_to(et_instant(day, hour))

    async def bust(self, execution_id):
        """Bust an execution, and have the custodian asked to cancel its instruction."""
        made = await propose_amendment(self.bank, execution_id, reference="B-1", values=None, reason="busted", by=OLGA)
        await self.desk.confirm(made)
        await self.until(date(2025, 6, 3), 11)

    async def decide(self, difference_id, *, accept):
        made = await propose_difference(self.bank, difference_id, accept=accept, reason="agreed", by=OLGA)
        return await confirm(self.bank, made.proposal_id, by=OTTO)

    async def sent(self):
        """Return the messages that the bank has sent, the oldest first."""
        outbox = self.bank.ports[RailExchanges].custody.network_side()
        contents = [await outbox.read(name) for name in await outbox.list_inbound()]
        return [read.message for content in contents for read in messages.read_messages(content)]

    async def status(self):
        found = await list_open(self.bank.pool, self.desk.bank_id)
        found += await list_closed(self.bank.pool, self.desk.bank_id, 9)
        return [each.status for each in found]


@pytest.fixture
async def bank(bank_dsn):
    opened = await open_bank(bank_dsn, dealers=("citadel", "jpm"))
    sender = InstructionSender()
    silent = {"settlement-send": sender.send, "settlement-cancel": sender.cancel, "custody.deliver": sender.deliver}
    opened.job_runners = {**opened.job_runners, **silent}
    yield opened
    await close_bank(opened)


@pytest.fixture
async def custodian(bank, new_holder):
    await (await new_holder()).deposit(100_000_00)
    return Custodian(bank, DeskByHand(bank))


async def test_a_confirmation_is_booked_once_however_often_it_comes(bank, custodian):
    right = await custodian.trade()
    assert await custodian.send(right) == ("PROCESSED", ["SETTLED"])
    assert await custodian.send(right) == ("PROCESSED", ["SETTLED"])
    assert not await list_held(bank.pool, custodian.desk.bank_id)
    content = messages.write_messages([right], ENDS)
    for name in ("a.xml", "b.xml"):
        await custodian.send_file(content, name=name)
    assert len(await list_files(bank.pool, rail="CUSTODY", direction="IN")) == 3
    state, [outcome] = await custodian.send(replace(right, custodian_id="again"))
    assert state == "PROCESSED"
    assert outcome.startswith("HELD: The instruction is SETTLED")
    await expect_clean(bank)


@pytest.mark.parametrize(
    ("changes", "outcome"),
    [
        ({"money": 1}, "HELD: Its money is"),
        ({"units": 100_000}, "HELD: It settles 100000 units"),
        ({"movement": "DELI"}, "HELD: It settles -"),
        ({"credit_or_debit": "CRDT"}, "HELD: Its money is"),
        ({"settled_on": date(2025, 6, 4)}, "HELD: It settled on Jun 4, 2025"),
        ({"settled_on": date(2025, 6, 2)}, "HELD: It settled on Jun 2, 2025"),
        ({"cusip": "912797MV6"}, "HELD: It settles 912797MV6"),
        ({"units": 0, "money": 0}, "HELD: It settles 0 units"),
        ({"pre_confirmation": "PRSE"}, "NOTED"),
    ],
)
async def test_what_differs_from_the_instruction_moves_nothing(bank, custodian, changes, outcome):
    right = await custodian.trade()
    _, [found] = await custodian.send(replace(right, **changes))
    assert found.startswith(outcome)
    assert await custodian.status() == ["SENT"]
    await expect_clean(bank)
    assert await custodian.send(right) == ("PROCESSED", ["SETTLED"])
    await expect_clean(bank)


async def test_one_odd_message_takes_no_other_with_it(bank, custodian):
    right = await custodian.trade()
    unknown = replace(right, tx_id=tx_id_of(custodian.desk.bank_id))
    foreign = replace(right, account="ANOTHER")
    unread = replace(right, settled_on=None)
    torn = replace(right, isin="US912797MV61", custodian_id="torn")
    status = messages.StatusAdvice(tx_id="NOT-OURS", failing="LACK")
    state, outcomes = await custodian.send(unknown, foreign, status, unread, torn, right)
    assert state == "ARRIVED"
    assert [each for each in outcomes if each == "SETTLED"] == ["SETTLED"]
    assert sum("is not an instruction" in each for each in outcomes) == 1
    assert sum("There is no instruction" in each for each in outcomes) == 1
    assert sum("of the account ANOTHER" in each for each in outcomes) == 1
    assert sum("no effective settlement date" in each for each in outcomes) == 1
    assert sum("It names two bills: US912797MV61 and " in each for each in outcomes) == 1
    assert await custodian.status() == ["SETTLED"]
    await expect_clean(bank)


@in_one_bank(
    "content",
    [
        b"not XML",
        b"<!DOCTYPE a [<!ENTITY b 'c'>]><Document>&b;</Document>",
        b"<!DOCTYPE a [<!ENTITY b SYSTEM 'file:///etc/passwd'>]><Document>&b;</Document>",
        b"<!DOCTYPE a SYSTEM 'http://127.0.0.1:1/a.dtd'><Document/>",
        BOMB.replace(b"?", b'<Document a="&e9;"/>'),
        BOMB.replace(b"?", b"<Document>&e9;</Document>"),
        b"<Document>" * 100_000,
        b"",
    ],
    ids=["text", "entity", "external", "dtd", "bomb in an attribute", "bomb", "depth", "empty"],
)
async def test_a_file_that_is_no_xml_is_refused(custodian, content):
    assert (await custodian.send_file(content))[0] == "REFUSED"


async def test_a_file_too_large_to_be_read_is_refused_and_the_next_one_is_booked(bank, custodian):
    right = await custodian.trade()
    folder = bank.settings.rails_dir / "custody"
    (folder / "inbox").mkdir(exist_ok=True)
    with (folder / "inbox" / "a.xml").open("wb") as large:
        large.truncate(200 * 2**20)
    assert await custodian.send(right) == ("PROCESSED", ["SETTLED"])
    assert "larger than" in (folder / "refused" / "a.xml.report.json").read_text()


async def test_a_file_of_another_account_is_refused(custodian):
    right = await custodian.trade()
    state, [reason] = await custodian.send(replace(right, account="ANOTHER"))
    assert (state, reason) == ("REFUSED", "it is of the account ANOTHER, not of BILLFOLD")
    assert await custodian.status() == ["SENT"]


async def test_the_custodian_reports_the_state_of_an_instruction(bank, custodian):
    tx_id = (await custodian.trade()).tx_id
    for said, status in (
        ({"unmatched": "CMIS"}, "PENDING"),
        ({"matched": ""}, "MATCHED"),
        ({}, "MATCHED"),
        ({"failing": "LACK"}, "FAILING"),
        ({"cancelled": "OTHR"}, "REJECTED"),
    ):
        await custodian.send(messages.StatusAdvice(tx_id=tx_id, **said))
        assert await custodian.status() == [status], said
    await expect_clean(bank)


async def test_two_messages_of_one_number_are_two_parts(bank, custodian):
    right = await custodian.trade()
    money = (2 * right.money * 400 + right.units) // (2 * right.units)
    parts = replace(right, units=400, money=money), replace(right, units=right.units - 400, money=right.money - money)
    content = messages.write_messages(parts, ENDS)
    numbers = [each.number.encode() for each in messages.read_messages(content)]
    for number in numbers:
        content = content.replace(number, b"SAME")
    assert await custodian.send_file(content) == ("PROCESSED", ["SETTLED", "SETTLED"])
    assert await custodian.status() == ["SETTLED"]
    await expect_clean(bank)


async def test_a_part_that_is_repeated_under_another_number_waits_for_a_person(bank, custodian):
    right = await custodian.trade()
    money = (2 * right.money * 400 + right.units) // (2 * right.units)
    part = replace(right, units=400, money=money)
    rest = replace(right, units=right.units - 400, money=right.money - money)
    content = messages.write_messages([part], ENDS)
    [read] = messages.read_messages(content)
    assert await custodian.send_file(content) == ("PROCESSED", ["SETTLED"])
    _, [waits] = await custodian.send_file(content.replace(read.number.encode(), b"OTHER"), name="again.xml")
    assert f"repeats {read.number}" in waits
    assert await custodian.send(rest) == ("PROCESSED", ["SETTLED"])
    assert await custodian.status() == ["SETTLED"]
    await expect_clean(bank)


async def test_the_rest_is_instructed_again_and_the_former_attempt_settles_nothing(bank, custodian):
    right = await custodian.trade()
    first = replace(right, units=400, money=(2 * right.money * 400 + right.units) // (2 * right.units))
    rest = replace(right, units=right.units - 400, money=right.money - first.money)
    assert await custodian.send(first) == ("PROCESSED", ["SETTLED"])
    await custodian.send(messages.StatusAdvice(tx_id=right.tx_id, rejected="LACK"))
    [row] = await list_open(bank.pool, custodian.desk.bank_id)
    await send_again(bank, row.instruction_id, reason="agreed", by=OLGA)
    assert (await custodian.send(messages.StatusAdvice(tx_id=tx_id_of(row.instruction_id, 2), matched="")))[1] == [
        "REFUSED: The instruction is NEW; it cannot become MATCHED."
    ]
    await custodian.until(date(2025, 6, 3), 11)
    again = (await custodian.sent())[-1]
    assert (again.tx_id, again.units, again.money) == (tx_id_of(row.instruction_id, 2), rest.units, rest.money)
    _, [outcome] = await custodian.send(rest)
    assert outcome.startswith("HELD: It is of attempt 1; attempt 2 is SENT.")
    _, [outcome] = await custodian.send(messages.StatusAdvice(tx_id=right.tx_id, rejected="LATE"))
    assert outcome.startswith("REFUSED: That was attempt 1")
    assert await custodian.send(replace(rest, tx_id=again.tx_id)) == ("PROCESSED", ["SETTLED"])
    await expect_clean(bank)


async def test_a_confirmation_that_crosses_a_cancellation_is_sent_back(bank, custodian):
    right = await custodian.trade()
    await custodian.bust(custodian.execution_id)
    assert [type(each) for each in await custodian.sent()] == [messages.CancellationRequest, messages.Instruction]
    assert await custodian.send(messages.StatusAdvice(tx_id=right.tx_id, matched="")) == ("PROCESSED", ["CANCELLING"])
    assert await custodian.send(right) == ("PROCESSED", ["SETTLED"])
    [back] = await list_open(bank.pool, custodian.desk.bank_id)
    assert (back.units, back.money, back.status) == (-right.units, -right.money, "NEW")
    denied = messages.CancellationStatus(tx_id=right.tx_id, denied="DSET")
    assert await custodian.send(denied) == ("PROCESSED", ["REFUSED: The instruction is SETTLED."])


async def test_what_settles_after_it_was_cancelled_is_held_and_sent_back_once_two_people_accept_it(bank, custodian):
    right = await custodian.trade()
    await custodian.bust(custodian.execution_id)
    cancelled = messages.CancellationStatus(tx_id=right.tx_id, cancelled="CANI")
    assert await custodian.send(cancelled) == ("PROCESSED", ["CANCELLED"])
    assert await custodian.send(right) == ("PROCESSED", ["HELD: The instruction is CANCELLED already."])
    async with bank.pool.acquire() as conn:
        found = {each.what: each.found for each in await check_bank(conn, bank.settings)}
    assert found["settlement"] == "1 confirmations differ, 0 instructions are rejected"
    [held] = await list_held(bank.pool, custodian.desk.bank_id)
    await custodian.decide(held.difference_id, accept=True)
    [back] = await list_open(bank.pool, custodian.desk.bank_id)
    assert (back.units, back.money, back.status) == (-right.units, -right.money, "NEW")
    assert await custodian.status() == ["NEW", "SETTLED"]


async def test_what_is_not_open_cannot_be_accepted(bank, custodian):
    right = await custodian.trade()
    for changes in ({"cusip": "912797MV6"}, {"units": right.units + 1}, {"movement": "DELI"}):
        await custodian.send(replace(right, **changes))
    for held in await list_held(bank.pool, custodian.desk.bank_id):
        with pytest.raises(Refused, match="Dismiss the confirmation"):
            await custodian.decide(held.difference_id, accept=True)
    await expect_clean(bank)


async def test_a_redemption_is_booked_once_and_at_par(bank, custodian):
    right = await custodian.trade()
    await custodian.send(right)
    matures_on = bank.market.bill(right.cusip).maturity
    await custodian.until(matures_on, 12)
    what = {"tx_id": None, "kind": "CORP", "movement": "DELI", "credit_or_debit": "CRDT", "settled_on": matures_on}
    paid = replace(right, **what, money=right.units * 100_00, custodian_id="R-1")
    outcomes = [
        (replace(paid, units=paid.units + 1, money=paid.money + 100_00), f"HELD: It settles -{paid.units + 1} units"),
        (replace(paid, money=paid.money - 1), "HELD: Its money is"),
        (replace(paid, movement="RECE"), "HELD: It settles"),
        (replace(paid, credit_or_debit="DBIT"), "HELD: Its money is"),
        (paid, "SETTLED"),
        (replace(paid, custodian_id="R-2"), f"HELD: It settles -{paid.units} units; 0 are open."),
    ]
    for said, expected in outcomes:
        state, [outcome] = await custodian.send(said)
        assert (state, outcome[: len(expected)]) == ("PROCESSED", expected)
    await custodian.until(matures_on, 18)
    assert not [each for each in await list_open(bank.pool, custodian.desk.bank_id) if each.open_units]
    await expect_clean_but_roots(bank)


async def test_a_redemption_with_other_money_is_booked_when_two_people_accept_it(bank, custodian):
    right = await custodian.trade()
    await custodian.send(right)
    matures_on = bank.market.bill(right.cusip).maturity
    await custodian.until(matures_on, 18)
    what = {"tx_id": "NONREF", "kind": "REDM", "movement": "DELI", "credit_or_debit": "CRDT", "settled_on": matures_on}
    await custodian.send(replace(right, **what, money=right.units * 100_00 - 5))
    [held] = await list_held(bank.pool, custodian.desk.bank_id)
    await custodian.decide(held.difference_id, accept=True)
    assert not [each for each in await list_open(bank.pool, custodian.desk.bank_id) if each.open_units]
    await expect_clean_but_roots(bank)


async def test_a_delivery_of_a_customer_ends_as_confirmed_or_waits_for_a_person(bank, custodian, new_holder):
    holder = await new_holder()
    fields = {
        "pocket_id": holder.pocket_id,
        "cusip": "912797PT8",
        "counterparty_name": "X",
        "counterparty_account": "1",
    }
    came, left, refused = (UUID(int=n) for n in (1, 2, 3))
    await holder.submit(ReceiveBills, holder.customer_id, transfer_id=came, units=20, **fields)
    for transfer_id in (left, refused):
        await holder.submit(DeliverBills, holder.customer_id, transfer_id=transfer_id, units=5, **fields)
    day = date(2025, 6, 2)
    delivered = messages.Confirmation(
        tx_id=tx_id_of(left),
        movement="DELI",
        payment="FREE",
        settled_on=day,
        cusip="912797PT8",
        units=5,
        account="BILLFOLD",
    )
    for changes in ({"units": 4}, {"cusip": "912797MV6"}, {"movement": "RECE"}, {"settled_on": date(2025, 6, 3)}):
        state, [outcome] = await custodian.send(replace(delivered, **changes))
        assert (state, "It is no delivery of 5 units of 912797PT8" in outcome) == ("ARRIVED", True)
    for _ in range(2):
        assert await custodian.send(replace(delivered, custodian_id=str(custodian.count))) == ("PROCESSED", ["SETTLED"])
    rejected = messages.StatusAdvice(tx_id=tx_id_of(refused), rejected="SAFE")
    assert await custodian.send(rejected) == ("PROCESSED", ["REJECTED"])
    state, [outcome] = await custodian.send(replace(delivered, tx_id=rejected.tx_id))
    assert (state, "REJECTED already" in outcome) == ("ARRIVED", True)
    rows = await bank.pool.fetch("SELECT status FROM security_transfer WHERE direction = 'OUT' ORDER BY transfer_id")
    assert [row["status"] for row in rows] == ["COMPLETED", "REJECTED"]
    async with bank.pool.acquire() as conn:
        found = {each.what: each.found for each in await check_bank(conn, bank.settings)}
    assert "4 more fail" in found["rail files"]
    await expect_clean(bank)
