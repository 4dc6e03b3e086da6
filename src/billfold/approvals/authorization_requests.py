"""Requests for sensitive changes: made, decided, and ended when a customer is closed.

A change of an approval rule is applied in the transaction of its confirmation. For other changes
that transaction schedules the job that applies them.

Members of a closed customer keep reading: its access tokens are those of viewers.
"""

from collections.abc import Callable
from datetime import datetime
from functools import partial
from typing import Any, Final
from uuid import UUID

import msgspec

from billfold.approvals import rules, types
from billfold.approvals.store.approval_rules import find_rule, insert, put_rule, remove_rule, update
from billfold.approvals.store.policies import find_policy
from billfold.approvals.store.requests import AUTHORIZATION_REQUESTS, TRANSFER_REQUESTS, RequestKind, RequestType
from billfold.approvals.store.reviews import list_other_members, list_team, record_review, users_behind
from billfold.approvals.types import Actor, ApprovalRequirement, AuthorizationRequestRow
from billfold.audit.record import AuditedAction, audited
from billfold.events import kinds
from billfold.events.changes import job_of, report
from billfold.events.notifications import notify
from billfold.events.payloads import PolicyPayload
from billfold.events.webhooks.subscriptions import disable_subscriptions
from billfold.identity.members import store
from billfold.identity.members.rules import Member, permissions_of
from billfold.ledger import scheduler
from billfold.ledger.bank import Bank
from billfold.ledger.types import Origin, ScheduledJob
from billfold.oauth import clients
from billfold.platform import ids
from billfold.platform.clock import wall_now
from billfold.platform.crypto import Vault, associated_data, is_sealed_text
from billfold.platform.database.connection import Connection, Db
from billfold.platform.errors import Refused
from billfold.policies.types import PolicyDocument

REASON: Final = "customer-not-open"
"""The reason recorded with canceled requests and disabled subscriptions."""


async def run_closed_job(bank: Bank, job: ScheduledJob) -> None:
    """End everything that a customer left open when it was closed; running it twice has no further effect."""
    now = await bank.now()
    await cancel_pending(TRANSFER_REQUESTS, bank, job.object_id, now)
    await cancel_pending(AUTHORIZATION_REQUESTS, bank, job.object_id, now)
    await _end_access(bank, job.object_id)


async def cancel_pending(kind: RequestKind[RequestType], bank: Bank, customer_id: UUID, now: datetime) -> None:
    """Cancel the pending requests of a kind of a closed customer."""
    for request in await kind.list_pending(bank.pool, customer_id, now=now):
        await kind.update_by_bank(
            bank,
            customer_id,
            request.request_id,
            verb="cancelled",
            where="status = 'PENDING'",
            details={"reason": REASON},
            status="CANCELLED",
            updated_at=now,
        )
        await scheduler.cancel(bank.pool, kind.expiry_job, request.request_id)


async def _end_access(bank: Bank, customer_id: UUID) -> None:
    wall = wall_now()
    async with audited(
        bank, customer_id, Origin.system(), "customer.access_ended", resource_id=customer_id, now=wall
    ) as action:
        conn = action.conn
        await store.keep_former(conn, customer_id, None, now=await bank.now(conn))
        service_users = await clients.list_service_user_ids(conn, customer_id)
        for client_id in service_users:
            await clients.revoke_client(conn, client_id, now=wall)
        subscriptions = await disable_subscriptions(conn, customer_id, because=REASON, now=wall)
        invitations = await conn.fetch("DELETE FROM invitation WHERE customer_id = $1 RETURNING member_id", customer_id)
        ended = {"service_users": len(service_users), "subscriptions": subscriptions, "invitations": len(invitations)}
        action.details.update(ended)
        if not any(ended.values()):
            action.skip()


_CONTACT = ("email", "phone_number")


def seal_contacts(vault: Vault, customer_id: UUID, request_id: UUID, *, change: dict[str, Any]) -> dict[str, Any]:
    """Return a change, ready for JSON, with the contact details of the invitee sealed."""
    return _each_contact(change, partial(_seal_field, vault, customer_id, request_id))


