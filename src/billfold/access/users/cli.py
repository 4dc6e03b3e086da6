"""`billfold people`: who may sign in for a customer. Nobody is told a password, but a link."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated
from uuid import UUID

import typer

from billfold.access.oauth import grants
from billfold.access.operator_audit import record_member, record_user
from billfold.access.team import invitations as team_invitations
from billfold.access.users import email_links as links
from billfold.access.users import members as user_members
from billfold.access.users import rules as user_rules
from billfold.access.users import store as user_store
from billfold.access.users.rules import PERMISSIONS
from billfold.access.users.types import Role, User
from billfold.cli.context import CliError, cli_context
from billfold.cli.output import console, example, print_line, print_success, table
from billfold.cli.resources import run_with_bank, run_with_connection
from billfold.events.email import outbox
from billfold.events.email import templates as notices
from billfold.platform.clock import wall_now

if TYPE_CHECKING:
    from billfold.ledger.bank import Bank
    from billfold.platform.database.pool import Connection

app = typer.Typer(
    no_args_is_help=True,
    help="Let people sign in for a customer, and shut them out.",
    epilog=example("billfold people add anna@acme.example --customer <id> --first-name Anna"),
)

Email = Annotated[str, typer.Argument(help="The person's address of mail.")]
ShowLink = Annotated[bool, typer.Option("--show-link", help="Print the link as well: whoever has it is let in.")]
_UNKNOWN = "There is nobody {email!r}."
_SEE_LIST = "See `billfold people list`."


@app.command(epilog=example("billfold people add anna@acme.example --customer <id> --role ADMIN"))
def add(
    ctx: typer.Context,
    email: Email,
    customer: Annotated[UUID, typer.Option(help="The id of the customer.")],
    first_name: Annotated[str, typer.Option(help="Needed for somebody new.")] = "",
    last_name: Annotated[str, typer.Option(help="Needed for somebody new.")] = "",
    role: Annotated[str, typer.Option(help=f"One of {', '.join(PERMISSIONS)}.")] = "VIEWER",
    *,
    show_link: ShowLink = False,
) -> None:
    """Make somebody a member of a customer; who is new gets a link to set his password."""
    member_role = _role(role)

    async def work(bank: Bank) -> str | None:
        async with bank.pool.acquire() as conn, conn.transaction():
            existing = await user_store.find_user_by_email(conn, user_rules.check_email(email))
            user_id = (
                existing.user_id
                if existing
                else await user_members.create_user(
                    conn, email=email, first_name=first_name, last_name=last_name, now=wall_now()
                )
            )
            member_id = await user_members.add_member(conn, customer, user_id, role=member_role, now=wall_now())
            await team_invitations.delete_invitation(conn, customer, user_rules.check_email(email))
            link = None if existing else await _send_password_link(bank, conn, user_id)
            await record_member(bank, conn, customer, member_id, "member.added", role=member_role)
            return link

    link = run_with_bank(cli_context(ctx), work)
    print_success(f"{email} is a member of {customer} as {member_role}.")
    if link is not None:
        _print_link(email, link if show_link else None)


@app.command(epilog=example("billfold people invite anna@acme.example"))
def invite(ctx: typer.Context, email: Email, *, show_link: ShowLink = False) -> None:
    """Mail a new link to set a password. The one before it is void."""

    async def work(bank: Bank) -> str:
        async with bank.pool.acquire() as conn, conn.transaction():
            return await _send_password_link(bank, conn, (await _person(conn, email)).user_id)

    link = run_with_bank(cli_context(ctx), work)
    _print_link(email, link if show_link else None)


@app.command("list", epilog=example("billfold people list"))
def list_all(ctx: typer.Context) -> None:
    """List who may sign in."""
    rows = run_with_connection(cli_context(ctx), user_store.list_users)
    console.print(
        table(
            "",
            ("email", "name", "last signed in"),
            [(row.email, row.name, row.last_login_at or "never") for row in rows],
        )
    )


@app.command("reset-factor", epilog=example("billfold people reset-factor anna@acme.example"))
def reset_factor(ctx: typer.Context, email: Email) -> None:
    """Forget somebody's second factors and sessions: he sets up another one with his password.

    Make sure that it is he who asks.
    """

    async def work(bank: Bank) -> None:
        async with bank.pool.acquire() as conn, conn.transaction():
            user = await _person(conn, email)
            await user_members.reset_second_factors(conn, user.user_id)
            await grants.revoke_user_tokens(conn, user.user_id)
            notice = notices.factor_changed(user, "all second factors were reset", wall_now())
            await outbox.queue_email(conn, bank.vault, user.email, notice, now=wall_now())
            await record_user(bank, conn, user.user_id, "user.factor_changed")

    run_with_bank(cli_context(ctx), work)
    print_success(f"{email} sets up a second factor at the next sign-in.")


@app.command(epilog=example("billfold people deactivate anna@acme.example"))
def deactivate(ctx: typer.Context, email: Email) -> None:
    """Shut somebody out at once: sessions, links and tokens end."""

    async def work(bank: Bank) -> None:
        async with bank.pool.acquire() as conn, conn.transaction():
            user = await _person(conn, email)
            await user_members.deactivate_user(conn, user.user_id)
            await grants.revoke_user_tokens(conn, user.user_id)
            await record_user(bank, conn, user.user_id, "member.deactivated")

    run_with_bank(cli_context(ctx), work)
    print_success(f"{email} is shut out.")


def _role(text: str) -> Role:
    for role in PERMISSIONS:
        if role == text.upper() and role != "SERVICE":
            return role
    raise CliError(f"{text!r} is no role.", f"Choose one of {', '.join(PERMISSIONS)}.")


async def _person(conn: Connection, email: str) -> User:
    user = await user_store.find_user_by_email(conn, email.strip().lower())
    if user is None:
        raise CliError(_UNKNOWN.format(email=email), _SEE_LIST)
    return user


async def _send_password_link(bank: Bank, conn: Connection, user_id: UUID) -> str:
    """Write the letter with the link, and return the link."""
    user = await user_store.find_user(conn, user_id)
    assert user is not None
    members = await user_store.list_user_memberships(conn, user_id)
    secret = await links.create_link(conn, user_id, "welcome", now=wall_now())
    link = f"{bank.settings.auth_origin}/password?link={secret}"
    company = members[0].customer_name if members else bank.settings.bank_name
    notice = notices.welcome(user, company, link)
    await outbox.queue_email(conn, bank.vault, user.email, notice, now=wall_now())
    return link


def _print_link(email: str, link: str | None) -> None:
    print_line(f"A link to set a password is on its way to {email}; the worker mails it.")
    if link is not None:
        console.print(link, soft_wrap=True)
