"""The confirmation of decisions by a member: a passkey signs their hashes, or a code is used up for them."""

import secrets
from typing import NamedTuple, TypeVar
from uuid import UUID

import msgspec
from litestar import Response, post
from litestar.enums import MediaType

from billfold.approvals.rules import challenge_of, challenge_of_list, decision_hash
from billfold.identity.users import passkeys, store
from billfold.identity.users.rules import Confirmation
from billfold.platform.errors import BillfoldError, InvalidInput
from billfold.web.account.passkeys import verify_passkey
from billfold.web.account.sign_in import use_code
from billfold.web.console.team import Company, InCompany
from billfold.web.page_context import FormError, PageContext, PageResponse, path_id

_NONCE_BYTES = 32
_NOT_ACCEPTED = "The passkey was not accepted for this decision. Read the request again, and try again."


class SignedDecision(NamedTuple):
    """A decision, its request, and the content: its SHA-256 in hexadecimal."""

    request_id: UUID
    decision: str
    content_hash: str

    @property
    def hashes(self) -> tuple[str, ...]:
        """The hashes of a list: a decision that is confirmed alone is in none."""
        return ()

    def challenge(self, nonce: str) -> bytes:
        """Return the challenge that a passkey signs."""
        return challenge_of(nonce, *self)


class SignedList(NamedTuple):
    """Decisions that are confirmed together, in their order."""

    decisions: tuple[SignedDecision, ...]

    @property
    def hashes(self) -> tuple[str, ...]:
        """The hashes of the decisions."""
        return tuple(decision_hash(*each) for each in self.decisions)

    def challenge(self, nonce: str) -> bytes:
        """Return the challenge that a passkey signs."""
        return challenge_of_list(nonce, self.hashes)


async def confirm(company: Company, signed: SignedDecision | SignedList) -> FormError | None:
    """Check the factor of a form; None if it is valid, and counts as an authentication now for what it confirms."""
    page = company.page
    if credential := page.form.get("credential"):
        nonce = page.form.get("nonce", "")
        found = await verify_passkey(page, credential, over=signed.challenge(nonce))
        if found is None or found.user_id != page.user.user_id:
            return _NOT_ACCEPTED
        confirmation = passkeys.confirmation_of(credential, found, nonce)
    else:
        if not page.form.get("code"):
            return InvalidInput.at("code", msg="is needed to decide")
        used = await use_code(page)
        if not isinstance(used, int):
            return used
        confirmation = Confirmation(method="otp", step=used)
    company.confirmed(msgspec.structs.replace(confirmation, decisions=signed.hashes))
    return None


_Read = TypeVar("_Read")


class _ToSign(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """The decision that the script is about to have signed by a passkey."""

    decision: str
    content_hash: str


class _ListToSign(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """The same about several requests: their ids and the hashes of their contents."""

    decision: str
    requests: list[tuple[UUID, str]]


@post("/companies/{customer_id:str}/approvals/{request_id:str}/passkey-options")
async def show_passkey_options(company: InCompany, request_id: str) -> PageResponse:
    """Return the data for signing a decision with a passkey in the browser."""
    wanted = _read(company, _ToSign)
    return await _options(
        company.page, SignedDecision(path_id(request_id, "There is no such request."), *msgspec.structs.astuple(wanted))
    )


@post("/companies/{customer_id:str}/approvals/together/passkey-options")
async def show_passkey_options_of_list(company: InCompany) -> PageResponse:
    """Return the same for several requests."""
    wanted = _read(company, _ListToSign)
    decisions = (SignedDecision(key, wanted.decision, content_hash) for key, content_hash in wanted.requests)
    return await _options(company.page, SignedList(tuple(decisions)))


def _read(company: Company, declared: type[_Read]) -> _Read:
    try:
        return msgspec.json.decode(company.page.request.body, type=declared)
    except msgspec.MsgspecError:
        raise BillfoldError("bad-request", "The request of the browser cannot be read.") from None


async def _options(page: PageContext, signed: SignedDecision | SignedList) -> PageResponse:
    nonce = secrets.token_urlsafe(_NONCE_BYTES)
    known = await store.list_passkeys(page.pool, page.user.user_id)
    challenge = signed.challenge(nonce)
    await passkeys.keep_challenge(page.pool, challenge, page.cookie_hash, now=page.now)
    options = passkeys.sign_in_options(page.server.site, challenge, known)
    body = msgspec.json.encode({"nonce": nonce, "options": msgspec.Raw(options.encode())})
    return Response(body, media_type=MediaType.JSON)
