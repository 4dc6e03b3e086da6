"""The search of a team by a few words, as far as the member's role reads.

A company finds what it can do, payees, Pockets, people, requests, and payments and trades by kind, month, amount or
words; a partner customers, amounts, ids and the numbers of payments. Everything is read through the member's own
access or by the team's id, so nothing foreign is ever found.
"""

import asyncio
import re
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from contextlib import suppress
from datetime import timedelta
from typing import Any, NamedTuple
from uuid import UUID
from zoneinfo import ZoneInfo

from litestar import get
from rapidfuzz import fuzz, process, utils

from billfold.accounts.counterparties.routes import get_counterparty
from billfold.accounts.counterparties.store import list_by_ids, list_payee_names
from billfold.accounts.customers.routes import list_customers
from billfold.accounts.pockets.routes import get_pocket
from billfold.accounts.pockets.store import list_not_closed
from billfold.accounts.trades.routes import list_customer_trades
from billfold.accounts.transactions.routes import get_transaction, list_own_transactions, list_transactions
from billfold.accounts.transactions.schemas import Transaction
from billfold.approvals.transfer_requests_routes import get_transfer_request, list_transfer_requests
from billfold.events.routes import get_event
from billfold.events.webhooks.routes import get_subscription
from billfold.http.operations import Operation
from billfold.http.raw_request import is_uuid
from billfold.onboarding.applications.routes import get_business_application, get_individual_application
from billfold.pages.theme import format_ending, with_query
from billfold.platform.dates import et_date, format_day
from billfold.platform.errors import InvalidInput, NotFound
from billfold.servicing.search import search
from billfold.team.routes import get_team
from billfold.web.console.customers import name_of
from billfold.web.console.find_terms import Terms, is_like, terms_of
from billfold.web.console.lists import TRANSACTION_FILTERS, operation_filters
from billfold.web.console.partner import Partner
from billfold.web.console.team import ApiTeam, Company, InTeam, paths_of
from billfold.web.forms import cents_of
from billfold.web.page_context import PageResponse

_TEXT_MAX, _SHOWN_MAX, _GROUP_MAX, _READ_MAX = 100, 8, 5, 100
_SUGGESTED = 4
_DAY, _CHARGED_WITHIN = timedelta(days=1), timedelta(days=10)
_ALIKE = 72
"""Two letters in the wrong order are alike; other words are not."""
_BY_ID = (
    (get_pocket, "pocket_id", "pockets", "Pocket", "pockets.read"),
    (get_transaction, "transaction_id", "transactions", "Transaction", "pockets.read"),
    (get_counterparty, "counterparty_id", "counterparties", "Counterparty", "transfers.read"),
    (get_transfer_request, "transfer_id", "transfer-requests", "Transfer request", "transfers.read"),
)
_BY_ID_OF_PARTNER = (
    (get_business_application, "application_id", "applications", "Application", "applications.read"),
    (get_individual_application, "application_id", "applications/persons", "Application", "applications.read"),
    (get_event, "event_id", "developer/events", "Event", "subscriptions.read"),
    (get_subscription, "subscription_id", "developer/subscriptions", "Subscription", "subscriptions.read"),
)
Sought = tuple[Operation, str, str, str, str]
_ACTIONS = (
    ("Pay someone", "send money, transfer, wire, payment", "{path}/move-money", "transfers.write"),
    ("Open a Pocket", "new, create account", "{path}/pockets/new", "pockets.write"),
    ("Add a counterparty", "new payee, supplier, bank account", "{path}/counterparties/new", "transfers.write"),
    ("Upload a batch", "new payments, csv, file", "{path}/batches/new", "transfers.write"),
    ("Request a report", "new, export, accounting", "{path}/reports/new", "reports.write"),
    ("Invite a member", "new user, person, add to the team", "/team/{owner}/invite", "team.write"),
    ("Propose an approval rule", "new, limit, approvers", "{path}/approval-rules/new", "approval_rules.write"),
    ("Change the policy", "limits, rules, CEL", "{path}/policy/edit", "approval_rules.write"),
    ("Add a webhook subscription", "new, developer", "{path}/developer/subscriptions/new", "subscriptions.write"),
)
"""What a member can do: what it is called, other words for it, the page, and the scope it needs."""


