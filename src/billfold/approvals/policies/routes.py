"""Policies of a customer: read, checked with their tests, tried on past payments, and proposed."""

import re
from datetime import date, datetime, timedelta
from functools import partial
from typing import Annotated, Literal
from uuid import UUID

import msgspec

from billfold.approvals.authorization_requests import POLICY_CHANGE, request_change
from billfold.approvals.policies.backtest import Backtest, run_backtest
from billfold.approvals.routes import principal_of, render_authorization_requests
from billfold.approvals.rules import text_of
from billfold.approvals.schemas import AuthorizationRequest
from billfold.approvals.store.policies import VERSIONS, find_policy
from billfold.approvals.store.policies import get_policy as get_version
from billfold.approvals.types import ApprovalRequirement
from billfold.http.operations import get, post, put, with_scope
from billfold.http.parameters import OrderedQuery, page_of
from billfold.http.raw_request import in_body
from billfold.http.schemas import CursorList
from billfold.ledger.bank import Bank, limit_usage
from billfold.oauth.caller import CustomerCaller
from billfold.platform.dates import et_date
from billfold.platform.errors import InvalidInput, NotFound
from billfold.policies.rules import CompiledPolicy, PolicyTestResult, check_document, compile_policy, run_tests
from billfold.policies.types import PolicyDocument, PolicyVersion

_READS = with_scope("approval_rules.read", "approvals")
_WRITES = with_scope("approval_rules.write", "approvals")
_POLICY = "/api/v1/policy/"


class Policy(msgspec.Struct, kw_only=True):
    """A version of the policy. `content_hash` is the SHA-256 of its document as canonical JSON.

    The authorization request is that which approved it, the member the one who proposed it.
    """

    version: int
    document: PolicyDocument
    content_hash: str
    authorization_request_id: UUID
    proposed_by: UUID
    time_created: datetime
    object_type: Literal["Policy"] = "Policy"


class ProposePolicy(msgspec.Struct, forbid_unknown_fields=True, kw_only=True):
    """The document that becomes the next version, or an earlier version whose document does."""

    document: PolicyDocument | None = None
    restore_version: Annotated[int, msgspec.Meta(ge=1, le=2**31 - 1)] | None = None


class CheckPolicy(msgspec.Struct, forbid_unknown_fields=True, kw_only=True):
    """A document whose tests are to be run."""

    document: PolicyDocument


class PolicyTestResults(msgspec.Struct, kw_only=True):
    """The results of all tests, in their order."""

    passed: bool
    items: list[PolicyTestResult]
    object_type: Literal["PolicyTestResults"] = "PolicyTestResults"


class TryPolicy(msgspec.Struct, forbid_unknown_fields=True, kw_only=True):
    """A document, and the first day of the month whose payments it is tried on, that of today if omitted."""

    document: PolicyDocument
    month: date | None = None


@get(_POLICY, _READS, tag="approvals", as_of=True)
async def get_policy(member: CustomerCaller, bank: Bank) -> Policy:
    """Get policy.

    Returns the version in force. 404 while the customer has no policy: then only approval rules decide.
    """
    found = await find_policy(bank.pool, member.customer_id, as_of=member.as_of)
    if found is None:
        raise NotFound("The customer has no policy.")
    return _shown(found)


@get(f"{_POLICY}versions/", _READS, tag="approvals", as_of=True)
async def list_policy_versions(member: CustomerCaller, bank: Bank, wanted: OrderedQuery) -> CursorList[Policy]:
    """List policy versions.

    Returns all versions, that in force first.
    """
    page = await wanted.read(bank, VERSIONS, member.customer_id, member.as_of, scope=f"policy:{member.customer_id}")
    return page_of(page, [_shown(each) for each in page.items])


@get(f"{_POLICY}versions/{{version}}/", _READS, tag="approvals", as_of=True)
async def get_policy_version(member: CustomerCaller, bank: Bank, version: str) -> Policy:
    """Get policy version."""
    number = int(version) if re.fullmatch(r"[0-9]{1,9}", version) else 0
    return _shown(await get_version(bank.pool, member.customer_id, number, as_of=member.as_of))


@put(_POLICY, _WRITES, tag="approvals", status=202)
async def propose_policy(member: CustomerCaller, bank: Bank, data: ProposePolicy) -> AuthorizationRequest:
    """Propose policy.

    The document is in force as the next version once another member has confirmed it. Its conditions must be correct,
    and all its tests pass. With `restore_version` it is that of an earlier version.
    """
    if (data.document is None) == (data.restore_version is None):
        raise InvalidInput.at("body", msg="needs either document or restore_version")
    document = data.document
    if document is None:
        assert data.restore_version is not None
        earlier = await get_version(bank.pool, member.customer_id, data.restore_version)
        document = msgspec.json.decode(earlier.document, type=PolicyDocument)
    with in_body():
        check_document(document, text_of(document))
    current = await find_policy(bank.pool, member.customer_id)
    change = {
        "document": msgspec.to_builtins(document),
        "replaces": 0 if current is None else current.version,
    }
    by = await principal_of(member, bank)
    resource = ("policy", member.customer_id)
    requested = await request_change(by, POLICY_CHANGE, resource, change=change, terms=ApprovalRequirement())
    return (await render_authorization_requests(bank, [requested]))[0]


@post(f"{_POLICY}checks/", _READS, tag="approvals", status=200)
async def check_policy(member: CustomerCaller, bank: Bank, data: CheckPolicy) -> PolicyTestResults:  # noqa: ARG001
    """Check policy.

    Checks the conditions of a document and runs its tests. Nothing is written.
    """
    with in_body():
        results = run_tests(data.document, text_of(data.document))
    return PolicyTestResults(passed=all(each.passed for each in results), items=results)


@post(f"{_POLICY}backtests/", _WRITES, tag="approvals", status=200, refuses=("usage-limit-reached",))
async def backtest_policy(member: CustomerCaller, bank: Bank, data: TryPolicy) -> Backtest:
    """Backtest policy.

    Returns the payments of a month of the last year that a document would decide otherwise than the policy in force
    does. Payees, Pockets and roles are those of now. Nothing is written. It counts towards the limits of use
    `backtests.member` and `backtests.customer`: once, and for each 200 payments, more often with long policies.
    """
    this_month = et_date(member.now).replace(day=1)
    month = this_month if data.month is None else data.month.replace(day=1)
    if not this_month.replace(year=this_month.year - 1) <= month <= this_month:
        raise InvalidInput.at("body", "month", msg="must be within the last year")
    text = text_of(data.document)
    with in_body():
        run_tests(data.document, text)
    count = partial(limit_usage, bank, "backtests", member.customer_id, member=member.access.member_id)
    await count()
    current = await find_policy(bank.pool, member.customer_id)
    in_force = CompiledPolicy(()) if current is None else compile_policy(current.document)
    found = await run_backtest(bank, member.customer_id, month, in_force, tried=compile_policy(text), count=count)
    before = (month - timedelta(days=1)).replace(day=1)
    found.previous_month = before if before >= this_month.replace(year=this_month.year - 1) else None
    return found


def _shown(row: PolicyVersion) -> Policy:
    return Policy(
        version=row.version,
        document=msgspec.json.decode(row.document, type=PolicyDocument),
        content_hash=row.content_hash.hex(),
        authorization_request_id=row.request_id,
        proposed_by=row.member_id,
        time_created=row.created_at,
    )
