"""`billfold ach`: an entry is shown, reversed and refused in words."""

import os
from datetime import timedelta
from uuid import UUID

import pytest
from tests.fixtures.cli import SEED
from tests.support.commands import PARTNER

from billfold.accounts.commands import EnrolCustomer, OpenPocket
from billfold.accounts.counterparties.commands import AddCounterparty
from billfold.cli.resources import run_with_bank
from billfold.ledger.jobs.types import ScheduledJob
from billfold.payments.ach.commands import OriginateAch, ReceiveAch, ReceiveAchReturn
from billfold.payments.ach.rules.originate import ACH_WINDOW
from billfold.payments.ach.types import IncomingEntry
from billfold.payments.deposits.commands import ReceiveMoney
from billfold.platform import ids
from billfold.wiring.cli_context import Wiring

CUSTOMER, ENTRY, DEBIT, WAITS, CAME = (UUID(f"ac11de00-0000-4000-8000-00000000000{n}") for n in range(5))


class Originator:
    """A customer with a Pocket and a counterparty."""

    def __init__(self, bank):
        self.bank = bank

    async def do(self, kind, **fields):
        command = kind(caller="test", key=ids.new(), customers=(CUSTOMER,), **fields)
        return (await self.bank.engine.submit(command)).outcome

    async def settle(self):
        await self.do(EnrolCustomer, partner_id=PARTNER, role="customer", type="BUSINESS", name="N", profile={})
        pocket = await self.do(OpenPocket, partner_id=PARTNER, name="P", deposit_weeks=4, reinvestment_weeks=4)
        self.pocket_id, self.portal_id = UUID(pocket["pocket_id"]), UUID(pocket["portal_id"])
        await self.do(
            ReceiveMoney,
            rail="WIRE",
            portal_id=self.portal_id,
            pocket_id=self.pocket_id,
            amount=1_000_00,
            description="d",
            details={},
        )
        payee = await self.do(
            AddCounterparty,
            type="ach",
            verification="pre_verified",
            counterparty_name={"type": "business", "business_name": "Contoso"},
            details={"routing_number": "021000021", "account_number": "123456789", "account_type": "CHECKING"},
        )
        self.payee_id = UUID(payee["counterparty_id"])

    async def ask(self, ach_id, direction, cents):
        await self.do(
            OriginateAch,
            ach_id=ach_id,
            pocket_id=self.pocket_id,
            amount=cents,
            counterparty_id=self.payee_id,
            direction=direction,
            sec_code="PPD",
            description="DUES",
            references=(self.payee_id,),
        )

    async def send(self):
        at = await self.bank.now() + timedelta(days=9)
        await self.bank.job_runners[ACH_WINDOW](self.bank, ScheduledJob(ACH_WINDOW, ids.new(), None, at=at))

    async def receive(self, ach_id, cents):
        account = await self.bank.pool.fetchval(
            "SELECT account_number FROM portal WHERE portal_id = $1", self.portal_id
        )
        came = IncomingEntry(
            code="22",
            amount=cents,
            account_number=account,
            name="N",
            identification="",
            trace="091000010000001",
            bank="09100001",
            entry_class="PPD",
            company="CONTOSO",
            company_id="9",
            purpose="WAGES",
        )
        await self.do(
            ReceiveAch,
            ach_id=ach_id,
            file_id=ids.new(),
            portal_id=self.portal_id,
            pocket_id=self.pocket_id,
            entry=came,
            references=(ach_id,),
        )


async def live(bank):
    anna = Originator(bank)
    await anna.settle()
    await anna.ask(ENTRY, "CREDIT", 10_00)
    await anna.ask(DEBIT, "DEBIT", 20_00)
    await anna.send()
    await anna.ask(WAITS, "DEBIT", 20_00)
    await anna.do(
        ReceiveAchReturn,
        ach_id=DEBIT,
        code="R01",
        direction="DEBIT",
        amount=20_00,
        trace="1",
        arrived_at=await bank.now(),
        references=(DEBIT,),
    )
    await anna.receive(CAME, 7_00)


@pytest.fixture
def sent(founded, database_dsn, tmp_path, capsys):
    """An ACH credit that has gone, a debit that came back, one that waits, a credit that came."""
    environment = {
        "BILLFOLD_DATABASE_URL": database_dsn,
        "BILLFOLD_STATE_DIR": str(tmp_path),
        "BILLFOLD_SEED": SEED,
        "PATH": os.environ["PATH"],
    }
    run_with_bank(Wiring(environment), live)
    capsys.readouterr()