class Hit(NamedTuple):
    """A place that was found, with the amount of a payment, and its status unless it is settled."""

    label: str
    kind: str
    path: str
    detail: str = ""
    amount: str = ""
    status: str = ""


async def _disambiguate(company: Company, hits: list[Hit]) -> list[Hit]:
    """Return hits, counterparties of one name with the ends of their accounts and their statuses."""
    often = Counter(each.label for each in hits if each.kind == "Counterparty")
    keys = [
        UUID(each.path.rpartition("/")[2]) for each in hits if often[each.label] > 1 and each.kind == "Counterparty"
    ]
    rows = await list_by_ids(company.page.pool, company.customer_id, keys) if keys else []
    facts = {
        f"{company.path}/counterparties/{row.counterparty_id}": ", ".join(
            [*([format_ending(row.account_number)] if row.account_number else []), row.status.capitalize()]
        )
        for row in rows
    }
    return [each._replace(detail=facts.get(each.path, each.detail)) for each in hits]


@get(paths_of("/find"))
async def find(team: InTeam) -> PageResponse:
    """Show what a text finds, in groups by kind; without one, what can be done, and the newest payments."""
    text = team.page.query.get("q", "").strip()[:_TEXT_MAX]
    if isinstance(team, Company):
        hits, more = await (_in_company(team, text) if text else _suggested(team))
    else:
        hits, more = (await _in_partner(team, text) if text else []), {}
    groups: dict[str, list[Hit]] = {}
    for each in hits:
        groups.setdefault(each.kind, []).append(each)
    words = "|".join(re.escape(each) for each in sorted(text.split(), key=len, reverse=True) if len(each) > 1) or "(?!)"
    parts_of = re.compile(f"({words})", re.IGNORECASE).split
    return team.render("find", text=text, groups=groups, more=more, parts_of=parts_of)


Found = tuple[list[Hit], Mapping[str, str]]
"""What was found, and by the kinds the pages that list all of it."""


async def _in_company(company: Company, text: str) -> Found:
    if is_uuid(text):
        return await _by_id(company, text, _BY_ID), {}
    named, terms = await list_named(company), terms_of(text, et_date(company.clock.now))
    found = await asyncio.to_thread(alike, text, [each.label for each in named], limit=_SHOWN_MAX)
    hits = await _disambiguate(company, [named[each] for each in found])
    pockets = {each.path: each.label for each in named if each.kind == "Pocket"}
    payments, trades, requests = await asyncio.gather(
        _payments(company, text, terms, next((each.label for each in hits if each.kind == "Counterparty"), "")),
        _trades(company, terms),
        _requests(company, text),
    )
    items, filters = payments
    if "earnings" in terms.kinds:
        hits += [Hit(label, "Pocket", f"{path}#earnings", "Earnings") for path, label in pockets.items()][:_GROUP_MAX]
    hits += [_payment_hit(company, each, pockets) for each in items]
    hits += [*trades, *requests, *_actions(company, text)]
    return hits, {
        "Transaction": f"{company.path}/transactions?{with_query(filters)}",
        "Trade": f"{company.path}/trades",
    }


async def _suggested(company: Company) -> Found:
    hits = _actions(company, "")[:_SUGGESTED]
    if company.may("pockets.read"):
        listed = await company.api.get(list_own_transactions, limit=_GROUP_MAX)
        hits += [_payment_hit(company, each, {}) for each in listed.items]
    return hits, {"Transaction": f"{company.path}/transactions"}


def _actions(company: Company, text: str) -> list[Hit]:
    """Return what the member may do and each word of a text is about."""
    sought = text.lower().split()
    return [
        Hit(label, "Action", path.format(path=company.path, owner=company.customer_id))
        for label, others, path, scope in _ACTIONS
        if company.may(scope)
        and all(any(is_like(word, each) for each in re.findall(r"\w+", f"{label} {others}".lower())) for word in sought)
    ]


