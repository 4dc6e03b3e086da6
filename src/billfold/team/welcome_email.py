"""The first e-mail to a new user: a link to set a password."""

from __future__ import annotations

from typing import TYPE_CHECKING
from uuid import UUID

from billfold.identity.users import email_links
from billfold.identity.users import store as user_store
from billfold.events.email import outbox
from billfold.events.email import templates as notices
from billfold.platform.clock import wall_now

if TYPE_CHECKING:
    from billfold.ledger.bank import Bank
    from billfold.platform.database.connection import (Connection)


async def send_password_link(bank: Bank, conn: Connection, user_id: UUID) -> str:
    """Queue the e-mail with the link, and return the link."""
    user = await user_store.find_user(conn, bank.vault, user_id)
    assert user is not None
    members = await user_store.list_user_memberships(conn, user_id)
    secret = await email_links.create_link(conn, user_id, "welcome", now=wall_now())
    link = f"{bank.settings.auth_origin}/password?link={secret}"
    company = members[0].customer_name if members else bank.settings.bank_name
    notice = notices.welcome(user, company, link)
    await outbox.queue_email(conn, bank.vault, user.email, notice=notice, now=wall_now())
    return link
