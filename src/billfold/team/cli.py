"""`billfold users`: manages who may sign in for a customer. Passwords are set by a link, never shown."""

from collections.abc import Iterable
from contextlib import AbstractAsyncContextManager, AsyncExitStack
from typing import Annotated
from uuid import UUID

import typer

from billfold.cli.command import CommandGroup, Row, console, print_line, print_success
from billfold.cli.context import CliError
from billfold.events.email import outbox, templates
from billfold.identity.members import store as member_store
from billfold.identity.partners.store import find_partner
from billfold.identity.users import rules
from billfold.identity.users import store as user_store
from billfold.identity.users.rules import User, UserRole
from billfold.ledger.bank import Bank
from billfold.oauth import clients, grants
from billfold.platform.clock import wall_now
from billfold.platform.database.connection import Connection
from billfold.team import invitations
from billfold.team.invitations import send_password_link as mail_password_link
from billfold.team.members import notifying_of_effects

group = CommandGroup(
    "users",
    "Add users of a customer, a partner or the bank, and deactivate them.",
    example="add anna@acme.example --customer <id> --first-name Anna",
)

Email = Annotated[str, typer.Argument(help="The user's e-mail address.")]
ShowLink = Annotated[bool, typer.Option("--show-link", help="Print the link too: anyone who has it can sign in.")]
RoleOption = Annotated[UserRole, typer.Option(case_sensitive=False)]


@group.command(
    "add anna@acme.example --customer <id> --first-name Anna --last-name Lind --role ADMIN",
    "add olga@bank.example --bank --first-name Olga --last-name Berg --role MANAGER",
)
async def add(
    bank: Bank,
    email: Email,
    customer: Annotated[UUID | None, typer.Option(help="The id of the customer.")] = None,
    partner: Annotated[str, typer.Option(help="The slug of a partner instead: a person of the partner.")] = "",
    first_name: Annotated[str, typer.Option(help="Required for a new user.")] = "",
    last_name: Annotated[str, typer.Option(help="Required for a new user.")] = "",
    role: RoleOption = "VIEWER",
    *,
    of_bank: Annotated[bool, typer.Option("--bank", help="Instead of a customer: an operator of the bank.")] = False,
    show_link: ShowLink = False,
) -> None:
    """Make a user a member of a customer, a partner or the bank; a new user gets a link to set a password."""
    team_id = await _team_of(bank, customer, partner=partner, of_bank=of_bank)
    async with bank.pool.acquire() as conn, conn.transaction():
        existing = await user_store.find_user_by_email(conn, bank.vault, rules.check_email(email))
        user_id = (
            existing.user_id
            if existing
            else await member_store.create_user(
                conn, bank.vault, email=email, first_name=first_name, last_name=last_name, now=wall_now()
            )
        )
        now = await bank.now(conn)
        async with await _notifying_of_effects(bank, conn, team_id):
            member_id = await member_store.add_member(conn, team_id, user_id, role=role, now=now)
        await invitations.delete_invitation(conn, bank.vault, team_id, email=email, now=now)
        link = None if existing else await mail_password_link(bank, conn, user_id)
        await clients.record_member(bank, conn, team_id, member_id=member_id, action="member.added", role=role)
    print_success(f"{email} is a member of {partner or ('the bank' if of_bank else team_id)} as {role}.")
    if link is not None:
        _print_link(email, link if show_link else None)


@group.command("send-password-link anna@acme.example")
async def send_password_link(bank: Bank, email: Email, *, show_link: ShowLink = False) -> None:
    """E-mail a new link to set a password. The previous link stops working."""
    async with bank.pool.acquire() as conn, conn.transaction():
        link = await mail_password_link(bank, conn, (await _user(bank, conn, email)).user_id)
    _print_link(email, link if show_link else None)


@group.table("list", columns=("email", "name", "last signed in"))
async def list_all(bank: Bank) -> Iterable[Row]:
    """List the users."""
    users = await user_store.list_users(bank.pool, bank.vault)
    return [(row.email, row.name, row.last_login_at or "never") for row in users]


@group.command("reset-mfa anna@acme.example")
async def reset_mfa(bank: Bank, email: Email) -> str:
    """Delete a user's second factors and sessions; the next sign-in sets up a new factor.

    Make sure that the request comes from the user.
    """
    async with bank.pool.acquire() as conn, conn.transaction():
        user = await _user(bank, conn, email)
        await member_store.reset_second_factors(conn, user.user_id)
        await grants.revoke_user_tokens(conn, user.user_id)
        notice = templates.factor_changed(user, "all second factors were reset", wall_now())
        await outbox.queue_email(conn, bank.vault, user.email, notice=notice, now=wall_now())
        await clients.record_user(bank, conn, user.user_id, action="user.factor_changed")
    return f"{email} sets up a second factor at the next sign-in."


@group.command("deactivate anna@acme.example")
async def deactivate(bank: Bank, email: Email) -> str:
    """Deactivate a user at once: sessions, links and tokens end."""
    async with bank.pool.acquire() as conn, conn.transaction():
        user = await _user(bank, conn, email)
        await deactivate_everywhere(bank, conn, user.user_id)
        await grants.revoke_user_tokens(conn, user.user_id)
        await clients.record_user(bank, conn, user.user_id, action="member.deactivated")
    return f"{email} is deactivated."


async def _team_of(bank: Bank, customer: UUID | None, *, partner: str, of_bank: bool) -> UUID:
    """Return the customer of the team. Raises CliError unless exactly one option names it."""
    if (customer is not None) + bool(partner) + of_bank != 1:
        raise CliError("Name one team.", "Give --customer, --partner or --bank.")
    if customer is not None:
        return customer
    if of_bank:
        return bank.own_id
    found = await find_partner(bank.pool, partner)
    if found is None:
        raise CliError(f"There is no partner {partner!r}.", "See `billfold partner list`.")
    return found.own_customer_id


async def deactivate_everywhere(bank: Bank, conn: Connection, user_id: UUID) -> None:
    """Deactivate a user, and notify each of their teams of the consequences."""
    async with AsyncExitStack() as effects:
        for team in await user_store.list_user_memberships(conn, user_id, only_active=True):
            await effects.enter_async_context(await _notifying_of_effects(bank, conn, team.customer_id))
            await member_store.keep_former(conn, team.customer_id, [user_id], now=await bank.now(conn))
        await member_store.deactivate_user(conn, user_id)


async def _notifying_of_effects(bank: Bank, conn: Connection, customer_id: UUID) -> AbstractAsyncContextManager[None]:
    return notifying_of_effects(conn, bank.vault, customer_id, now=await bank.now(conn), wall=wall_now())


async def _user(bank: Bank, conn: Connection, email: str) -> User:
    user = await user_store.find_user_by_email(conn, bank.vault, email)
    if user is None:
        raise CliError(f"There is no user {email!r}.", "See `billfold users list`.")
    return user


def _print_link(email: str, link: str | None) -> None:
    print_line(f"A link to set a password is on its way to {email}; the worker sends it.")
    if link is not None:
        console.print(link, soft_wrap=True)