async def _payments(
    company: Company, text: str, terms: Terms, payee: str
) -> tuple[list[Transaction], Mapping[str, str]]:
    """Return the newest payments of the first of several filters that finds any, and these filters."""
    if not company.may("pockets.read"):
        return [], {}
    tried = list[Mapping[str, str]]()
    for filters in (*_filters_of(terms), {"text": text}, {"text": payee}):
        wanted = {name: each for name, each in filters.items() if each}
        if not wanted or wanted in tried:  # to look for a text, a thousand payments are decrypted
            continue
        tried.append(wanted)
        with suppress(InvalidInput):
            values = operation_filters(wanted, TRANSACTION_FILTERS)
            listed = await company.api.get(list_own_transactions, limit=_GROUP_MAX, **values)
            if listed.items:
                return listed.items, wanted
    return [], {}


def _filters_of(terms: Terms) -> list[dict[str, str]]:
    """Return the filters of payments that mean the terms, the closest first; none if they mean trades."""
    kinds = terms.kinds
    meant = {"text": terms.text, "direction": kinds.get("direction", ""), "type": kinds.get("type", "")}
    if terms.cents:
        meant |= {f"amount_{end}": f"{cents / 100:.2f}" for end, cents in zip(("from", "to"), terms.cents, strict=True)}
    if "activity" in kinds and not any(meant.values()):
        return []
    if terms.days is None:
        return [meant]
    first, last = terms.days
    if kinds.get("type") != "FEE":
        return [meant | {"from": str(first), "to": str(last)}]
    # The fee of a month is booked in the next, in earlier releases without the name of the month.
    charged = {"from": str(last + _DAY), "to": str(last + _CHARGED_WITHIN)}
    return [meant | {"text": f"{first:%B %Y} {terms.text}".strip()}, meant | charged]


def _payment_hit(company: Company, of: Any, pockets: Mapping[str, str]) -> Hit:  # noqa: ANN401 - any variant
    booked = format_day(of.time_booked.astimezone(ZoneInfo(company.page.user.time_zone)).date())
    facts = [booked, of.title, pockets.get(f"{company.path}/pockets/{of.pocket_id}"), of.description]
    shown = dict.fromkeys(each for each in facts if each and each != of.headline)
    sign = "+" if of.direction == "CREDIT" else "\N{MINUS SIGN}"
    amount = f"{sign}{of.amount.formatted.removeprefix('-')}"
    path, status = f"{company.path}/transactions/{of.id}", "" if of.status == "SETTLED" else of.status
    other = of.counterparty.get("pocket_id") if isinstance(getattr(of, "counterparty", None), dict) else None
    label = pockets.get(f"{company.path}/pockets/{other}")
    label = f"{'To' if of.direction == 'DEBIT' else 'From'} {label}" if label else of.headline
    return Hit(label, "Transaction", path, ", ".join(shown), amount, status)


_ACTIVITY_NAMES = {"BUY": "Purchase", "SELL": "Sale", "MATURITY": "Maturity"}


async def _trades(company: Company, terms: Terms) -> list[Hit]:
    if "activity" not in terms.kinds or not company.may("pockets.read"):
        return []
    first, last = terms.days or (None, None)
    listed = await company.api.get(list_customer_trades, limit=_READ_MAX, book_date_from=first, book_date_to=last)
    return [
        Hit(
            f"{_ACTIVITY_NAMES[terms.kinds['activity']]} of {each.cusip}",
            "Trade",
            f"{company.path}/pockets/{each.pocket_id}/trades/{each.id}",
            f"{format_day(each.book_date)}, ${each.quantity * 100:,} face value",
            each.notional.formatted,
            "" if each.status == "SETTLED" else each.status,
        )
        for each in listed.items
        if each.__struct_config__.tag == terms.kinds["activity"]
    ][:_GROUP_MAX]


