"""Files of the custodian: what does not fit is refused or waits for a person, and the next message continues."""

import json
from datetime import UTC, date, datetime, timedelta

import pytest
from msgspec.structs import replace
from tests.support.whole_bank import close_bank, expect_clean, open_bank
from tests.trading.desk_by_hand import DeskByHand

from billfold.payments.custody import messages
from billfold.payments.custody.inbound import CustodianFiles
from billfold.payments.custody.outbound import InstructionSender, tx_id_of
from billfold.payments.files.exchange import RailExchanges
from billfold.payments.files.store import list_files
from billfold.platform.dates import et_instant
from billfold.sandbox.control.clock_stepper import ClockStepper
from billfold.trading.settlement.store import list_closed, list_held, list_open
from billfold.trading.settlement.types import instruction_id_of

ENDS = messages.MessageEnds("CUSTUS33", "BLFDUS33", datetime(2025, 6, 3, 14, tzinfo=UTC))


class Custodian:
    """A custodian by hand: the bank's instructions are sent, and nobody answers them but the test."""

    def __init__(self, bank, desk):
        self.bank, self.desk, self.count = bank, desk, 0

    async def trade(self):
        [order] = await self.desk.send_orders()
        fill = await self.desk.fill_of(order)
        await self.desk.book(fill)
        await ClockStepper(self.bank).set_to(et_instant(date(2025, 6, 3), 10))
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
        await self.bank.ports[RailExchanges].custody.network_side().transmit(name, content)
        await CustodianFiles().process_all(self.bank)
        [file, *_] = await list_files(self.bank.pool, rail="CUSTODY", direction="IN")
        report = json.loads(file.report or "{}")
        stuck = [each["error"] for each in report.get("stuck", ())]
        mistakes = [each["reason"] for each in report.get("mistakes", ())]
        return file.state, [each["outcome"] for each in report.get("items", ())] + stuck + mistakes

    async def status(self):
        found = await list_open(self.bank.pool, self.desk.bank_id)
        found += await list_closed(self.bank.pool, self.desk.bank_id, 9)
        return [each.status for each in found]


@pytest.fixture
async def bank(bank_dsn):
    opened = await open_bank(bank_dsn, dealers=("citadel", "jpm"))
    sender = InstructionSender()
    silent = {"settlement-send": sender.send, "settlement-cancel": sender.cancel}
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
        ({"settled_on": date(2025, 6, 4)}, "HELD: It settled on 2025-06-04"),
        ({"settled_on": date(2025, 6, 2)}, "HELD: It settled on 2025-06-02"),
        ({"cusip": "912797MV6"}, "HELD: It settles 912797MV6"),
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
    status = messages.StatusAdvice(tx_id="NOT-OURS", failing="LACK")
    state, outcomes = await custodian.send(unknown, foreign, status, unread, right)
    assert state == "ARRIVED"
    assert [each for each in outcomes if each == "SETTLED"] == ["SETTLED"]
    assert sum("is not an instruction" in each for each in outcomes) == 1
    assert sum("There is no instruction" in each for each in outcomes) == 1
    assert sum("of the account ANOTHER" in each for each in outcomes) == 1
    assert sum("no effective settlement date" in each for each in outcomes) == 1
    assert await custodian.status() == ["SETTLED"]
    await expect_clean(bank)


@pytest.mark.parametrize("content", [b"not XML", b"<!DOCTYPE a [<!ENTITY b 'c'>]><Document>&b;</Document>"])
async def test_a_file_that_is_no_xml_is_refused(custodian, content):
    assert (await custodian.send_file(content))[0] == "REFUSED"


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
        ({"accepted": "NORE"}, "MATCHED"),
        ({"failing": "LACK"}, "FAILING"),
        ({"cancelled": "OTHR"}, "REJECTED"),
    ):
        await custodian.send(messages.StatusAdvice(tx_id=tx_id, **said))
        assert await custodian.status() == [status], said
    await expect_clean(bank)
