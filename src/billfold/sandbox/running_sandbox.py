"""A running sandbox as programs outside see it: the file of its addresses and credentials, and clients that use it."""

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Literal
from uuid import UUID

import httpx
import msgspec

from billfold.cli.context import CliError
from billfold.sandbox.card_processor.launch import CardNetwork
from billfold.sandbox.line_process import write_private
from billfold_client.dpop import DpopAuth
from billfold_client.errors import ApiError
from billfold_client.local import local_client
from billfold_client.oauth import Authorization, ClientRegistration
from billfold_client.signing import PartnerAuth

FILE_NAME = "sandbox.json"
SERVICE_USER = "sandbox-service"
"""The OAuth client that acts for the sandbox's customer without a person."""

StoryStage = Literal["none", "playing", "played"]


class SandboxPerson(msgspec.Struct, frozen=True):
    """The sign-in credentials of a person; `totp_secret` is for an authenticator app, in base32."""

    email: str
    password: str
    totp_secret: str


class SandboxOAuthClient(msgspec.Struct, frozen=True, kw_only=True):
    """The credentials of an OAuth client. The key is an ES256 key in PEM."""

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
    """The person who signs in for the customer on the authorization server's pages."""
    colleague: SandboxPerson
    """Another member of its team, who approves the first member's requests."""
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
    """The ISO 8583 endpoint of the card processor; None in a file of an earlier release."""
    settings: dict[str, str] = {}
    """Settings of this start that every process of the sandbox uses, unless the environment has others."""
    changed_settings: dict[str, str] = {}
    """Settings that a scenario changes while it is played."""
    story: StoryStage = "none"
    pocket_ids: tuple[UUID, ...] = ()
    """The Pockets of the story, the 4-week one first."""


def read_sandbox_file(state_dir: Path) -> SandboxFile | None:
    """Return the file of the last start, or None if there is none, or none readable."""
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
    """Write the file atomically, never readable by anybody else."""
    write_private(state_dir / FILE_NAME, msgspec.json.format(msgspec.json.encode(content)) + b"\n")


def with_credentials(box: SandboxFile, *, shared_secret: str | None, **key: str | None) -> SandboxFile:
    """Return the file with another signing secret, or another key of the service user: `private_key` and `kid`."""
    if shared_secret is not None:
        return msgspec.structs.replace(box, shared_secret=shared_secret)
    clients = (each if each.client_id != SERVICE_USER else msgspec.structs.replace(each, **key) for each in box.clients)
    return msgspec.structs.replace(box, clients=tuple(clients))


_START_HINT = "Start it with `billfold sandbox`, in this folder or the one BILLFOLD_STATE_DIR names."


def partner_http(box: SandboxFile) -> httpx.Client:
    """Return a client that signs as the sandbox's partner."""
    address = httpx.URL(box.base_url).host
    return local_client(box.partner_url, box.ca_file, partner_auth(box), address=address)


def partner_auth(box: SandboxFile) -> PartnerAuth:
    """Return the authentication of the sandbox's partner."""
    names = ("username", "shared_secret", "private_key", "kid")
    return PartnerAuth(url=box.partner_url, **{name: getattr(box, name) for name in names})


def customer_auth(box: SandboxFile) -> DpopAuth:
    """Return the authentication of the service user of the sandbox's customer; the first request gets a token."""
    client = next(each for each in box.clients if each.client_id == SERVICE_USER)
    registration = ClientRegistration(
        issuer=box.auth_url, client_id=client.client_id, kid=client.kid, private_key=client.private_key
    )
    return DpopAuth(Authorization(registration))


@contextmanager
def cli_errors() -> Iterator[None]:
    """Convert errors of calls to the sandbox into one sentence."""
    try:
        yield
    except ApiError as error:
        raise CliError(f"The sandbox answered {error}", "See `billfold doctor`.") from error
    except httpx.TransportError as error:
        raise CliError(f"The sandbox does not answer: {error}", _START_HINT) from error
