"""Operations on service users: members of the team that act without a user."""

from __future__ import annotations

from uuid import UUID

import msgspec

from billfold.access.team import service_users as programs
from billfold.access.team.administrator import calling_administrator
from billfold.access.team.schemas import ProgramKey, ProgramKeys, TeamProgram, render_key, render_service_user
from billfold.access.team.types import CreateProgram, PublicKey
from billfold.http.caller import CustomerCaller
from billfold.http.operations import delete, get, post, with_scope
from billfold.http.raw_request import in_body
from billfold.ledger.bank import Bank

READS, WRITES = with_scope("team.read", "team"), with_scope("team.write", "team")
_ONE = "/api/v1/team/service-users/{member_id}/"


class AddKey(msgspec.Struct, forbid_unknown_fields=True, kw_only=True):
    """Another public key."""

    public_key: PublicKey


@post("/api/v1/team/service-users/", WRITES, name="create_service_user", tag="team")
async def create_service_user(member: CustomerCaller, bank: Bank, data: CreateProgram) -> TeamProgram:
    """Create a service user. It gets tokens with client credentials, authenticated by its key."""
    by = await calling_administrator(member, bank)
    with in_body():
        return render_service_user(await programs.create_service_user(by, data))


@get(_ONE, READS, name="get_service_user", tag="team")
async def get_service_user(member: CustomerCaller, bank: Bank, member_id: UUID) -> TeamProgram:
    """Read a service user."""
    found = await programs.get_service_user(bank.pool, member.customer_id, member_id, now=member.now, wall=member.wall)
    return render_service_user(found)


@get(f"{_ONE}keys/", READS, name="list_service_user_keys", tag="team")
async def list_service_user_keys(member: CustomerCaller, bank: Bank, member_id: UUID) -> ProgramKeys:
    """List the public keys it may prove itself with, newest first."""
    found = await programs.get_service_user(bank.pool, member.customer_id, member_id, now=member.now, wall=member.wall)
    return ProgramKeys(items=[render_key(each) for each in found.keys])


@post(f"{_ONE}keys/", WRITES, name="add_service_user_key", tag="team", refuses=("duplicate-id", "member-not-active"))
async def add_service_user_key(member: CustomerCaller, bank: Bank, member_id: UUID, data: AddKey) -> ProgramKey:
    """Register a public key beside those there are."""
    by = await calling_administrator(member, bank)
    with in_body():
        return render_key(await programs.add_service_user_key(by, member_id, data.public_key))


@post(
    f"{_ONE}keys/rotate/",
    WRITES,
    name="rotate_service_user_keys",
    tag="team",
    refuses=("duplicate-id", "member-not-active"),
)
async def rotate_service_user_keys(member: CustomerCaller, bank: Bank, member_id: UUID, data: AddKey) -> ProgramKey:
    """Register a public key in the place of all others; those are accepted for 24 hours more."""
    by = await calling_administrator(member, bank)
    with in_body():
        return render_key(await programs.rotate_service_user_keys(by, member_id, data.public_key))


@delete(f"{_ONE}keys/{{key_id}}/", WRITES, name="revoke_service_user_key", tag="team")
async def revoke_service_user_key(member: CustomerCaller, bank: Bank, member_id: UUID, key_id: str) -> None:
    """Take a key out of use at once. Every token of the service user ends with it."""
    await programs.revoke_service_user_key(await calling_administrator(member, bank), member_id, key_id)