def open_contacts(vault: Vault, row: AuthorizationRequestRow) -> AuthorizationRequestRow:
    """Return a request with the contact details in its content decrypted."""
    content = msgspec.json.decode(row.content)
    change = _each_contact(content["change"], partial(_open_field, vault, row.customer_id, row.request_id))
    return msgspec.structs.replace(row, content=msgspec.json.encode(content | {"change": change}).decode())


def _each_contact(change: dict[str, Any], convert: Callable[[str, str], str]) -> dict[str, Any]:
    """Return a change with its contact details converted, given (field, value)."""
    found: dict[str, Any] = {name: convert(name, change[name]) for name in _CONTACT if change.get(name) is not None}
    if "invited" in change:
        found["invited"] = _each_contact(change["invited"], convert)
    return change | found


def _seal_field(vault: Vault, customer_id: UUID, request_id: UUID, /, field: str, value: str) -> str:
    return vault.seal_text(value, _field_aad(customer_id, request_id, field))


def _open_field(vault: Vault, customer_id: UUID, request_id: UUID, /, field: str, value: str) -> str:
    return vault.open_text(value, _field_aad(customer_id, request_id, field)) if is_sealed_text(value) else value


def _field_aad(customer_id: UUID, request_id: UUID, field: str) -> bytes:
    return associated_data("authorization_request", f"content.{field}", request_id, tenant_id=customer_id)


POLICY_CHANGE: Final = "policy.update"
RULE_CHANGES: Final = frozenset({"approval_rule.create", "approval_rule.update", "approval_rule.delete"})
_DESCRIPTIONS = {
    "approval_rule.create": "a new approval rule",
    "approval_rule.update": "another approval rule in the place of one",
    "approval_rule.delete": "the end of an approval rule",
    POLICY_CHANGE: "another policy",
    "member.invite": "an invitation into the team",
    "member.reinvite": "an invitation into the team, after one that has expired",
    "member.update": "another role or status of a member",
    "service_user.create": "a new service user",
    "service_user.add_key": "a new key of a service user",
    "counterparty.create": "a new counterparty",
}
ACTIONS: Final = frozenset(_DESCRIPTIONS)
"""The actions that can be requested."""


async def request_change(
    by: Actor, action: str, resource: tuple[str, UUID | None], *, change: dict[str, Any], terms: ApprovalRequirement
) -> AuthorizationRequestRow:
    """Request a change. `change` is ready for JSON and, with the requester's scopes, complete enough to apply it.

    The members who can confirm it are fixed here. If there are none, only the operator of the bank can.
    """
    kind, resource_id = resource
    request_id = ids.new()
    scopes = None if by.scopes is None else sorted(by.scopes)
    change = seal_contacts(by.vault, by.customer_id, request_id, change=change)
    text = rules.text_of({"action": action, "resource_id": resource_id, "change": change | {"scopes": scopes}})
    async with AUTHORIZATION_REQUESTS.audited(by, "created", request_id, change=action) as audited_action:
        await insert(
            audited_action,
            AUTHORIZATION_REQUESTS.table,
            customer_id=by.customer_id,
            request_id=request_id,
            action=action,
            resource_type=kind,
            resource_id=resource_id,
            content=text,
            content_hash=rules.hash_of(text),
            member_id=by.member_id,
            user_id=by.user_id,
            client_id=by.client_id,
            terms=rules.text_of(await _fix_candidates(audited_action.conn, by, resource, terms=terms)),
            status="PENDING",
            created_at=by.now,
            updated_at=by.now,
            expires_at=by.now + rules.REQUEST_LIFETIME,
        )
        made = await AUTHORIZATION_REQUESTS.get(audited_action.conn, by.customer_id, request_id, now=by.now)
        await AUTHORIZATION_REQUESTS.schedule_next(audited_action.conn, made, now=by.now)
        await _report_policy(audited_action.conn, made, by.now)
        await _notify_security_alert(
            audited_action, by, f"{by.name} asks for {_DESCRIPTIONS[action]}: a second person confirms it."
        )
        return made