def test_an_entry_is_shown_and_forbidden_operations_are_rejected(billfold, sent):
    status, said = billfold("ach", "show", str(ENTRY))
    assert status == 0
    assert "IN_TRANSIT" in said
    assert "$10.00" in said
    for words, code in (
        (("cancel",), "ach-origination-not-pending"),
        (("retry",), "ach-origination-not-returned"),
        (("return", "--code", "R10"), "not-found"),
    ):
        status, said = billfold("ach", words[0], str(ENTRY), *words[1:])
        assert status == 1
        assert code in said
    status, said = billfold("ach", "return", str(ENTRY), "--code", "R99")
    assert status == 2
    assert "R10" in said
    status, said = billfold("ach", "show", str(CUSTOMER))
    assert (status, "no such ACH entry" in said) == (1, True)


def test_entries_are_listed_by_what_they_are(billfold, sent):
    def listed(*words):
        status, said = billfold("ach", "list", *words)
        assert status == 0, said
        names = {str(ENTRY): "entry", str(DEBIT): "debit", str(WAITS): "waits", str(CAME): "came"}
        return [names[word] for word in said.split() if word in names]

    assert set(listed()) == {"entry", "debit", "waits", "came"}
    assert listed("--status", "approved") == ["waits"]
    assert listed("--way", "RECEIVING") == ["came"]
    assert set(listed("--direction", "debit")) == {"debit", "waits"}
    assert listed("--trace", "091000010000001") == ["came"]
    assert len(listed("--customer", str(CUSTOMER))) == 4
    said = billfold("ach", "list", "--status", "FAILED")[1]
    for word in ("ORIGINATION", "DEBIT", "FAILED R01", "$20.00", str(CUSTOMER), "Mon 2025-06-02"):
        assert word in said
    no_such = (0, "✓ There are no such entries.")
    assert billfold("ach", "list", "--customer", str(ENTRY)) == no_such
    assert billfold("ach", "list", "--way", "RECEIVING", "--direction", "DEBIT") == no_such


def test_an_entry_sent_in_error_is_reversed_once(billfold, sent):
    assert billfold("ach", "reverse", str(ENTRY))[0] == 0
    status, said = billfold("ach", "reverse", str(ENTRY))
    assert (status, "ach-origination-not-reversible" in said) == (1, True), said


def test_a_waiting_entry_is_cancelled_and_a_returned_debit_is_retried(billfold, sent):
    assert billfold("ach", "cancel", str(WAITS)) == (0, "✓ The entry is cancelled.")
    assert "CANCELLED" in billfold("ach", "show", str(WAITS))[1]
    assert "FAILED insufficient funds R01" in billfold("ach", "show", str(DEBIT))[1]
    assert billfold("ach", "retry", str(DEBIT)) == (0, "✓ The entry goes with the next window.")
    status, said = billfold("ach", "retry", str(DEBIT))
    assert (status, "ach-origination-not-returned" in said) == (1, True), said


def test_a_received_entry_is_returned_at_its_receivers_request(billfold, sent):
    assert "RECEIVING CREDIT" in billfold("ach", "show", str(CAME))[1]
    assert billfold("ach", "return", str(CAME), "--code", "r23")[0] == 0
    assert "FAILED" in billfold("ach", "show", str(CAME))[1]
    status, said = billfold("ach", "return", str(CAME), "--code", "R23")
    assert (status, "ach-entry-not-returnable" in said) == (1, True), said


@pytest.mark.parametrize(
    "words",
    [
        ("ach", "list", "--status", "LOST"),
        ("ach", "list", "--customer", "ANNA"),
        ("ach", "show"),
        ("ach", "show", "4711"),
        ("ach", "cancel"),
        ("ach", "reverse", "4711"),
        ("ach", "retry", ""),
        ("ach", "return", str(ENTRY)),
        ("ach", "return", str(ENTRY), "--code", "C01"),
        ("ach", "send"),
        ("clearing", "--yesterday"),
        ("suspense", "return"),
        ("suspense", "return", "4711"),
        ("suspense", "assign", str(ENTRY)),
        ("suspense", "list", "--some"),
        ("adjustment", "create", str(ENTRY), "0", "--description", "x"),
        ("adjustment", "create", str(ENTRY), "25.00", "--description", "x"),
        ("adjustment", "create", str(ENTRY), "2500"),
        ("adjustment", "create", str(ENTRY), "2500", "--description", "x", "--type", "GIFT"),
        ("adjustment", "post", str(ENTRY), "2500", "--description", "x"),
        ("adjustment", "reverse", str(ENTRY), "--description", "x"),
    ],
    ids=" ".join,
)
def test_wrong_usage_is_rejected_before_a_database_is_opened(billfold, words):
    status, said = billfold(*words)
    assert status == 2, said
    assert "Usage" in said