async def _requests(company: Company, text: str) -> list[Hit]:
    """Return requests that wait for approval and have each word of a text in payee, description, type or amount."""
    if not company.may("transfers.read"):
        return []
    hits = []
    for each in (await company.api.get(list_transfer_requests, status="PENDING", limit=_READ_MAX)).items:
        it = each.transfer
        said = f"{it.counterparty_name} {it.description} {it.type} {it.amount.formatted}".lower()
        if all(word in said for word in text.lower().split()):
            detail = f"{it.description}, by {each.requested_by.first_name} {each.requested_by.last_name}".strip(", ")
            name, path = it.counterparty_name or "Between own Pockets", f"{company.path}/transfer-requests/{each.id}"
            hits.append(Hit(name, "Transfer request", path, detail, it.amount.formatted, each.status))
    return hits[:_GROUP_MAX]


async def _in_partner(partner: ApiTeam, text: str) -> list[Hit]:
    assert isinstance(partner, Partner)
    customers, hits = f"{partner.path}/customers", list[Hit]()
    for each in await search(partner.bank, text, partner.row.partner_id):
        name = each.listing.columns[0].name
        hits += [Hit(row[name], each.listing.one, f"{customers}/{row['customer_id']}") for row in each.rows]
    if is_uuid(text):
        return [*hits, *await _by_id(partner, text, _BY_ID_OF_PARTNER)]
    listed = await partner.api.get(list_customers, name=text, limit=_SHOWN_MAX)
    hits += [Hit(name_of(each), "Customer", f"{customers}/{each.id}") for each in listed.items]
    return [*hits, *await _by_amount(partner, text)]


async def list_named(company: Company) -> list[Hit]:
    """Return everything of the company that has a name and that the member may read."""
    pool, path, owner = company.page.pool, company.path, company.customer_id
    hits: list[Hit] = []
    if company.may("transfers.read"):
        names = await list_payee_names(pool, owner)
        hits += [Hit(name, "Counterparty", f"{path}/counterparties/{key}") for key, name in names]
    if company.may("pockets.read"):
        pockets = await list_not_closed(pool, owner)
        hits += [Hit(each.name, "Pocket", f"{path}/pockets/{each.pocket_id}") for each in pockets]
    if company.may("team.read"):
        team = await company.api.get(get_team)
        people = [each for group in team.groups for each in group.members if not each.is_service_user]
        hits += [
            Hit(f"{each.first_name} {each.last_name}", "Person", f"/team/{owner}#{each.member_id}", each.role.title())
            for each in people
        ]
    return hits


def alike(text: str, names: Sequence[str], *, limit: int) -> list[int]:
    """Return the positions of the names that are like a text: words that begin with it first, then the most alike."""
    found = process.extract(
        text, names, scorer=fuzz.WRatio, processor=utils.default_process, limit=None, score_cutoff=_ALIKE
    )
    begins = re.compile(rf"\b{re.escape(text)}", re.IGNORECASE).search
    return [position for _, _, position in sorted(found, key=lambda each: not begins(each[0]))][:limit]


async def _by_amount(partner: Partner, text: str) -> list[Hit]:
    """Return the newest transactions of an amount like 1,250.50, each on the page of its customer."""
    if not partner.may("pockets.read"):
        return []
    try:
        cents = cents_of("q", text)
        listed = await partner.api.get(list_transactions, amount_from=cents, amount_to=cents, limit=_SHOWN_MAX)
    except InvalidInput:
        return []
    found = partner.page.server.bank.directory.find
    keys = [await found("pocket", each.pocket_id) for each in listed.items]
    return [
        Hit(
            each.headline,
            "Transaction",
            f"{partner.path}/customers/{key.customer_id}#transactions",
            amount=each.amount.formatted,
        )
        for each, key in zip(listed.items, keys, strict=True)
        if key is not None
    ]


async def _by_id(team: ApiTeam, text: str, kinds: Iterable[Sought]) -> list[Hit]:
    for operation, name, place, kind, scope in kinds:
        if not team.may(scope):
            continue
        with suppress(NotFound):
            await team.api.get(operation, **{name: text})
            return [Hit(text, kind, f"{team.path}/{place}/{text.lower()}")]
    return []
