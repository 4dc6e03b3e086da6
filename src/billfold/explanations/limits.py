"""Explains the limits of a customer: the setting, its scope, the payments that used it, and when it resets."""

from collections.abc import Sequence
from uuid import UUID

from billfold.accounts.explain.schemas import Explanation, Formula, Input, Row, Unit, explain, given, happened, narrate
from billfold.approvals.limits_routes import Limit, Limits
from billfold.explanations import store
from billfold.http.caller import Call
from billfold.http.schemas import usd
from billfold.ledger.bank import Bank
from billfold.platform.dates import et_date, et_instant
from billfold.platform.settings.usage_limits import USAGE_LIMITS

_RULE = "approval_rule"
LABELS = {
    "counterparties.customer": "New payees in a day",
    "pockets.customer": "New Pockets in a day",
    "portals.customer": "New portals in a day",
    "documents.customer": "Documents in a day",
    "disputes.customer": "Disputes of card payments in a day",
    "backtests.customer": "Backtests of policies in a day",
    "micro_deposits.customer": "Accounts checked by small deposits in a day",
    "verification_tries.customer": "Tries to confirm small deposits in a day",
    "account_links.customer": "Accounts linked at other banks in a day",
    "application_checks.customer": "Checks of applications in a day",
    "cards.customer": "New cards in a day",
    "name_checks.customer": "Payees in a day whose name is not that of the account's owner",
    "payment": "Largest payment",
    "ach_originations.customer": "ACH payments in a day before the bank reviews them",
}


def label_of(limit: Limit) -> str:
    """Return what a limit is called: that of an approval rule by the rule, another by its name."""
    return LABELS.get(limit.name) or limit.detail.rstrip(".")


async def explain_limits(shown: Limits, caller: Call, bank: Bank) -> Explanation:
    """Explain each limit by what is used of it."""
    parts = []
    for each in shown.limits:
        rows = await _rows_of(each.name, shown.customer_id, caller, bank)
        of_one = narrate(each.name, usd(each.limit).formatted, f"{each.detail} {_scope_of(each.name)}")
        parts.append(of_one if each.used is None else _explain_limit(each, rows))
    restrictions = [happened(each.code, each.detail) for each in shown.restrictions]
    words = "What a payment exceeds of them is refused, or reviewed by the bank first."
    return narrate("Limits", "RESTRICTED" if restrictions else "IN_FORCE", words, *restrictions, parts=parts)


def _explain_limit(found: Limit, rows: Sequence[Row]) -> Explanation:
    unit = Unit.CENTS if found.unit == "CENTS" else Unit.COUNT
    named = [given("u", each.label, each.amount.value, unit, rows=[each]) for each in rows if each.amount]
    if rest := (found.used or 0) - sum(int(each.value) for each in named):
        named.append(given("u", "Other uses" if named else "Used", rest, unit))
    return explain(
        found.name,
        f"{found.detail} {_scope_of(found.name)} What exceeds it is {found.effect.lower()}.",
        Formula("R", "max(0, L - sum(u))", unit, "Left"),
        comes_to=found.remaining or 0,
        inputs=[given("L", "Limit", found.limit, unit), *named, *_resets(found)],
    )


def _resets(found: Limit) -> list[Input]:
    return [] if found.resets_at is None else [given("T", "Resets", found.resets_at, Unit.INSTANT)]


def _scope_of(name: str) -> str:
    if name in USAGE_LIMITS:
        whose = "all customers of the partner share it" if name.endswith(".partner") else "it is that of this customer"
        return f"A setting of the bank; {whose}."
    return "A rule of this customer's team." if name.startswith(_RULE) else "A setting of the bank, per customer."


async def _rows_of(name: str, customer_id: UUID, caller: Call, bank: Bank) -> list[Row]:
    if name.startswith(f"{_RULE}.") and caller.may("transfers.read"):
        day = bank.calendars.business_date(caller.now)
        return await store.list_requests_under(bank.pool, customer_id, UUID(name.removeprefix(f"{_RULE}.")), day)
    if name == "ach_originations.customer":
        return await store.list_originated(bank.pool, customer_id, et_instant(et_date(caller.now), 0))
    return []
