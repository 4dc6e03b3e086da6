"""Incoming payments are accepted where allowed, and otherwise returned."""

from uuid import UUID

from billfold.accounts.portals.commands import OpenPortal


def test_a_payment_to_a_portal_of_a_different_rail_is_returned(teller):
    pocket = teller.pocket()
    opened = teller.do(OpenPortal, pocket_id=pocket.pocket_id, name="ACH only", payment_rails=("ACH",))
    teller.portals[pocket.pocket_id] = UUID(opened["portal_id"])

    wired = teller.deposit(pocket, 1_000_00, rail="WIRE")
    entered = teller.deposit(pocket, 1_000_00, rail="ACH")

    assert wired == {"status": "REJECTED", "reason": "ACCOUNT_UNAVAILABLE"}
    assert entered["status"] == "COMPLETED"
    assert pocket.inflow == 1_000_00
