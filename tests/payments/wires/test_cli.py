"""`billfold wires`: what is asked for is shown, returned, kept and asked for in words."""

import asyncio
from typing import Any
from uuid import UUID

import pytest
from tests.fixtures.cli import SEED, fetch
from tests.support.commands import PARTNER
from tests.support.fedwire import Fedwire
from tests.support.whole_bank import Holder

from billfold.accounts.commands import EnrolCustomer, OpenPocket
from billfold.cli.resources import run_with_bank
from billfold.platform import ids
from billfold.wiring.cli_context import Wiring


@pytest.fixture
def wires(founded, database_dsn, tmp_path):
    """Two wires: one of ours that has settled, and one that arrived and is asked for."""

    async def prepare(bank):
        customer, fedwire = ids.new(), Fedwire(bank)
        fields: dict[str, Any] = {"caller": "test", "customers": (customer,), "partner_id": PARTNER}
        await bank.engine.submit(
            EnrolCustomer(key=ids.new(), role="customer", type="BUSINESS", name="N", profile={}, **fields)
        )
        opened = (
            await bank.engine.submit(
                OpenPocket(key=ids.new(), name="P", deposit_weeks=4, reinvestment_weeks=4, **fields)
            )
        ).outcome
        holder = Holder(bank, customer, UUID(opened["pocket_id"]), portal_id=UUID(opened["portal_id"]))
        await holder.deposit(5_000_00)
        sent = await fedwire.settled(holder)
        paid = await fedwire.payment("one", await fedwire.account_of(holder))
        await fedwire.drop("in.xml", paid)
        arrived = next(w for w in await fedwire.wires(holder) if w.direction == "INCOMING")
        await fedwire.room.simulation.ask_for(bank, customer, arrived.wire_id, reason="DUPL")
        return str(sent), str(arrived.wire_id)

    environment = {"BILLFOLD_DATABASE_URL": database_dsn, "BILLFOLD_STATE_DIR": str(tmp_path), "BILLFOLD_SEED": SEED}
    return run_with_bank(Wiring(environment), prepare)


def test_a_recalled_wire_is_listed_and_returned_once(billfold, wires):
    sent, arrived = wires
    status, said = billfold("wires", "cases", "--status", "open")
    assert (status, arrived in said, "DUPL" in said) == (0, True, True)
    status, said = billfold("wires", "return", arrived, "--reason", "dupl")
    assert status == 0
    assert said.startswith("✓ The return is the wire ")
    assert billfold("wires", "return", arrived) == (0, said)
    assert billfold("wires", "cases", "--status", "OPEN") == (0, "✓ No recall found.")
    status, said = billfold("wires", "refuse", arrived)
    assert (status, "No such case is open" in said) == (1, True)
    status, said = billfold("wires", "return", sent)
    assert (status, "wire-not-completed" in said) == (1, True)
    assert billfold("verify")[0] == 0


def test_a_recall_is_refused(billfold, wires, database_dsn):
    assert billfold("wires", "refuse", wires[1], "--reason", "LEGL")[0] == 0
    waiting = asyncio.run(fetch(database_dsn, "SELECT kind FROM wire_message WHERE imad IS NULL"))
    assert [row["kind"] for row in waiting] == ["camt.029"]
    status, said = billfold("wires", "cases")
    assert (status, "REFUSED" in said) == (0, True)


def test_an_outgoing_wire_is_recalled_once(billfold, wires):
    sent, arrived = wires
    status, said = billfold("wires", "recall", sent, "--reason", "DUPL")
    assert (status, "as case" in said) == (0, True)
    status, said = billfold("wires", "recall", sent)
    assert (status, "wire-already-recalled" in said) == (1, True)
    status, said = billfold("wires", "recall", arrived)
    assert (status, "INCOMING" in said) == (1, True)


def test_bad_usage_is_answered_with_what_to_do_next(billfold, wires):
    for words, expected in (
        (("return", wires[1], "--reason", "because"), "ISO 20022 code"),
        (("recall", wires[0], "--reason", "D"), "such as DUPL"),
        (("return", "W123"), "valid UUID"),
        (("cases", "--status", "LOST"), "accepted"),
        (("recall",), "Missing argument"),
    ):
        status, said = billfold("wires", *words)
        assert (status, expected in said) == (2, True), said
    for command in ("return", "recall", "refuse"):
        status, said = billfold("wires", command, str(ids.new()))
        assert (status, "There is no such wire" in said, "Next:" in said) == (1, True, True)