async def _fix_candidates(
    conn: Connection, by: Actor, resource: tuple[str, UUID | None], *, terms: ApprovalRequirement
) -> ApprovalRequirement:
    """Return the requirement with the members who can confirm a change now, except a member whom it concerns."""
    others = await list_other_members(conn, by.customer_id, than=await users_behind(conn, by.user_id, by.client_id))
    unaffected = [each for each in others if resource != ("member", each.member_id)]
    candidates = rules.find_candidates(unaffected, terms, named=(), needs=rules.MAY_CONFIRM)
    return msgspec.structs.replace(terms, candidates=candidates)


async def request_rule_change(
    by: Actor, action: str, rule: types.Rule, *, current: types.Rule | None
) -> AuthorizationRequestRow:
    """Request that a rule is created, changed or removed; `current` is the rule in force. Raises as the check."""
    if action != "approval_rule.delete":
        await check_rule_change(by.pool, by.customer_id, rule)
    change = {"rule": msgspec.to_builtins(rule), "version": None if current is None else current.version}
    return await request_change(by, action, ("approval_rule", rule.rule_id), change=change, terms=ApprovalRequirement())


async def check_rule_change(conn: Db, customer_id: UUID, rule: types.Rule) -> None:
    """Check a rule for mistakes. Raises InvalidInput."""
    team = await list_team(conn, customer_id)
    rules.check_rule(rule, rules.find_candidates(team, types.DEFAULT_REQUIREMENT, named=(), needs=rules.MAY_APPROVE))


async def decide(by: Actor, request_id: UUID, verdict: types.Verdict) -> AuthorizationRequestRow:
    """Confirm or refuse a change that another member requested.

    Raises NotFound, Refused as `record_review`, `content-changed` also when the rule was changed in the meantime.
    """
    async with AUTHORIZATION_REQUESTS.audited(by, verdict.decision.lower(), request_id) as audited_action:
        conn = audited_action.conn
        found = await AUTHORIZATION_REQUESTS.lock(conn, by.customer_id, request_id, now=by.now)
        status = await record_review(audited_action, by, found, kind=AUTHORIZATION_REQUESTS, verdict=verdict)
        audited_action.details |= {"change": found.action, "status": status}
        await _record_decision(audited_action, by.vault, found, status=status, now=by.now)
        await _notify_security_alert(
            audited_action, by, f"{by.name} {verdict.decision.lower()} {_DESCRIPTIONS[found.action]}."
        )
        return await AUTHORIZATION_REQUESTS.get(conn, by.customer_id, request_id, now=by.now)


async def apply_now(bank: Bank, change: AuthorizationRequestRow) -> None:
    """Run the job that applies a confirmed change at once, without waiting for the worker."""
    job = ScheduledJob(types.APPLY_AUTHORIZATION_REQUEST, change.request_id, change.customer_id, change.updated_at)
    await bank.job_runners[job.kind](bank, job)


async def confirm_as_operator(bank: Bank, customer_id: UUID, request_id: UUID) -> AuthorizationRequestRow:
    """Confirm a change for a team that has no second person. Raises as `decide`."""
    now, table = await bank.now(), AUTHORIZATION_REQUESTS.table
    async with audited(
        bank, customer_id, Origin.operator(), f"{table}.approved", resource_id=request_id
    ) as audited_action:
        found = await AUTHORIZATION_REQUESTS.lock(audited_action.conn, customer_id, request_id, now=now)
        AUTHORIZATION_REQUESTS.check_pending(found)
        audited_action.details["change"] = found.action
        await _record_decision(audited_action, bank.vault, found, status="APPROVED", now=now)
        return await AUTHORIZATION_REQUESTS.get(audited_action.conn, customer_id, request_id, now=now)


async def check_requester(
    conn: Db, vault: Vault, change: AuthorizationRequestRow, *, needs: str, now: datetime
) -> Member:
    """Return the requester's current membership, if they may still do what they requested.

    Raises NotFound, Refused `forbidden`.
    """
    requester = await store.get_member(conn, vault, change.customer_id, member_id=change.member_id, now=now)
    scopes = msgspec.json.decode(change.content)["change"].get("scopes")
    if requester.status != "ACTIVE" or needs not in permissions_of(requester.role, scopes):
        raise Refused("forbidden", f"{requester.name} requested the change, and may no longer make it.")
    return requester


