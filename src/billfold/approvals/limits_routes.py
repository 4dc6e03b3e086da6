"""The limits and features of a customer, with what is used of them: read by the rules that refuse.

Those of its members and of its applications are about other things: roles, rates of requests.
"""

from collections.abc import Iterator
from datetime import UTC, datetime, time, timedelta
from functools import partial
from typing import Annotated, Literal
from uuid import UUID

import msgspec

from billfold.accounts.agreements.rules import require_version
from billfold.accounts.counterparties.rules.verification_kinds import NAME_CHECKS_MAX
from billfold.accounts.counterparties.store import count_failed_names
from billfold.accounts.customers.store import list_features, list_own_features
from billfold.approvals.store.approval_rules import cap_text, list_rules, read_used
from billfold.http.caller import Call
from billfold.http.operations import MaybeInPath, get, with_scope
from billfold.http.schemas import one_of
from billfold.identity.partners.rules import FEATURES
from billfold.ledger.bank import Bank
from billfold.ledger.customers import CustomerRow, require_active
from billfold.oauth.caller import CustomerCaller
from billfold.payments.ach.rules.review import review_reason
from billfold.payments.ach.store import read_history
from billfold.payments.on_us.schemas import MOST_CENTS
from billfold.payments.wires.routes import UNVERIFIED_WIRES_FEATURE
from billfold.platform.database.usage_counts import limit_text, list_usage
from billfold.platform.dates import et_date, et_instant
from billfold.platform.errors import Refused
from billfold.platform.money import format_usd
from billfold.platform.settings.usage_limits import USAGE_LIMITS, forgotten_at

_EFFECTS = ("REFUSED", "REVIEWED")
_UNITS = ("COUNT", "CENTS")


class Limit(msgspec.Struct, kw_only=True):
    """A limit. What exceeds it is REFUSED, or REVIEWED by the bank first.

    `used` and `remaining` are null for a limit of one payment; `resets_at` is null if it never does.
    """

    name: str
    detail: str
    unit: Annotated[str, one_of(*_UNITS)]
    limit: int
    used: int | None
    remaining: int | None
    resets_at: datetime | None
    effect: Annotated[str, one_of(*_EFFECTS)] = "REFUSED"


class Feature(msgspec.Struct, kw_only=True):
    """A feature that the bank switches on, and why it is on or off."""

    name: str
    allows: str
    enabled: bool
    reason: str


class Restriction(msgspec.Struct, kw_only=True):
    """A problem that every payment of the customer meets now, with its `code`."""

    code: str
    detail: str


class Limits(msgspec.Struct, kw_only=True):
    """The limits and features of a customer, and what stops its payments now."""

    customer_id: UUID
    restrictions: list[Restriction]
    features: list[Feature]
    limits: list[Limit]
    object_type: Literal["Limits"] = "Limits"


@get("/api/v1/customers/{customer_id}/limits/", tag="limits")
@get("/api/v1/limits/", with_scope("customer.read", "customer"), tag="limits")
async def get_limits(caller: Call, bank: Bank, customer_id: MaybeInPath) -> Limits:
    """Get limits

    Returns each limit of a customer with what is used of it, its features, and what stops its payments now.
    """
    row = await caller.customer(bank, customer_id)
    if isinstance(caller, CustomerCaller):
        names: set[str] = {UNVERIFIED_WIRES_FEATURE}
        more = await _approval_caps(caller, bank) if caller.may("approval_rules.read") else []
    else:
        names, more = set(FEATURES), [await _ach_review(caller, bank, row)]
    return Limits(
        customer_id=row.customer_id,
        restrictions=list(_restrictions(bank, row, caller.now)),
        features=await _features(bank, row.customer_id, names),
        limits=[_largest_payment(), *more, *await _usage(caller, bank, row)],
    )


