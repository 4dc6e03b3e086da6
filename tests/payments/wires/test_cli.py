"""`billfold wires`: show, return, refuse to return, and recall wires."""

import asyncio
import re

import pytest
from tests.fixtures.cli import fetch
from tests.payments.cli_bank import prepare
from tests.support.approvals import confirmed
from tests.support.fedwire import Fedwire
from tests.support.small_rails import Customer
from tests.support.whole_bank import Holder

from billfold.platform import ids

__all__ = ["prepare"]


@pytest.fixture
def wires(prepare):
    """Two wires: one of ours that has settled, and one that arrived and is recalled."""

    async def live(bank):
        anna, fedwire = Customer(bank, "Anna"), Fedwire(bank)
        await anna.settle_in(5_000_00)
        holder = Holder(bank, anna.id, anna.pocket, portal_id=anna.portal)
        sent = await fedwire.settled(holder)
        await fedwire.drop("in.xml", await fedwire.payment("one", anna.account))
        arrived = next(w for w in await fedwire.wires(holder) if w.direction == "INCOMING")
        await fedwire.room.ask_for(bank, anna.id, arrived.wire_id, reason="DUPL")
        return str(sent), str(arrived.wire_id)

    return prepare(live)


def test_a_recalled_wire_is_listed_and_returned_once(billfold, wires):
    sent, arrived = wires
    status, said = billfold("wires", "cases", "--status", "open")
    assert (status, arrived in said, "DUPL" in said) == (0, True, True)
    made = billfold("wires", "return", arrived, "--reason", "dupl")
    assert (made[0], f"wire {arrived}" in made[1]) == (0, True), made
    assert arrived in billfold("wires", "cases", "--status", "open")[1], "one operator returns nothing"
    said = confirmed(billfold, made)
    assert re.search("APPLIED, wire [0-9a-f-]{36}", said), said
    status, said = billfold("wires", "return", arrived)
    assert (status, "wire-already-returned" in said) == (1, True), said
    assert billfold("wires", "cases", "--status", "OPEN") == (0, "✓ No recall found.")
    status, said = billfold("wires", "refuse", arrived)
    assert (status, "No such case is open" in said) == (1, True)
    status, said = billfold("wires", "return", sent)
    assert (status, "wire-not-completed" in said) == (1, True)
    assert billfold("verify")[0] == 0


def test_an_operator_refuses_a_wire_recall(billfold, wires, database_dsn):
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


def test_a_wires_command_with_a_bad_reason_or_unknown_wire_is_refused_with_a_next_step(billfold, wires):
    for words, expected in (
        (("return", wires[1], "--reason", "because"), "ISO 20022 code"),
        (("recall", wires[0], "--reason", "D"), "such as DUPL"),
    ):
        status, said = billfold("wires", *words)
        assert (status, expected in said) == (2, True), said
    for command in ("return", "recall", "refuse"):
        status, said = billfold("wires", command, str(ids.new()))
        assert (status, "There is no such wire" in said, "Next:" in said) == (1, True, True)
