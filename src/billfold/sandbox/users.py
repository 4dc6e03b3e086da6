"""The people of a sandbox who can sign in on the pages: of its customer, of its partner, of the bank.

The customer and the bank have two, since what one does needs another's approval.
"""

from datetime import datetime, timedelta
from typing import NamedTuple
from uuid import UUID

import msgspec
import pyotp

from billfold.accounts.customers.partner_customers import new_password
from billfold.identity.users import store as user_store
from billfold.identity.users import totp
from billfold.identity.users.members import add_member, create_user
from billfold.identity.users.passwords import set_password
from billfold.identity.users.types import Role
from billfold.ledger.bank import Bank
from billfold.platform.clock import wall_now
from billfold.platform.crypto import hash_password
from billfold.platform.database.connection import Connection

_CONFIRMED_EARLIER = timedelta(minutes=2)
"""The code that confirms is an old one, so that every code from now on is still unused."""


class SandboxMember(NamedTuple):
    """A person of the sandbox, and the role in their team."""

    email: str
    first_name: str
    last_name: str
    role: Role


ADA = SandboxMember("ada@dummy-customer.example", "Ada", "Marsh", role="ADMIN")
BO = SandboxMember("bo@dummy-customer.example", "Bo", "Reyes", role="MANAGER")
PIA = SandboxMember("pia@sandbox-partner.example", "Pia", "Novak", role="ADMIN")
OPERATORS = (
    SandboxMember("olga@bank.example", "Olga", "Berg", role="ADMIN"),
    SandboxMember("otto@bank.example", "Otto", "Quist", role="MANAGER"),
)


class SandboxPerson(msgspec.Struct, frozen=True):
    """What a person signs in with; `totp_secret` is for an authenticator app, in base32."""

    email: str
    password: str
    totp_secret: str


async def sandbox_person(
    bank: Bank, customer_id: UUID, member: SandboxMember, previous: SandboxPerson | None
) -> SandboxPerson:
    """Return credentials in force: those of the last start, or new ones where they are lost."""
    existing = await user_store.find_user_by_email(bank.pool, bank.vault, member.email)
    if existing is not None and previous is not None:
        return previous
    person, now = SandboxPerson(member.email, new_password(), totp.new_secret()), wall_now()
    password_hash = hash_password(person.password)
    async with bank.pool.acquire() as conn, conn.transaction():
        user_id = (
            existing.user_id if existing else await _create_member(bank, conn, customer_id, member=member, now=now)
        )
        await set_password(conn, user_id, password_hash, now=now)
        await totp.remove_authenticator(conn, user_id)
        await totp.store_pending_authenticator(conn, bank.vault, user_id, secret=person.totp_secret, now=now)
        confirmed_at = now - _CONFIRMED_EARLIER
        code = pyotp.TOTP(person.totp_secret).at(confirmed_at)
        await totp.consume_code(conn, bank.vault, user_id, code=code, now=confirmed_at, pending=True)
    return person


async def _create_member(
    bank: Bank, conn: Connection, customer_id: UUID, *, member: SandboxMember, now: datetime
) -> UUID:
    user_id = await create_user(
        conn, bank.vault, email=member.email, first_name=member.first_name, last_name=member.last_name, now=now
    )
    await conn.execute("UPDATE user_account SET email_verified_at = $2 WHERE user_id = $1", user_id, now)
    await add_member(conn, customer_id, user_id, role=member.role, now=now)
    return user_id
