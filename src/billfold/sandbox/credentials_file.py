"""`.billfold/sandbox.json`: all a client needs to call the sandbox, readable by its owner."""

from pathlib import Path
from typing import Literal
from uuid import UUID

import msgspec

from billfold.cli.context import CliError
from billfold.sandbox.card_processor.launch import CardNetwork
from billfold.sandbox.line_process import write_private

FILE_NAME = "sandbox.json"

StoryStage = Literal["none", "playing", "played"]


class SandboxPerson(msgspec.Struct, frozen=True):
    """What a person signs in with; `totp_secret` is for an authenticator app, in base32."""

    email: str
    password: str
    totp_secret: str


class SandboxOAuthClient(msgspec.Struct, frozen=True, kw_only=True):
    """What a program needs to be this client. The key is an ES256 one, PEM."""

    client_id: str
    profile: str
    grant_types: tuple[str, ...]
    redirect_uris: tuple[str, ...]
    scope: str
    private_key: str
    kid: str


class SandboxFile(msgspec.Struct, frozen=True, kw_only=True):
    """Addresses, credentials and ids of a running sandbox."""

    base_url: str
    partner_url: str
    host: str
    http_url: str
    docs_url: str
    clock_url: str
    ca_file: str
    partner: str
    username: str
    password: str
    shared_secret: str
    private_key: str
    kid: str
    person: SandboxPerson
    """Who signs in for the customer on the authorization server's pages."""
    colleague: SandboxPerson
    """Another member of its team, who approves what the first requests."""
    operators: tuple[SandboxPerson, ...] = ()
    """Two members of the bank's own team."""
    partner_person: SandboxPerson | None = None
    """A member of the partner's own team."""
    customer_id: UUID
    own_customer_id: UUID
    facilitation_pocket_id: UUID
    auth_url: str
    customer_url: str
    clients: tuple[SandboxOAuthClient, ...]
    """Clients of the authorization server: one of each profile, and a service user."""
    card_network: CardNetwork | None = None
    """Where a card network talks ISO 8583 with the card processor; None in a file of an earlier release."""
    story: StoryStage = "none"
    pocket_ids: tuple[UUID, ...] = ()
    """The Pockets of the story, the 4-week one first."""


def read_sandbox_file(state_dir: Path) -> SandboxFile | None:
    """Return what the last start wrote, or None when there is nothing, or nothing readable."""
    try:
        return msgspec.json.decode((state_dir / FILE_NAME).read_bytes(), type=SandboxFile)
    except (OSError, msgspec.MsgspecError):
        return None


def require_sandbox_file(state_dir: Path) -> SandboxFile:
    """Return the credentials of the sandbox in a folder. Raises CliError when there is none."""
    box = read_sandbox_file(state_dir)
    if box is None:
        raise CliError(
            f"There is no sandbox in {state_dir}.", "Start one with `billfold sandbox`, or set BILLFOLD_STATE_DIR."
        )
    return box


def write_sandbox_file(state_dir: Path, content: SandboxFile) -> None:
    """Put the file in place whole, never readable by anybody else."""
    write_private(state_dir / FILE_NAME, msgspec.json.format(msgspec.json.encode(content)) + b"\n")
