"""`billfold ach`: entries are listed and shown, and the operator cancels, reverses, retries and returns them."""

from datetime import timedelta

import msgspec
import pytest
from tests.payments.ach.rules.entries import INCOMING
from tests.payments.cli_bank import prepare
from tests.support.approvals import confirmed
from tests.support.small_rails import Customer

from billfold.ledger.types import ScheduledJob
from billfold.payments.ach.commands import ReceiveAch, ReceiveAchReturn
from billfold.payments.ach.rules.entries import ACH_WINDOW
from billfold.platform import ids

__all__ = ["prepare"]
UNKNOWN = "ac11de00-0000-4000-8000-000000000000"


async def live(bank):
    """Originate and receive entries; return their ids by name, and the customer's."""
    anna = Customer(bank, "Anna")
    await anna.settle_in(1_000_00)
    entry, debit = await anna.ach("CREDIT", 10_00), await anna.ach("DEBIT", 20_00)
    at = await bank.now() + timedelta(days=9)
    await bank.job_runners[ACH_WINDOW](bank, ScheduledJob(ACH_WINDOW, ids.new(), None, at=at))
    waits, came = await anna.ach("DEBIT", 20_00), ids.new()
    returned = {"code": "R01", "direction": "DEBIT", "amount": 20_00, "trace": "1", "arrived_at": await bank.now()}
    await anna.move(ReceiveAchReturn, debit, **returned)
    pocket = {"portal_id": anna.portal, "pocket_id": anna.pocket}
    received = msgspec.structs.replace(INCOMING, amount=7_00, account_number=anna.account)
    await anna.move(ReceiveAch, came, file_id=ids.new(), entry=received, **pocket)
    named = {"entry": entry, "debit": debit, "waits": waits, "came": came, "customer": anna.id}
    return {name: str(each) for name, each in named.items()}


@pytest.fixture
def sent(prepare):
    """An ACH credit that was sent, a returned debit, one that waits, a received credit."""
    return prepare(live)


def test_an_entry_is_shown_and_forbidden_operations_are_rejected(billfold, sent):
    status, said = billfold("ach", "show", sent["entry"])
    assert status == 0
    assert "IN_TRANSIT" in said
    assert "$10.00" in said
    for words, code in (
        (("cancel",), "ach-origination-not-pending"),
        (("retry",), "ach-origination-not-returned"),
        (("return", "--code", "R10"), "`billfold ach --help` names"),
    ):
        status, said = billfold("ach", words[0], sent["entry"], *words[1:])
        assert status == 1
        assert code in said
    status, said = billfold("ach", "return", sent["entry"], "--code", "R99")
    assert status == 2
    assert "R10" in said
    status, said = billfold("ach", "show", UNKNOWN)
    assert (status, "no such ACH entry" in said) == (1, True)


def test_ach_entries_are_listed_by_status_direction_trace_and_customer(billfold, sent):
    def listed(*words):
        status, said = billfold("ach", "list", *words)
        assert status == 0, said
        names = {each: name for name, each in sent.items() if name != "customer"}
        return [names[word] for word in said.split() if word in names]

    assert set(listed()) == {"entry", "debit", "waits", "came"}
    assert listed("--status", "approved") == ["waits"]
    assert listed("--way", "RECEIVING") == ["came"]
    assert set(listed("--direction", "debit")) == {"debit", "waits"}
    assert listed("--trace", INCOMING.trace) == ["came"]
    assert len(listed("--customer", sent["customer"])) == 4
    said = billfold("ach", "list", "--status", "FAILED")[1]
    for word in ("ORIGINATION", "DEBIT", "FAILED R01", "$20.00", sent["customer"], "Mon 2025-06-02"):
        assert word in said
    no_such = (0, "✓ There are no such entries.")
    assert billfold("ach", "list", "--customer", sent["entry"]) == no_such
    assert billfold("ach", "list", "--way", "RECEIVING", "--direction", "DEBIT") == no_such


def test_an_entry_sent_in_error_is_reversed_once(billfold, sent):
    confirmed(billfold, billfold("ach", "reverse", sent["entry"]))
    status, said = billfold("ach", "reverse", sent["entry"])
    assert (status, "ach-origination-not-reversible" in said) == (1, True), said


def test_a_waiting_entry_is_cancelled_and_a_returned_debit_is_retried(billfold, sent):
    assert billfold("ach", "cancel", sent["waits"]) == (0, "✓ The entry is cancelled.")
    assert "CANCELLED" in billfold("ach", "show", sent["waits"])[1]
    assert "FAILED insufficient funds R01" in billfold("ach", "show", sent["debit"])[1]
    assert billfold("ach", "retry", sent["debit"]) == (0, "✓ The entry goes with the next window.")
    status, said = billfold("ach", "retry", sent["debit"])
    assert (status, "ach-origination-not-returned" in said) == (1, True), said


def test_a_received_entry_is_returned_at_the_request_of_the_receiver(billfold, sent):
    assert "RECEIVING CREDIT" in billfold("ach", "show", sent["came"])[1]
    said = confirmed(billfold, billfold("ach", "return", sent["came"], "--code", "r23"))
    assert f"ACH entry {sent['came']}: APPLIED" in said
    assert "FAILED" in billfold("ach", "show", sent["came"])[1]
    status, said = billfold("ach", "return", sent["came"], "--code", "R23")
    assert (status, "ach-entry-not-returnable" in said) == (1, True), said


@pytest.mark.parametrize(
    "words",
    [
        ("ach", "list", "--status", "LOST"),
        ("ach", "show", "4711"),
        ("ach", "return", UNKNOWN, "--code", "C01"),
        ("suspense", "assign", UNKNOWN),
        ("adjustment", "create", UNKNOWN, "0", "--description", "x"),
        ("adjustment", "create", UNKNOWN, "25.00", "--description", "x"),
        ("adjustment", "create", UNKNOWN, "2500", "--description", "x", "--type", "GIFT"),
        ("adjustment", "post", UNKNOWN, "2500", "--description", "x"),
    ],
    ids=" ".join,
)
def test_invalid_ach_command_line_usage_is_refused_before_opening_the_database(billfold, words):
    status, said = billfold(*words)
    assert status == 2, said
    assert "Usage" in said
