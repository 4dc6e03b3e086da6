"""A decision is confirmed with a factor, for exactly what is shown: a code, or a passkey that signs its hash.

A passkey answers a challenge that is the SHA-256 of a nonce and the decision with the hash of the content: its answer
is good for nothing else. Either counts for this one request only; the session is as fresh as it was before.
"""

from __future__ import annotations

import secrets
from typing import TYPE_CHECKING, NamedTuple
from uuid import UUID

from billfold.web.account.passkeys import verify_passkey
from billfold.web.sign_in.second_factor import use_code
from billfold.identity.users import passkeys
from billfold.identity.users import store as user_store
from billfold.identity.users.types import Confirmation
from billfold.approvals.rules import challenge_of
from billfold.platform.errors import InvalidInput

if TYPE_CHECKING:
    from billfold.web.console.company import Company
    from billfold.web.page_context import Mistake, PageContext

_NONCE_BYTES = 32
_NOT_ACCEPTED = "The passkey was not accepted for this decision. Read the request again, and try again."


class SignedDecision(NamedTuple):
    """What is decided, about which request, with which content: its SHA-256 in hexadecimal."""

    request_id: UUID
    decision: str
    content_hash: str

    def challenge(self, nonce: str) -> bytes:
        """Return what a passkey signs."""
        return challenge_of(nonce, self.request_id, self.decision, self.content_hash)


async def request_options(page: PageContext, decision: SignedDecision) -> tuple[str, str]:
    """Return a nonce, and the JSON options by which a browser lets a passkey of the visitor sign a decision."""
    nonce = secrets.token_urlsafe(_NONCE_BYTES)
    known = await user_store.list_passkeys(page.pool, page.user.user_id)
    challenge = decision.challenge(nonce)
    await passkeys.keep_challenge(page.pool, challenge, page.cookie_hash, now=page.now)
    return nonce, passkeys.sign_in_options(page.server.site, challenge, known)


async def confirm(company: Company, decision: SignedDecision) -> Mistake | None:
    """Check the factor that came with a decision; None when it holds, and counts as authenticated now."""
    page = company.page
    if credential := page.form.get("credential"):
        nonce = page.form.get("nonce", "")
        found = await verify_passkey(page, credential, over=decision.challenge(nonce))
        if found is None or found.user_id != page.user.user_id:
            return _NOT_ACCEPTED
        company.confirmed(passkeys.confirmation_of(credential, found, nonce))
        return None
    if not page.form.get("code"):
        return InvalidInput.at("code", msg="is needed to decide")
    used = await use_code(page)
    if not isinstance(used, int):
        return used
    company.confirmed(Confirmation(method="otp", step=used))
    return None
