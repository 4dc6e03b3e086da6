"""Explains by the audit log who did what to a thing, by name, as far as the reader may know it."""

from uuid import UUID

from billfold.accounts.explain.schemas import Explanation, happened, narrate
from billfold.accounts.explain.store import ROWS_MAX
from billfold.audit.store import list_entries_about
from billfold.http.caller import Call
from billfold.ledger.bank import Bank
from billfold.oauth.caller import CustomerCaller

_AUDIT_LOG = "team.read"
_ACTORS = {"OPERATOR": "the bank", "SYSTEM": "the bank, by itself", "INVITED": "an invited person"}
_OF_CUSTOMER = frozenset({"MEMBER", "CLIENT"})


async def explain_actions(caller: Call, bank: Bank, customer_id: UUID, object_id: UUID) -> Explanation | None:
    """Return the newest audited actions on a thing and who did each, oldest first; None without any.

    A member reads them who may read the audit log. The partner of a customer is not told the names of its people, nor
    is anybody those of the bank.
    """
    if not caller.may(_AUDIT_LOG):
        return None
    entries = await list_entries_about(bank.pool, customer_id, object_id, limit=ROWS_MAX)
    is_member = isinstance(caller, CustomerCaller)
    steps = []
    for each in reversed(entries):
        who = _ACTORS.get(each.actor, each.actor_name)
        if each.actor in _OF_CUSTOMER and not is_member:
            who = "the customer"
        verb = each.action.partition(".")[2].replace("_", " ").capitalize()
        steps.append(happened(f"{verb} by {who}", each.recorded_at))
    if not steps:
        return None
    words = "What people and programs did, by the clock on the wall, as the audit log has it."
    return narrate("Who did it", steps[-1].label, words, *steps)
