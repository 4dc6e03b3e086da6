"""The people of a sandbox: members of its customer who can sign in on the pages.

There are two, for nobody moves money alone.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple
from uuid import UUID

import msgspec

from billfold.access.partners.cli import new_password
from billfold.access.users import store as user_store
from billfold.access.users import totp
from billfold.access.users.types import Role
from billfold.platform.clock import wall_now
from billfold.platform.crypto import hash_password
from billfold.sandbox import provision_user

if TYPE_CHECKING:
    from billfold.ledger.bank import Bank


class SandboxMember(NamedTuple):
    """Somebody of the sandbox's customer, and what he is in its team."""

    email: str
    first_name: str
    last_name: str
    role: Role


ADA = SandboxMember("ada@dummy-customer.example", "Ada", "Marsh", role="ADMIN")
BO = SandboxMember("bo@dummy-customer.example", "Bo", "Reyes", role="MANAGER")


class SandboxPerson(msgspec.Struct, frozen=True):
    """What a person signs in with; `totp_secret` is for an authenticator app, in base32."""

    email: str
    password: str
    totp_secret: str


async def sandbox_person(
    bank: Bank, customer_id: UUID, member: SandboxMember, previous: SandboxPerson | None
) -> SandboxPerson:
    """Return credentials in force: those of the last start, or new ones where they are lost."""
    existing = await user_store.find_user_by_email(bank.pool, member.email)
    if existing is not None and previous is not None:
        return previous
    credentials = SandboxPerson(member.email, new_password(), totp.new_secret())
    async with bank.pool.acquire() as conn:
        if existing is None:
            await provision_user.create_verified_user(
                conn,
                bank.vault,
                customer_id,
                email=member.email,
                first_name=member.first_name,
                last_name=member.last_name,
                role=member.role,
                password_hash=hash_password(credentials.password),
                secret=credentials.totp_secret,
                now=wall_now(),
            )
        else:
            await provision_user.reset_credentials(
                conn,
                bank.vault,
                existing.user_id,
                password_hash=hash_password(credentials.password),
                secret=credentials.totp_secret,
                now=wall_now(),
            )
    return credentials
