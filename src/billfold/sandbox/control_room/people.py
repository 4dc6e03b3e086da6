"""Who may sign in to the sandbox's consoles, and the code that their app shows now."""

from pathlib import Path
from typing import NamedTuple

import pyotp

from billfold.sandbox.credentials_file import read_sandbox_file


class SignIn(NamedTuple):
    """What somebody types at `/sign-in` and after it. The code changes every 30 seconds and is good once."""

    role: str
    email: str
    password: str
    code: str


def sign_ins(state_dir: Path) -> list[SignIn]:
    """Return the people of a sandbox as its file names them; nobody where there is none."""
    saved = read_sandbox_file(state_dir)
    if saved is None:
        return []
    people = [("Administrator of a company", saved.person), ("Its manager, approves", saved.colleague)]
    people += [("Administrator of the partner", saved.partner_person)] if saved.partner_person else []
    people += zip(("Operator of the bank, administrator", "Second operator, manager"), saved.operators, strict=False)
    return [SignIn(role, each.email, each.password, pyotp.TOTP(each.totp_secret).now()) for role, each in people]