async def _record_decision(
    audited_action: AuditedAction, vault: Vault, change: AuthorizationRequestRow, *, status: types.Status, now: datetime
) -> None:
    """Record the decision, and apply the change or schedule the job that does."""
    if status == "PENDING":
        return
    await AUTHORIZATION_REQUESTS.move(audited_action, change, status, now=now)
    await _report_policy(audited_action.conn, change, now)
    if status == "APPROVED" and (change.action == POLICY_CHANGE or change.action in RULE_CHANGES):
        await check_requester(audited_action.conn, vault, change, needs="approval_rules.write", now=now)
        apply = _change_policy if change.action == POLICY_CHANGE else _change_rule
        await apply(audited_action, change, now=now)
        key = (change.customer_id, change.request_id)
        await update(audited_action, AUTHORIZATION_REQUESTS.table, *key, where="applied_at IS NULL", applied_at=now)
        await scheduler.cancel(audited_action.conn, types.APPLY_AUTHORIZATION_REQUEST, change.request_id)


async def _change_rule(audited_action: AuditedAction, change: AuthorizationRequestRow, *, now: datetime) -> None:
    content = msgspec.json.decode(change.content)["change"]
    rule = msgspec.convert(content["rule"], types.Rule)
    current = await find_rule(audited_action.conn, change.customer_id, rule.rule_id)
    if content["version"] != (None if current is None else current.version):
        raise Refused("content-changed", "The rule has changed since the request. Send a new request.")
    if change.action == "approval_rule.delete":
        await remove_rule(audited_action, change.customer_id, rule.rule_id, now=now)
    else:
        await put_rule(audited_action, change.customer_id, msgspec.structs.replace(rule, updated_at=now))


async def _change_policy(audited_action: AuditedAction, change: AuthorizationRequestRow, *, now: datetime) -> None:
    """Put a proposed document in force as the next version, if it was proposed for the one in force."""
    content = msgspec.json.decode(change.content)["change"]
    current = await find_policy(audited_action.conn, change.customer_id)
    version = 0 if current is None else current.version
    document = rules.text_of(msgspec.convert(content["document"], PolicyDocument))
    made = content["replaces"] == version and await insert(
        audited_action,
        "policy",
        customer_id=change.customer_id,
        version=version + 1,
        document=document,
        content_hash=rules.hash_of(document),
        request_id=change.request_id,
        member_id=change.member_id,
        created_at=now,
    )
    if not made:
        raise Refused("content-changed", "The policy has changed since the request. Send a new request.")


async def _report_policy(conn: Connection, change: AuthorizationRequestRow, now: datetime) -> None:
    if change.action == POLICY_CHANGE:
        await scheduler.schedule(conn, [job_of(types.REPORT_POLICY, change.request_id, change.customer_id, now)])


async def report_policy(bank: Bank, job: ScheduledJob) -> None:
    """Raise the event of a proposed policy, or of one that is in force now."""
    assert job.customer_id is not None
    found = await AUTHORIZATION_REQUESTS.get(bank.pool, job.customer_id, job.object_id, now=await bank.now())
    kind = kinds.POLICY_PROPOSED if found.status == "PENDING" else kinds.POLICY_UPDATED
    if found.status in {"PENDING", "APPROVED"}:
        version = msgspec.json.decode(found.content)["change"]["replaces"] + 1
        payload = PolicyPayload(authorization_request_id=found.request_id, version=version)
        await report(bank, job, kind, payload)


async def _notify_security_alert(audited_action: AuditedAction, by: Actor, text: str) -> None:
    await notify.notify(
        audited_action.conn,
        by.vault,
        by.customer_id,
        kind="SECURITY_ALERT",
        title="A sensitive change was requested or decided",
        description=text,
        metadata={"authorization_request_id": audited_action.resource_id},
        now=by.wall,
        except_user_id=by.user_id,
    )
