"""Templates of e-mails to users. Pure."""

from collections.abc import Iterable
from datetime import datetime
from typing import NamedTuple
from zoneinfo import ZoneInfo

from billfold.identity.users.rules import ClientInfo, User
from billfold.platform.text import plain_text, without_links


class EmailContent(NamedTuple):
    """An e-mail without its recipient. The sender adds the bank's name below the text."""

    subject: str
    text: str


def welcome(user: User, customer: str, link: str) -> EmailContent:
    """Invite a user to set their first password."""
    customer = plain_text(customer)
    return _compose(
        user,
        f"Your access to {customer}",
        f"You have been given access to {customer}.",
        f"Set your password here. The link works once, for seven days:\n{link}",
        "You will also be asked for a second factor: a passkey, or an authenticator app.",
    )


def invitation(first_name: str, customer: str, inviter: str, role: str, link: str) -> EmailContent:
    """Invite a person, known or unknown, into a company's team."""
    customer, inviter, first_name = plain_text(customer), plain_text(inviter), plain_text(first_name)
    return EmailContent(
        f"Join {customer}",
        f"Hello {first_name},\n\n{inviter} invites you into the team of {customer}, as "
        f"{role.title()}.\n\nAccept here. The link works once, for seven days:\n{link}\n\n"
        "If you did not expect this invitation, ignore this "
        "e-mail.\n",
    )


def application_invite(first_name: str | None, company: str, *, purpose: str, asks: str, link: str) -> EmailContent:
    """Ask a person without an account to help with an application; `asks` is a sentence with the request."""
    company = plain_text(company)
    greeting = f"Hello {plain_text(first_name)}" if first_name else "Hello"
    return EmailContent(
        f"{purpose} {company}",
        f"{greeting},\n\n{asks}\n\nBegin here. The link works for seven days, on any "
        f"device, and what you fill in is saved as you go:\n{link}\n\nAnyone with the link can see and change what you "
        "can: do not forward it. If you did not expect this e-mail, ignore it.\n",
    )


def access_ended(user: User, customer: str, now: datetime) -> EmailContent:
    """Notify a user that they can no longer act for a company."""
    customer = plain_text(customer)
    return _compose(
        user,
        f"Your access to {customer} has ended",
        f"An administrator ended your access to {customer}, {_local_time(user, now)}. You were signed "
        "out everywhere, and applications lost what they could do there in your name.",
        "If you think this is wrong, ask an administrator of the company.",
    )


def password_reset(user: User, link: str) -> EmailContent:
    """Send a link to a user who forgot their password."""
    return _compose(
        user,
        "Set a new password",
        "A new password was requested for your account.",
        f"Set it here. The link works once, for one hour:\n{link}",
        "If it was not you, ignore this e-mail: without this link nothing changes.",
    )


def new_device(user: User, client_info: ClientInfo, now: datetime) -> EmailContent:
    """Notify of a sign-in with a browser that was not seen before."""
    return _compose(
        user,
        "New sign-in to your account",
        f"Your account was signed in to from a browser we have not seen before: {client_info.device}, "
        f"from {client_info.address}, {_local_time(user, now)}.",
        _IF_NOT_YOU,
    )


def password_changed(user: User, now: datetime) -> EmailContent:
    """Notify of a new password."""
    return _compose(
        user,
        "Your password was changed",
        f"The password of your account was changed {_local_time(user, now)}. You were signed out in "
        "all other browsers.",
        _IF_NOT_YOU,
    )


def factor_changed(user: User, change: str, now: datetime) -> EmailContent:
    """Notify a user of a change of the second factor: `change` is a clause, "a passkey was added"."""
    return _compose(
        user, "Your second factor was changed", f"On your account {change}, {_local_time(user, now)}.", _IF_NOT_YOU
    )


def access_granted(
    user: User, client_name: str, customer: str, scope_texts: Iterable[str], now: datetime
) -> EmailContent:
    """Notify a user of what they allowed an application to do."""
    client_name, customer = plain_text(client_name), plain_text(customer)
    listed = "\n".join(f"  - {each}" for each in scope_texts)
    return _compose(
        user,
        f"{client_name} has access to {customer}",
        f"You gave {client_name} access to {customer}, {_local_time(user, now)}. It may:\n{listed}",
        "You can revoke this at any time, under Applications. " + _IF_NOT_YOU,
    )


def client_changed(user: User, company: str, change: str, now: datetime) -> EmailContent:
    """Notify a user of a change of a company's applications: `change` is a clause, "Books was registered"."""
    company, change = plain_text(company), plain_text(change, 200)
    return _compose(
        user,
        f"An application of {company} was changed",
        f"For {company}, {change}, {_local_time(user, now)}.",
        _IF_NOT_YOU,
    )


def sign_in_locked(user: User, client_info: ClientInfo, now: datetime) -> EmailContent:
    """Notify a user of repeated failed sign-ins."""
    return _compose(
        user,
        "Sign-in is paused for 15 minutes",
        f"Five attempts to sign in to your account failed, the last {_local_time(user, now)} from "
        f"{client_info.address}. For 15 minutes no more are accepted. A passkey still works.",
        "If it was you, wait and try again, or set a new password. If it was not, nobody got in; "
        "consider adding a passkey.",
    )


_IF_NOT_YOU = "If this was not you, set a new password at once and tell your administrator."


def _compose(user: User, subject: str, *paragraphs: str) -> EmailContent:
    body = "\n\n".join(paragraphs)
    return EmailContent(without_links(subject), f"Hello {plain_text(user.first_name)},\n\n{body}\n")


def _local_time(user: User, now: datetime) -> str:
    """Format an instant in the user's own time: "on June 2, 2025 at 9:00 AM EDT"."""
    there = now.astimezone(ZoneInfo(user.time_zone))
    hour = there.hour % 12 or 12
    return f"on {there:%B} {there.day}, {there.year} at {hour}:{there:%M %p %Z}"
