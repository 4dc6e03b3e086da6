"""Operations on the current user."""

from typing import Annotated, Literal
from uuid import UUID

import msgspec
from msgspec import UNSET, UnsetType

from billfold.http.operations import get, with_scope
from billfold.http.schemas import one_of
from billfold.identity.users import store as user_store
from billfold.ledger.bank import Bank
from billfold.oauth.authentication import CustomerCaller
from billfold.platform.errors import Refused


class User(msgspec.Struct, kw_only=True):
    """A user in the words of OpenID Connect; mail and phone with the scopes for them."""

    sub: UUID
    name: str
    given_name: str
    family_name: str
    email: str | UnsetType = UNSET
    email_verified: bool | UnsetType = UNSET
    phone_number: str | UnsetType = UNSET
    phone_number_verified: bool | UnsetType = UNSET
    member_id: UUID
    customer_id: UUID
    partner_id: UUID | None


class Membership(msgspec.Struct, kw_only=True):
    """The membership of a user in a customer's team."""

    member_id: UUID
    customer_id: UUID
    customer_name: str
    role: Annotated[str, one_of("ADMIN", "MANAGER", "APPROVER", "INITIATOR", "VIEWER")]
    status: Annotated[str, one_of("ACTIVE", "DEACTIVATED")]
    object_type: Literal["Membership"] = "Membership"


class Memberships(msgspec.Struct, kw_only=True):
    """All memberships of a user."""

    items: list[Membership]
    object_type: Literal["List"] = "List"


@get("/api/v1/user/", with_scope("profile", "user"), tag="user")
async def get_user(member: CustomerCaller, bank: Bank) -> User:
    """Read who the user is."""
    access = member.access
    oidc_claims = await user_store.user_claims(
        bank.pool, bank.vault, _user_id(member), customer_id=access.customer_id, scopes=access.scopes
    )
    return msgspec.convert(oidc_claims, User)


@get("/api/v1/user/memberships/", with_scope("profile", "user"), tag="user")
async def list_memberships(member: CustomerCaller, bank: Bank) -> Memberships:
    """List the customers whose team the user belongs to."""
    found = await user_store.list_user_memberships(bank.pool, _user_id(member))
    customers = [each for each in found if each.is_of_company]
    return Memberships(items=[msgspec.convert(each, Membership, from_attributes=True) for each in customers])


def _user_id(member: CustomerCaller) -> UUID:
    if member.access.user_id is None:
        raise Refused("forbidden", "The client acts by itself: there is no user.")
    return member.access.user_id
