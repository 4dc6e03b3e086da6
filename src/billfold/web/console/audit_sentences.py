"""Entries of the audit log as sentences: "created the counterparty Fabrikam". Pure."""

from collections.abc import Mapping
from typing import Any, NamedTuple

from billfold.web.console.find import Hit

_SAID = {
    "member.joined": "joined the team",
    "user.locked": "was locked out after too many attempts",
    "user.login": "signed in",
    "user.logout": "signed out",
    "ach.given_back": "returned the ACH entry",
    "application.invited": "invited people to fill in the application",
    "application.invite_accepted": "began to fill in the application",
    "notification.updated": "marked notifications as read or unread",
}
_NOUNS = {"ach": "ACH entry", "pocket": "Pocket", "oauth_client": "application", "user": "account"}
_SAID_WITH_OF = ("Transfer request", "Batch")
_PAST = ("ed", "en", "n")
_NAMES = ("display_name", "name", "counterparty_name", "email", "url", "type")
"""The details of an entry that name its subject, the best first."""


class Sentence(NamedTuple):
    """A sentence without its subject: verb and kind of the object, its name, and the path of its page if it has one."""

    words: str
    name: str = ""
    path: str = ""


def words_of(action: str) -> str:
    """Return the verb and the kind of the object of an action: "updated the Pocket"."""
    if action in _SAID:
        return _SAID[action]
    resource, _, verb = action.partition(".")
    noun = _NOUNS.get(resource, resource.replace("_", " "))
    part, _, done = verb.rpartition("_")
    if part and done.endswith(_PAST):
        return f"{done} the {part.replace('_', ' ')} of the {noun}"
    return f"{verb.replace('_', ' ')} the {noun}"


def sentence_of(action: str, resource_id: str | None, details: Mapping[str, Any], named: Mapping[str, Hit]) -> Sentence:
    """Return what an entry says, after the name of who did it; `named` are things of the company by their ids."""
    words = words_of(action)
    if action in _SAID:
        return Sentence(words)
    hit = named.get(resource_id or "")
    if hit:
        return Sentence(f"{words} of" if hit.kind in _SAID_WITH_OF else words, hit.label, hit.path)
    if action.startswith("transfer_request."):
        return Sentence(words)
    name = next((details[each] for each in _NAMES if isinstance(details.get(each), str)), "")
    return Sentence(words, name.replace("_", " ").lower() if name.isupper() else name)
