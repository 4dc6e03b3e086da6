"""`billfold people`: who may sign in for a customer. Nobody is told a password, but a link."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated
from uuid import UUID

import typer

from billfold.access.oauth import grants
from billfold.access.operator_audit import record_member, record_person
from billfold.access.team import invitations as team_invitations
from billfold.access.users import email_links as links
from billfold.access.users import members as user_members
from billfold.access.users import rules as user_rules
from billfold.access.users import store as user_store
from billfold.access.users.rules import PERMISSIONS
from billfold.access.users.types import Person, Role
from billfold.cli.context import CannotGoOn, ground_of
from billfold.cli.output import console, done, example, say, table
from billfold.cli.resources import with_bank, with_database
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
ShowLink = Annotated[
    bool, typer.Option("--show-link", help="Print the link as well: whoever has it is let in.")
]
_UNKNOWN = "There is nobody {email!r}."
_SEE = "See `billfold people list`."


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
    chosen = _role(role)

    async def work(bank: Bank) -> str | None:
        async with bank.pool.acquire() as conn, conn.transaction():
            known = await user_store.find_person_by_email(conn, user_rules.check_email(email))
            user_id = known.user_id if known else await user_members.enrol_person(
                conn, email=email, first_name=first_name, last_name=last_name, now=wall_now()
            )  # fmt: skip
            added = await user_members.add_member(
                conn, customer, user_id, role=chosen, now=wall_now()
            )
            await team_invitations.forget_invitation(conn, customer, user_rules.check_email(email))
            link = None if known else await _welcome(bank, conn, user_id)
            await record_member(bank, conn, customer, added, "member.added", role=chosen)
            return link

    link = with_bank(ground_of(ctx), work)
    done(f"{email} is a member of {customer} as {chosen}.")
    if link is not None:
        _tell_of_link(email, link if show_link else None)


@app.command(epilog=example("billfold people invite anna@acme.example"))
def invite(ctx: typer.Context, email: Email, *, show_link: ShowLink = False) -> None:
    """Mail a new link to set a password. The one before it is void."""

    async def work(bank: Bank) -> str:
        async with bank.pool.acquire() as conn, conn.transaction():
            return await _welcome(bank, conn, (await _person(conn, email)).user_id)

    link = with_bank(ground_of(ctx), work)
    _tell_of_link(email, link if show_link else None)


@app.command("list", epilog=example("billfold people list"))
def list_all(ctx: typer.Context) -> None:
    """List who may sign in."""
    rows = with_database(ground_of(ctx), user_store.list_people)
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
            person = await _person(conn, email)
            await user_members.forget_factors(conn, person.user_id)
            await grants.revoke_all_of(conn, person.user_id)
            notice = notices.factor_changed(person, "all second factors were reset", wall_now())
            await outbox.write_letter(conn, bank.vault, person.email, notice, now=wall_now())
            await record_person(bank, conn, person.user_id, "user.factor_changed")

    with_bank(ground_of(ctx), work)
    done(f"{email} sets up a second factor at the next sign-in.")


@app.command(epilog=example("billfold people deactivate anna@acme.example"))
def deactivate(ctx: typer.Context, email: Email) -> None:
    """Shut somebody out at once: sessions, links and tokens end."""

    async def work(bank: Bank) -> None:
        async with bank.pool.acquire() as conn, conn.transaction():
            person = await _person(conn, email)
            await user_members.deactivate_person(conn, person.user_id)
            await grants.revoke_all_of(conn, person.user_id)
            await record_person(bank, conn, person.user_id, "member.deactivated")

    with_bank(ground_of(ctx), work)
    done(f"{email} is shut out.")


def _role(text: str) -> Role:
    for role in PERMISSIONS:
        if role == text.upper() and role != "SERVICE":
            return role
    raise CannotGoOn(f"{text!r} is no role.", f"Choose one of {', '.join(PERMISSIONS)}.")


async def _person(conn: Connection, email: str) -> Person:
    person = await user_store.find_person_by_email(conn, email.strip().lower())
    if person is None:
        raise CannotGoOn(_UNKNOWN.format(email=email), _SEE)
    return person


async def _welcome(bank: Bank, conn: Connection, user_id: UUID) -> str:
    """Write the letter with the link, and return the link."""
    person = await user_store.find_person(conn, user_id)
    assert person is not None
    members = await user_store.memberships_of(conn, user_id)
    secret = await links.new_link(conn, user_id, "welcome", now=wall_now())
    link = f"{bank.settings.auth_origin}/password?link={secret}"
    company = members[0].customer_name if members else bank.settings.bank_name
    notice = notices.welcome(person, company, link)
    await outbox.write_letter(conn, bank.vault, person.email, notice, now=wall_now())
    return link


def _tell_of_link(email: str, link: str | None) -> None:
    say(f"A link to set a password is on its way to {email}; the worker mails it.")
    if link is not None:
        console.print(link, soft_wrap=True)
