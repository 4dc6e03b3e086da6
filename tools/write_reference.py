#!/usr/bin/env python
"""Write the pages of docs/reference that are made from the code.

usage: .venv/bin/python tools/write_reference.py
"""

import tomllib
from pathlib import Path
from typing import Any

from billfold.events.kinds import KINDS
from billfold.events.notifications.kinds import NOTIFICATION_TYPES as NOTIFICATIONS
from billfold.events.notifications.kinds import NotificationType
from billfold.events.schemas import payload_schema
from billfold.ledger.types import EventKind
from billfold.platform.errors import Problem
from billfold.platform.problems import PROBLEMS
from billfold.platform.settings.settings import reference

DOCS = Path(__file__).parents[1] / "docs"
FOLDER = DOCS / "reference"
ERRORS_HEAD = """\
# Errors

<!-- Made by tools/write_reference.py from the registry in billfold.platform.problems; do not edit. -->

An error is a problem document (RFC 9457) with `type`, `title`, `status`, `detail`, `instance`,
`code`, `trace_id` and `retryable`. Its `type` is the address of a page with the text below, which
the server serves under `/docs/errors/`. Two things are answered otherwise: a request that does not
fit its schema gets 422 with `detail`, a list of `loc`, `msg` and `type`; and `/token/` answers as
RFC 6749 says.

Codes of parts that are not built yet (cards, crypto, onboarding, reports) are registered
and never answered.

| Code | Status | Title | Again |
|---|---|---|---|
"""
EVENTS_HEAD = """\
# Events

<!-- Made by tools/write_reference.py from billfold.events and docs/unraised.toml. -->

Every kind of event, who can subscribe to it, and the fields of its payload; a field with a question
mark may be left out. `GET /api/v1/events/types/` serves the JSON Schema of each,
[the guide](../guides/webhooks.md) says how to receive them. A kind marked *later* can be subscribed
to; nothing in this release raises it.

| Kind | Told to | Payload | Raised when |
|---|---|---|---|
"""
SETTINGS_HEAD = """\
# Settings

<!-- Made by tools/write_reference.py from billfold.platform.settings.settings; do not edit. -->

Every setting is a variable of the environment, read once at the start. A process refuses to start
while one is wrong, and names them all. A secret may stand in a file: the variable with `_FILE` at
its end names the file, which nobody else may be able to read.

"""


NOTIFICATIONS_HEAD = """\
# Notifications

<!-- Made by tools/write_reference.py from billfold.events.notifications; do not edit. -->

What a team is told, and who hears of it unless the team chooses others: everybody who is an active
member and has one of the roles. A choice names roles and people, who add up; empty lists mean
nobody; a choice that is deleted gives way to the default. Each who is told gets a letter too.

| Type | Told when | Default audience | A team may choose |
|---|---|---|---|
"""


def pages() -> dict[str, str]:
    """Return the text of every generated page under its file name."""
    return {
        "errors.md": errors_page(),
        "events.md": events_page(),
        "notifications.md": notifications_page(),
        "settings.md": settings_page(),
    }


def errors_page() -> str:
    """Return the page of all problems: a table, then what each means and what to do."""
    problems = sorted(PROBLEMS.values(), key=lambda problem: problem.code)
    rows = "".join(
        f"| [`{each.code}`](#{each.code}) | {each.status} | {each.title} | {'yes' if each.retryable else 'no'} |\n"
        for each in problems
    )
    return (
        ERRORS_HEAD
        + rows
        + "\n*Again*: the same request, sent again unchanged, may succeed.\n"
        + "".join(map(_section, problems))
    )


def notifications_page() -> str:
    """Return the page of all types of notifications."""
    return NOTIFICATIONS_HEAD + "".join(map(_row, NOTIFICATIONS.values()))


def events_page() -> str:
    """Return the page of all kinds of events."""
    unraised = tomllib.loads((DOCS / "unraised.toml").read_text())["events"]
    rows = ""
    for name, kind in KINDS.items():
        readers = [word for word, sees in (("partner", kind.partner), ("customer", kind.customer)) if sees]
        later = " *Later.*" if name in unraised else ""
        rows += f"| `{name}` | {', '.join(readers)} | {_fields(kind)} | {kind.meaning}{later} |\n"
    return EVENTS_HEAD + rows


def _fields(kind: EventKind[Any]) -> str:
    schema = payload_schema(kind)
    return ", ".join(f"`{name}`" + ("" if name in schema["required"] else "?") for name in schema["properties"])


def settings_page() -> str:
    """Return the page of all settings."""
    return SETTINGS_HEAD + reference()


def _row(kind: NotificationType) -> str:
    roles = ", ".join(f"`{role}`" for role in kind.roles)
    chosen = "yes" if kind.configurable else "no"
    return f"| `{kind.name}` | {kind.raised_when} | {roles} | {chosen} |\n"


def _section(problem: Problem) -> str:
    return (
        f"\n## {problem.code}\n\n{problem.title} ({problem.status}).\n\n"
        f"{problem.meaning}\n\nWhat to do: {problem.remedy}\n"
    )


def main() -> None:
    """Write every page."""
    FOLDER.mkdir(parents=True, exist_ok=True)
    for name, text in pages().items():
        (FOLDER / name).write_text(text)


if __name__ == "__main__":
    main()
