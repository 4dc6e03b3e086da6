"""`billfold ach`: an entry is shown, reversed and refused in words."""

import os
from datetime import timedelta
from uuid import UUID

import pytest
from tests.interfaces.cli.test_commands import SEED, billfold, founded
from tests.whole_bank import PARTNER

from billfold.domain.ach import Incoming
from billfold.domain.agenda import Appointment
from billfold.flows.counterparties import AddCounterparty
from billfold.flows.enrol import EnrolCustomer
from billfold.flows.originate_ach import WINDOW, OriginateAch
from billfold.flows.pockets import OpenPocket
from billfold.flows.receive import ReceiveMoney
from billfold.flows.receive_ach import ReceiveAch
from billfold.flows.return_ach import ReturnAch
from billfold.interfaces.cli.opened import with_bank
from billfold.kit import ids
from billfold.wiring import Wiring

__all__ = ["billfold", "founded"]

CUSTOMER, ENTRY, DEBIT, WAITS, CAME = (
    UUID(f"ac11de00-0000-4000-8000-00000000000{n}") for n in range(5)
)


@pytest.fixture
def sent(founded, database_dsn, tmp_path):
    """An ACH credit that has gone, a debit that came back, one that waits, a credit that came."""

    async def prepare(bank):
        async def do(kind, **fields):
            command = kind(caller="test", key=ids.new(), customers=(CUSTOMER,), **fields)
            return (await bank.engine.submit(command)).outcome

        await do(
            EnrolCustomer, partner_id=PARTNER, role="customer", type="BUSINESS", name="N",
            profile={},
        )  # fmt: skip
        pocket = await do(
            OpenPocket, partner_id=PARTNER, name="P", deposit_weeks=4, reinvestment_weeks=4
        )
        pocket_id = UUID(pocket["pocket_id"])
        await do(
            ReceiveMoney, rail="WIRE", portal_id=UUID(pocket["portal_id"]), pocket_id=pocket_id,
            amount=1_000_00, description="d", details={},
        )  # fmt: skip
        payee = await do(
            AddCounterparty, type="ach", verification="pre_verified",
            counterparty_name={"type": "business", "business_name": "Contoso"},
            details={
                "routing_number": "021000021", "account_number": "123456789",
                "account_type": "CHECKING",
            },
        )  # fmt: skip
        payee_id = UUID(payee["counterparty_id"])
        await do(
            OriginateAch, ach_id=ENTRY, pocket_id=pocket_id, amount=10_00,
            counterparty_id=payee_id, direction="CREDIT", sec_code="PPD", description="PAYROLL",
            looks_at=(payee_id,),
        )  # fmt: skip
        row = await bank.pool.fetchrow("SELECT object_id, at FROM agenda WHERE kind = $1", WINDOW)
        await bank.agenda[WINDOW](bank, Appointment(WINDOW, row["object_id"], None, row["at"]))
        for ach_id in (DEBIT, WAITS):
            await do(
                OriginateAch, ach_id=ach_id, pocket_id=pocket_id, amount=20_00,
                counterparty_id=payee_id, direction="DEBIT", sec_code="WEB", description="DUES",
                looks_at=(payee_id,),
            )  # fmt: skip
            if ach_id == DEBIT:
                at = await bank.now() + timedelta(days=9)
                await bank.agenda[WINDOW](bank, Appointment(WINDOW, ids.new(), None, at))
        await do(
            ReturnAch, ach_id=DEBIT, code="R01", direction="DEBIT", amount=20_00, trace="1",
            arrived_at=await bank.now(), looks_at=(DEBIT,),
        )  # fmt: skip
        portal = await bank.pool.fetchrow(
            "SELECT portal_id, account_number FROM portal WHERE customer_id = $1", CUSTOMER
        )
        came = Incoming(
            code="22", amount=7_00, account_number=portal["account_number"], name="N",
            identification="", trace="091000010000001", bank="09100001", entry_class="PPD",
            company="CONTOSO", company_id="9", purpose="WAGES",
        )  # fmt: skip
        await do(
            ReceiveAch, ach_id=CAME, file_id=ids.new(), portal_id=portal["portal_id"],
            pocket_id=pocket_id, entry=came, looks_at=(CAME,),
        )  # fmt: skip

    environment = {
        "BILLFOLD_DATABASE_URL": database_dsn,
        "BILLFOLD_STATE_DIR": str(tmp_path),
        "BILLFOLD_SEED": SEED,
        "PATH": os.environ["PATH"],
    }
    with_bank(Wiring(environment), prepare)


def test_an_entry_is_shown_and_what_the_rules_forbid_is_said(billfold, sent):
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


def test_what_was_sent_in_error_is_reversed_once(billfold, sent):
    assert billfold("ach", "reverse", str(ENTRY))[0] == 0
    status, said = billfold("ach", "reverse", str(ENTRY))
    assert (status, "ach-origination-not-reversible" in said) == (1, True), said


def test_what_waits_is_called_back_and_what_came_back_is_sent_once_more(billfold, sent):
    status, said = billfold("ach", "cancel", str(WAITS))
    assert (status, "The entry is cancelled." in said) == (0, True), said
    assert "CANCELLED" in billfold("ach", "show", str(WAITS))[1]
    assert "FAILED insufficient funds R01" in billfold("ach", "show", str(DEBIT))[1]
    assert billfold("ach", "retry", str(DEBIT))[0] == 0
    status, said = billfold("ach", "retry", str(DEBIT))
    assert (status, "ach-origination-not-returned" in said) == (1, True), said


def test_what_was_taken_is_returned_as_its_receiver_asks(billfold, sent):
    assert "RECEIVING CREDIT" in billfold("ach", "show", str(CAME))[1]
    assert billfold("ach", "return", str(CAME), "--code", "r23")[0] == 0
    assert "FAILED" in billfold("ach", "show", str(CAME))[1]
    status, said = billfold("ach", "return", str(CAME), "--code", "R23")
    assert (status, "ach-entry-not-returnable" in said) == (1, True), said


@pytest.mark.parametrize(
    "words",
    [
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
        ("credit", "give", str(ENTRY), "0", "--description", "x"),
        ("credit", "give", str(ENTRY), "25.00", "--description", "x"),
        ("credit", "give", str(ENTRY), "2500"),
        ("credit", "give", str(ENTRY), "2500", "--description", "x", "--type", "GIFT"),
        ("credit", "adjust", str(ENTRY), "2500", "--description", "x"),
        ("credit", "correct", str(ENTRY), "--description", "x"),
    ],
    ids=" ".join,
)
def test_what_is_asked_wrongly_is_refused_before_anything_is_opened(billfold, words):
    status, said = billfold(*words)
    assert status == 2, said
    assert "Usage" in said
