"""`billfold ach`: an entry is shown, reversed and refused in words."""

import os
from uuid import UUID

import pytest
from tests.interfaces.cli.test_commands import SEED, billfold, founded
from tests.whole_bank import PARTNER

from billfold.domain.agenda import Appointment
from billfold.flows.counterparties import AddCounterparty
from billfold.flows.enrol import EnrolCustomer
from billfold.flows.originate_ach import WINDOW, OriginateAch
from billfold.flows.pockets import OpenPocket
from billfold.flows.receive import ReceiveMoney
from billfold.interfaces.cli.opened import with_bank
from billfold.kit import ids
from billfold.wiring import Wiring

__all__ = ["billfold", "founded"]

CUSTOMER, ENTRY = ids.new(), ids.new()


@pytest.fixture
def sent(founded, database_dsn, tmp_path):
    """An ACH credit that has gone with its window."""

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
