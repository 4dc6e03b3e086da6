"""Service users: programs that are members of the team and act by themselves."""

from __future__ import annotations

from typing import Annotated, Literal
from uuid import UUID

import msgspec
from litestar import delete, get, post
from litestar.status_codes import HTTP_201_CREATED, HTTP_204_NO_CONTENT

from billfold.domain.team import programs
from billfold.engine.bank import Bank
from billfold.interfaces.customer_api.administrator import administrator_of
from billfold.interfaces.customer_api.groups import TEAM
from billfold.interfaces.customer_api.member import Member
from billfold.interfaces.http import ids_in
from billfold.interfaces.http.bodies import in_body
from billfold.interfaces.http.marks import granted, refuses
from billfold.interfaces.http.shapes.team import (
    ProgramKey,
    ProgramKeys,
    TeamProgram,
    render_key,
    render_program,
)

READS, WRITES = granted("team.read", TEAM), granted("team.write", TEAM)
_ONE = "/api/v1/team/service-users/{member_id:str}/"
PublicKey = Annotated[
    str,
    msgspec.Meta(
        max_length=10_000,
        description="A public key as PEM: EC P-256 (ES256), RSA of 2048 bits or more (PS256), or "
        "Ed25519 (EdDSA).",
    ),
]


class CreateProgram(msgspec.Struct, forbid_unknown_fields=True, kw_only=True):
    """A program with the scopes it has for good. `profile` says whether its tokens need DPoP.

    `fapi2` clients prove a key with every request; for `documented` ones bearer tokens will do.
    """

    name: str
    description: str = ""
    scopes: list[str]
    public_key: PublicKey
    profile: Literal["fapi2", "documented"] = "fapi2"


class AddKey(msgspec.Struct, forbid_unknown_fields=True, kw_only=True):
    """Another public key."""

    public_key: PublicKey


@post(
    "/api/v1/team/service-users/",
    status_code=HTTP_201_CREATED,
    operation_id="create_service_user",
    opt=WRITES,
    tags=["team"],
)
async def create_program(member: Member, bank: Bank, data: CreateProgram) -> TeamProgram:
    """Make a program a member. It gets tokens with client credentials, proven by its key."""
    by = await administrator_of(member, bank)
    with in_body():
        made = await programs.create(
            by,
            name=data.name,
            description=data.description,
            scopes=tuple(dict.fromkeys(data.scopes)),
            public_key=data.public_key,
            profile=data.profile,
        )
    return render_program(made)


@get(_ONE, operation_id="get_service_user", opt=READS | refuses("not-found"), tags=["team"])
async def get_program(member: Member, bank: Bank, member_id: str) -> TeamProgram:
    """Read a service user."""
    asked = _id(member_id)
    found = await programs.get(
        bank.pool, member.customer_id, asked, now=member.now, wall=member.wall
    )
    return render_program(found)


@get(
    f"{_ONE}keys/",
    operation_id="list_service_user_keys",
    opt=READS | refuses("not-found"),
    tags=["team"],
)
async def list_program_keys(member: Member, bank: Bank, member_id: str) -> ProgramKeys:
    """List the public keys it may prove itself with, newest first."""
    asked = _id(member_id)
    found = await programs.get(
        bank.pool, member.customer_id, asked, now=member.now, wall=member.wall
    )
    return ProgramKeys(items=[render_key(each) for each in found.keys])


@post(
    f"{_ONE}keys/",
    status_code=HTTP_201_CREATED,
    operation_id="add_service_user_key",
    opt=WRITES | refuses("not-found", "duplicate-id", "member-not-active"),
    tags=["team"],
)
async def add_program_key(member: Member, bank: Bank, member_id: str, data: AddKey) -> ProgramKey:
    """Register a public key beside those there are."""
    asked = _id(member_id)
    by = await administrator_of(member, bank)
    with in_body():
        return render_key(await programs.add_key(by, asked, data.public_key))


@post(
    f"{_ONE}keys/rotate/",
    status_code=HTTP_201_CREATED,
    operation_id="rotate_service_user_keys",
    opt=WRITES | refuses("not-found", "duplicate-id", "member-not-active"),
    tags=["team"],
)
async def rotate_program_keys(
    member: Member, bank: Bank, member_id: str, data: AddKey
) -> ProgramKey:
    """Register a public key in the place of all others; those are accepted for 24 hours more."""
    asked = _id(member_id)
    by = await administrator_of(member, bank)
    with in_body():
        return render_key(await programs.rotate_keys(by, asked, data.public_key))


@delete(
    f"{_ONE}keys/{{key_id:str}}/",
    status_code=HTTP_204_NO_CONTENT,
    operation_id="revoke_service_user_key",
    opt=WRITES | refuses("not-found"),
    tags=["team"],
)
async def revoke_program_key(member: Member, bank: Bank, member_id: str, key_id: str) -> None:
    """Take a key out of use at once. Every token of the service user ends with it."""
    asked = _id(member_id)
    await programs.revoke_key(await administrator_of(member, bank), asked, key_id)


def _id(text: str) -> UUID:
    return ids_in.path_uuid("member_id", text)


ROUTES = [
    create_program,
    get_program,
    list_program_keys,
    add_program_key,
    rotate_program_keys,
    revoke_program_key,
]
