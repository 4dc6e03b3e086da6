"""Operations on service users: members of the team that act without a user."""

from uuid import UUID

import msgspec

from billfold.approvals.routes.authorization_requests import respond_pending
from billfold.approvals.types import AuthorizationRequestRow
from billfold.http.operations import MAY_NEED_APPROVAL, delete, get, post, with_scope
from billfold.http.raw_request import in_body
from billfold.http.responses import HttpResponse
from billfold.identity.members.rules import CreateProgram, PublicKey
from billfold.ledger.bank import Bank
from billfold.oauth.authentication import CustomerCaller
from billfold.team import service_users as programs
from billfold.team.administrator import calling_administrator
from billfold.team.schemas import ProgramKey, ProgramKeys, TeamProgram, render_key, render_service_user

READS, WRITES = with_scope("team.read", "team"), with_scope("team.write", "team")
_ONE = "/api/v1/team/service-users/{member_id}/"


class AddKey(msgspec.Struct, forbid_unknown_fields=True, kw_only=True):
    """Another public key."""

    public_key: PublicKey


@post("/api/v1/team/service-users/", WRITES, name="create_service_user", documented=MAY_NEED_APPROVAL, tag="team")
async def create_service_user(member: CustomerCaller, bank: Bank, data: CreateProgram) -> TeamProgram | HttpResponse:
    """Create a service user. It gets tokens with client credentials, authenticated by its key.

    It can do at most what its creator can do here, and may wait for a second user where a rule of the team requires it.
    """
    by = await calling_administrator(member, bank)
    with in_body():
        created = await programs.create_service_user(by, data)
    if isinstance(created, AuthorizationRequestRow):
        return await respond_pending(bank, created)
    return render_service_user(created)


@get(_ONE, READS, name="get_service_user", tag="team")
async def get_service_user(member: CustomerCaller, bank: Bank, member_id: UUID) -> TeamProgram:
    """Read a service user."""
    found = await programs.get_service_user(
        bank.pool, bank.vault, member.customer_id, member_id=member_id, now=member.now, wall=member.wall
    )
    return render_service_user(found)


@get(f"{_ONE}keys/", READS, name="list_service_user_keys", tag="team")
async def list_service_user_keys(member: CustomerCaller, bank: Bank, member_id: UUID) -> ProgramKeys:
    """List the public keys it may prove itself with, newest first."""
    found = await programs.get_service_user(
        bank.pool, bank.vault, member.customer_id, member_id=member_id, now=member.now, wall=member.wall
    )
    return ProgramKeys(items=[render_key(each) for each in found.keys])


@post(
    f"{_ONE}keys/",
    WRITES,
    name="add_service_user_key",
    documented=MAY_NEED_APPROVAL,
    tag="team",
    refuses=("duplicate-id", "member-not-active"),
)
async def add_service_user_key(
    member: CustomerCaller, bank: Bank, member_id: UUID, data: AddKey
) -> ProgramKey | HttpResponse:
    """Register a public key beside those there are.

    The key may wait for a second user, where a rule of the team requires it.
    """
    return await _add_key(member, bank, member_id, data.public_key)


@post(
    f"{_ONE}keys/rotate/",
    WRITES,
    name="rotate_service_user_keys",
    documented=MAY_NEED_APPROVAL,
    tag="team",
    refuses=("duplicate-id", "member-not-active"),
)
async def rotate_service_user_keys(
    member: CustomerCaller, bank: Bank, member_id: UUID, data: AddKey
) -> ProgramKey | HttpResponse:
    """Register a public key in the place of all others; those are accepted for 24 hours more.

    The key may wait for a second user, where a rule of the team requires it.
    """
    return await _add_key(member, bank, member_id, data.public_key, replaces=True)


@delete(f"{_ONE}keys/{{key_id}}/", WRITES, name="revoke_service_user_key", tag="team", refuses=("last-key",))
async def revoke_service_user_key(member: CustomerCaller, bank: Bank, member_id: UUID, key_id: str) -> None:
    """Take a key out of use at once. Every token of the service user ends with it.

    The only key stays: deactivate the service user instead.
    """
    await programs.revoke_service_user_key(await calling_administrator(member, bank), member_id, key_id)


async def _add_key(
    member: CustomerCaller, bank: Bank, member_id: UUID, public_key: str, *, replaces: bool = False
) -> ProgramKey | HttpResponse:
    by = await calling_administrator(member, bank)
    with in_body():
        added = await programs.add_service_user_key(by, member_id, public_key, replaces=replaces)
    return await respond_pending(bank, added) if isinstance(added, AuthorizationRequestRow) else render_key(added)