def _restrictions(bank: Bank, row: CustomerRow, now: datetime) -> Iterator[Restriction]:
    checks = [partial(require_active, row.account_status)]
    if row.role == "customer":
        checks.append(partial(require_version, row.agreement_version, bank.terms.agreements, et_date(now)))
    for check in checks:
        try:
            check()
        except Refused as refused:
            yield Restriction(code=refused.code, detail=refused.detail)


async def _features(bank: Bank, customer_id: UUID, names: set[str]) -> list[Feature]:
    enabled, own = await list_features(bank.pool, customer_id), await list_own_features(bank.pool, customer_id)
    reasons = {
        (True, True): "Switched on for this customer.",
        (True, False): "Switched on for all customers of the partner.",
        (False, True): "Switched off for this customer. Ask the bank to switch it on.",
        (False, False): "Not switched on. Ask the bank to switch it on.",
    }
    return [
        Feature(name=name, allows=FEATURES[name], enabled=name in enabled, reason=reasons[name in enabled, name in own])
        for name in sorted(names)
    ]


def _counted(name: str, detail: str, limit: int, used: int, **more: object) -> Limit:
    fields = {"name": name, "detail": detail, "limit": limit, "used": used, "remaining": max(limit - used, 0), **more}
    return msgspec.convert({"unit": "COUNT", **fields}, Limit)


def _largest_payment() -> Limit:
    detail = f"One payment moves at most {format_usd(MOST_CENTS)}."
    return Limit(
        name="payment", detail=detail, unit="CENTS", limit=MOST_CENTS, used=None, remaining=None, resets_at=None
    )


async def _ach_review(caller: Call, bank: Bank, row: CustomerRow) -> Limit:
    history = await read_history(bank.pool, row.customer_id, caller.now)
    most = bank.terms.ach_review_above_cents
    reason = review_reason(0, history, above_cents=most)
    detail = f"An operator decides about ACH originations beyond {format_usd(most)} a day"
    detail += "." if reason is None else f", and about each one now: {reason}"
    resets_at = et_instant(et_date(caller.now) + timedelta(days=1), 0)
    more = {"unit": "CENTS", "resets_at": resets_at, "effect": "REVIEWED"}
    return _counted("ach_originations.customer", detail, most, history.today_cents, **more)


async def _approval_caps(caller: CustomerCaller, bank: Bank) -> list[Limit]:
    day = bank.calendars.business_date(caller.now)
    more = {"unit": "CENTS", "resets_at": bank.calendars.closes_at(day)}
    return [
        _counted(f"approval_rule.{rule.rule_id}", f"{cap_text(rule)}.", rule.daily_cap, used, **more)
        for rule in await list_rules(bank.pool, caller.customer_id)
        if rule.enabled and rule.daily_cap is not None
        for used in [await read_used(bank.pool, caller.customer_id, rule, day)]
    ]


async def _usage(caller: Call, bank: Bank, row: CustomerRow) -> list[Limit]:
    """Return the limits of use per customer, for a partner also those that all its customers share."""
    subjects = {"customer": row.customer_id} | (
        {} if isinstance(caller, CustomerCaller) else {"partner": caller.partner_id}
    )
    named = {name: subjects[whose] for name in USAGE_LIMITS if (whose := name.split(".")[1]) in subjects}
    found = [
        _counted(
            name, f"{limit_text(name, most)} and day.", most, used, resets_at=until or forgotten_at(name, caller.wall)
        )
        for name, used, until in await list_usage(bank.pool, named, caller.wall)
        for most in [bank.settings.limits[name]]
    ]
    failed = await count_failed_names(bank.pool, row.customer_id, caller.now.date())
    detail = "Names given in a day that do not match the owners of their accounts."
    tomorrow = datetime.combine(caller.now.astimezone(UTC).date() + timedelta(days=1), time(), UTC)
    return [*found, _counted("name_checks.customer", detail, NAME_CHECKS_MAX, failed, resets_at=tomorrow)]
