"""The audit log of a company, filtered by the query, and as a CSV file."""

import re
from collections.abc import Mapping, Sequence
from typing import Any
from uuid import UUID

import msgspec
from litestar import get

from billfold.approvals.transfer_requests_routes import list_transfer_requests
from billfold.audit.store import CustomerAuditLogEntry
from billfold.batches.store import describe_batches
from billfold.http.raw_request import is_uuid
from billfold.platform.database.paging import LIMIT_MAX
from billfold.platform.dates import et_date
from billfold.team.audit_routes import get_audit_logs_csv, list_audit_logs, list_member_audit_logs
from billfold.team.routes import get_team
from billfold.web.console.audit_sentences import Sentence, sentence_of
from billfold.web.console.find import Hit, list_named
from billfold.web.console.lists import operation_filters, presets_of, read_listing
from billfold.web.console.team import Company, InCompany
from billfold.web.page_context import PageResponse, describe_device, path_id

_PAGE = 30
_SPAN = {"from": "timestamp_from", "to": "timestamp_to", "kind": "resource_type[]"}
_KINDS = {
    "Payments": (
        "transfer_request",
        "transfer_series",
        "batch",
        "wire",
        "ach",
        "transfer",
        "hold",
        "crypto_withdrawal",
    ),
    "Pockets": ("pocket", "portal"),
    "Counterparties": ("counterparty",),
    "Approval rules": ("approval_rule", "authorization_request", "policy"),
    "Cards": ("card", "card_dispute"),
    "Team and sign-in": ("member", "service_user", "user"),
    "Documents": ("report", "statement", "agreements"),
    "Applications and webhooks": ("oauth_client", "oauth_grant", "subscription", "request", "operation"),
    "Notifications": ("notification", "notification_audience"),
}
"""Kinds of entries, and the types of what they are about."""
_CHOICES = {"kind": _KINDS}
_PLACES = {
    "authorization_request": "{path}/approvals/changes/{id}",
    "batch": "{path}/batches/{id}",
    "counterparty": "{path}/counterparties/{id}",
    "member": "/team/{owner}/members/{id}",
    "oauth_client": "{path}/applications/{id}",
    "pocket": "{path}/pockets/{id}",
    "subscription": "{path}/developer/subscriptions/{id}",
    "transfer_request": "{path}/transfer-requests/{id}",
}
"""Where a type of what an entry is about is shown."""
_INVITE = re.compile(r" [0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}$")
"""The id of the invite in the name of an invited person, who has no other."""
_GONE = ("deleted", "removed", "revoked")


@get("/companies/{customer_id:str}/audit-log")
async def show_audit_log(company: InCompany) -> PageResponse:
    """Show the log, newest first."""
    member = company.page.query.get("member", "").strip()
    operation, names = list_audit_logs, _SPAN
    if member:
        path_id(member, "There is no such member.")
        operation, names = list_member_audit_logs, {**_SPAN, "member": "member_id"}
    listing = await read_listing(company, operation, names, limit=_PAGE, choices=_CHOICES)
    entries = listing.rows.items
    hits = await list_named(company)
    pockets = {each.path.rpartition("/")[2]: each.label for each in hits if each.kind == "Pocket"}
    hits += [*await _requests(company, entries, pockets), *await _batches(company, entries)]
    named = {each.path.replace("#", "/").rpartition("/")[2]: each for each in hits}
    return company.render(
        "audit_log",
        listing=listing._replace(presets=presets_of(et_date(company.page.now))),
        members=await _members(company),
        kinds=list(_KINDS),
        sentences={each.id: _sentence(company, each, named) for each in entries},
        actors={each.id: _INVITE.sub("", each.member_name) for each in entries},
        devices={each.id: describe_device(each.user_agent) for each in entries if each.user_agent},
        details={each.id: _lines(each.details) for each in entries},
    )


@get("/companies/{customer_id:str}/audit-log.csv")
async def download_audit_log(company: InCompany) -> PageResponse:
    """Download the filtered entries."""
    names = {**_SPAN, "member": "member_id"}
    return await company.api.download(get_audit_logs_csv, **operation_filters(company.page.query, names, _CHOICES))


def _sentence(company: Company, entry: CustomerAuditLogEntry, named: Mapping[str, Hit]) -> Sentence:
    """Return what an entry says, with the path of what it is about also where that has no name."""
    said = sentence_of(entry.action, entry.resource_id, entry.details, named)
    place = _PLACES.get(entry.resource_type)
    if said.path or place is None or not is_uuid(entry.resource_id or "") or entry.action.endswith(_GONE):
        return said
    return said._replace(path=place.format(path=company.path, owner=company.customer_id, id=entry.resource_id))


async def _batches(company: Company, entries: Sequence[CustomerAuditLogEntry]) -> list[Hit]:
    wanted = {UUID(each.resource_id) for each in entries if each.resource_type == "batch" and each.resource_id}
    if not wanted or not company.may("transfers.read"):
        return []
    found = await describe_batches(company.page.pool, company.customer_id, [*wanted])
    return [Hit(words, "Batch", f"{company.path}/batches/{key}") for key, words in found.items()]


async def _requests(
    company: Company, entries: Sequence[CustomerAuditLogEntry], pockets: Mapping[str, str]
) -> list[Hit]:
    """Return the newest transfer requests as what they pay, if an entry is about one."""
    if not any(each.action.startswith("transfer_request.") for each in entries) or not company.may("transfers.read"):
        return []
    listed = await company.api.get(list_transfer_requests, limit=LIMIT_MAX)
    return [
        Hit(_payment(each.transfer, pockets), "Transfer request", f"{company.path}/transfer-requests/{each.id}")
        for each in listed.items
    ]


def _payment(transfer: Any, pockets: Mapping[str, str]) -> str:  # noqa: ANN401 - the transfer of a request
    own = pockets.get(str((transfer.details or {}).get("destination_pocket_id", "")), "an own Pocket")
    return f"{transfer.amount.formatted} to {transfer.counterparty_name or own}"


async def _members(company: Company) -> dict[str, str]:
    """Return the names of all current and former members of the team, by their ids."""
    team = await company.api.get(get_team)
    return {
        str(each.member_id): f"{each.first_name} {each.last_name}".strip()
        for group in team.groups
        for each in group.members
    }


def _lines(details: dict[str, object]) -> str:
    """Return as JSON what of the details is no single value; those are shown by name."""
    nested = {name: each for name, each in details.items() if not isinstance(each, str | int | float)}
    return msgspec.json.format(msgspec.json.encode(nested)).decode() if nested else ""
