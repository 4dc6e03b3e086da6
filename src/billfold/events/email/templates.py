"""What people are told by mail. Pure: facts become a subject and a text."""

from __future__ import annotations

from collections.abc import Iterable
from datetime import datetime
from typing import NamedTuple
from zoneinfo import ZoneInfo

from billfold.access.users.types import Person, Visitor


class Notice(NamedTuple):
    """A letter before it has an address."""

    subject: str
    text: str


def welcome(person: Person, customer: str, link: str) -> Notice:
    """Invite somebody to set his first password."""
    return _letter(
        person,
        f"Your access to {customer}",
        f"You have been given access to {customer}.",
        f"Set your password here. The link works once, for seven days:\n{link}",
        "You will also be asked for a second factor: a passkey, or an authenticator app.",
    )


def invitation(first_name: str, customer: str, inviter: str, role: str, link: str) -> Notice:
    """Invite somebody into a company's team, be he known here or not."""
    return Notice(
        f"Join {customer}",
        f"Hello {first_name},\n\n{inviter} invites you into the team of {customer}, as "
        f"{role.title()}.\n\nAccept here. The link works once, for seven days:\n{link}\n\n"
        "If you do not know what this is about, there is nothing to do: without you nothing "
        "happens.\n\nBillfold\n",
    )


def left_team(person: Person, customer: str, now: datetime) -> Notice:
    """Tell somebody that he can no longer act for a company."""
    return _letter(
        person,
        f"Your access to {customer} has ended",
        f"An administrator ended your access to {customer}, {_when(person, now)}. You were signed "
        "out everywhere, and applications lost what they could do there in your name.",
        "If you think this is wrong, ask an administrator of the company.",
    )


def reset(person: Person, link: str) -> Notice:
    """Send a link to whoever has forgotten his password."""
    return _letter(
        person,
        "Set a new password",
        "Somebody, we hope you, asked to set a new password for your account.",
        f"Set it here. The link works once, for one hour:\n{link}",
        "If it was not you, there is nothing to do: without this link nothing changes.",
    )


def new_device(person: Person, visitor: Visitor, now: datetime) -> Notice:
    """Tell of a sign-in with a browser that was not seen before."""
    return _letter(
        person,
        "New sign-in to your account",
        f"Your account was signed in to from a browser we have not seen before: {visitor.device}, "
        f"from {visitor.address}, {_when(person, now)}.",
        _IF_NOT_YOU,
    )


def password_changed(person: Person, now: datetime) -> Notice:
    """Tell of a new password."""
    return _letter(
        person,
        "Your password was changed",
        f"The password of your account was changed {_when(person, now)}. You were signed out in "
        "all other browsers.",
        _IF_NOT_YOU,
    )


def factor_changed(person: Person, change: str, now: datetime) -> Notice:
    """Tell of a change of the second factor: `change` is a clause, "a passkey was added"."""
    return _letter(
        person,
        "Your second factor was changed",
        f"On your account {change}, {_when(person, now)}.",
        _IF_NOT_YOU,
    )


def access_granted(
    person: Person, application: str, customer: str, words: Iterable[str], now: datetime
) -> Notice:
    """Tell what an application was allowed to do."""
    listed = "\n".join(f"  - {each}" for each in words)
    return _letter(
        person,
        f"{application} has access to {customer}",
        f"You gave {application} access to {customer}, {_when(person, now)}. It may:\n{listed}",
        "You can take this back at any time, under Applications. " + _IF_NOT_YOU,
    )


def program_changed(person: Person, company: str, change: str, now: datetime) -> Notice:
    """Tell of a change of a company's programs: `change` is a clause, "Books was registered"."""
    return _letter(
        person,
        f"A program of {company} was changed",
        f"For {company}, {change}, {_when(person, now)}.",
        _IF_NOT_YOU,
    )


def locked(person: Person, visitor: Visitor, now: datetime) -> Notice:
    """Tell that somebody keeps failing to sign in."""
    return _letter(
        person,
        "Sign-in is paused for 15 minutes",
        f"Five tries to sign in to your account failed, the last {_when(person, now)} from "
        f"{visitor.address}. For 15 minutes no more are accepted. A passkey works all the same.",
        "If it was you, wait and try again, or set a new password. If it was not, your account is "
        "still closed to whoever it was; consider adding a passkey.",
    )


_IF_NOT_YOU = "If this was not you, set a new password at once and tell your administrator."


def _letter(person: Person, subject: str, *paragraphs: str) -> Notice:
    body = "\n\n".join(paragraphs)
    return Notice(subject, f"Hello {person.first_name},\n\n{body}\n\nBillfold\n")


def _when(person: Person, now: datetime) -> str:
    """Say an instant in the person's own time: "on June 2, 2025 at 9:00 AM EDT"."""
    there = now.astimezone(ZoneInfo(person.time_zone))
    hour = there.hour % 12 or 12
    return f"on {there:%B} {there.day}, {there.year} at {hour}:{there:%M %p %Z}"
