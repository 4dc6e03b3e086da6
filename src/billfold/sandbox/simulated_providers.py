"""The simulated world outside a sandbox's bank: the other banks of both rails, and stand-ins for providers."""

import hashlib
from collections.abc import Mapping
from datetime import datetime, timedelta
from pathlib import Path
from typing import Final

import msgspec

from billfold.accounts.counterparties.ports import LinkedAccount, LinkedInstitution, LinkError, LinkStatus, LinkToken
from billfold.ledger.bank import JobRunners
from billfold.onboarding.applications.forms import IndividualForm
from billfold.onboarding.applications.ports import CheckedApplication, CheckResult, CheckStatus
from billfold.sandbox.card_processor.launch import (
    CARD_PROCESSOR,
    CLEARING_JOB,
    CYCLE_JOB,
    SimulatedCardProcessor,
    claim_swipe,
    send_cycle,
)
from billfold.sandbox.chain.crypto_signer import SIGNER_FOLDER, SimulatedSigner
from billfold.sandbox.custodian import CUSTODIAN_DAY, SimulatedCustodian
from billfold.sandbox.custodian import FOLDER as CUSTODIAN
from billfold.sandbox.rails.ach_network import SIMULATED_ANSWER, SimulatedAchNetwork
from billfold.sandbox.rails.fedwire import WIRE_ANSWER, SimulatedFedwire
from billfold.sandbox.rails.statements import STATEMENTS, SimulatedStatements

NEEDED_OF_BUSINESS: Final = "BUSINESS_DESCRIPTION"
NEEDED_OF_INDIVIDUAL: Final = "ADDRESS_VERIFICATION"
_APPROVED: Final = CheckResult(status=CheckStatus.APPROVED)
_REVIEWED: Final = CheckResult(status=CheckStatus.MANUAL_REVIEW, reasons=("SANDBOX_REVIEW",))
_RESULTS: Final[Mapping[str, CheckResult]] = {
    "REJECT": CheckResult(status=CheckStatus.REJECTED, reasons=("SANDBOX_REJECTED",)),
    "REVIEW": _REVIEWED,
    "DOCUMENTS": CheckResult(status=CheckStatus.DOCUMENTS_NEEDED, reasons=("SANDBOX_DOCUMENTS_NEEDED",)),
    "PENDING": CheckResult(status=CheckStatus.WAITING),
}
"""The result of the check by a word in the name; the first word that matches decides."""


class SimulatedIdentityCheck:
    """Offers every result of the check: by the name of a business, or the last name of a person."""

    def __init__(self, delay: timedelta = timedelta()) -> None:
        self._delay = delay

    async def check(self, application: CheckedApplication, now: datetime) -> CheckResult:
        """Decide by REJECT, REVIEW, DOCUMENTS or PENDING in the name, in this order; approve any other."""
        form = application.applicant
        needed = NEEDED_OF_INDIVIDUAL if isinstance(form, IndividualForm) else NEEDED_OF_BUSINESS
        name = (form.name.last_name if isinstance(form, IndividualForm) else str(form.name)).upper()
        result = next((found for word, found in _RESULTS.items() if word in name), _APPROVED)
        if result.status == CheckStatus.DOCUMENTS_NEEDED:
            has_it = needed in application.uploaded
            result = _REVIEWED if has_it else msgspec.structs.replace(result, documents=(needed,))
        ready_at = application.submitted_at + self._delay
        if now < ready_at and result.status != CheckStatus.WAITING:
            return CheckResult(status=CheckStatus.IN_PROGRESS, look_again_at=ready_at)
        return result


_PUBLIC_TOKEN_PREFIX = "public-sandbox-"  # noqa: S105 - a name, not a secret
_UNKNOWN, _FAIL, _MANUAL, _AUTOMATIC, _SAVINGS = "unknown", "fail", "manual", "automatic", "savings"
_ACCESS_PREFIX = "access-sandbox-"
_ROUTING_NUMBER = "011000015"
_DIGITS = 10
_TOKEN_LIFETIME = timedelta(hours=4)
_UPDATE_TOKEN_LIFETIME = timedelta(minutes=30)


class SimulatedLinking:
    """Accepts every account number."""

    def __init__(self, seed: bytes) -> None:
        self._seed = seed

    async def link_token(
        self,
        *,
        client_name: str,
        user: str,
        now: datetime,
        redirect_uri: str | None = None,
        android_package_name: str | None = None,
        access: str | None = None,
    ) -> LinkToken:
        """Return a unique token for every user, client and instant."""
        parts = (client_name, user, now.isoformat(), redirect_uri, android_package_name, access)
        lifetime = _TOKEN_LIFETIME if access is None else _UPDATE_TOKEN_LIFETIME
        return LinkToken(token=f"link-sandbox-{self._derive(str(parts))}", expires_at=now + lifetime)

    async def exchange(self, public_token: str) -> str:
        """Return the same secret on every call. Raises LinkError."""
        if not public_token.startswith(_PUBLIC_TOKEN_PREFIX) or public_token == _PUBLIC_TOKEN_PREFIX:
            raise LinkError("public_token", "is not a token of the linking provider")
        return _ACCESS_PREFIX + self._derive(public_token)

    async def accounts(self, access: str, account_ids: list[str]) -> LinkedInstitution:
        """Return an account for every id. Raises LinkError."""
        unknown = [each for each in account_ids if _UNKNOWN in each]
        if unknown:
            raise LinkError("accounts", f"{unknown[0]} is not an account of this link")
        return LinkedInstitution(
            institution_name="First Sandbox Bank",
            accounts=tuple(self._account(access, each, _first_status(each)) for each in account_ids),
        )

    async def refresh(self, access: str, account_id: str) -> LinkedAccount:
        """Return an account with the result of its verification."""
        status: LinkStatus = "MANUALLY_VERIFIED" if _MANUAL in account_id else "AUTOMATICALLY_VERIFIED"
        return self._account(access, account_id, "VERIFICATION_FAILED" if _FAIL in account_id else status)

    def _account(self, access: str, account_id: str, status: LinkStatus) -> LinkedAccount:
        number = str(int(self._derive(access + account_id), 16) % 10**_DIGITS).zfill(_DIGITS)
        return LinkedAccount(
            account_id=account_id,
            routing_number=_ROUTING_NUMBER,
            account_number=number,
            account_type="SAVINGS" if _SAVINGS in account_id else "CHECKING",
            mask=number[-4:],
            status=status,
        )

    def _derive(self, text: str) -> str:
        return hashlib.blake2b(text.encode(), key=self._seed[:64], digest_size=16).hexdigest()


def _first_status(account_id: str) -> LinkStatus:
    if _MANUAL in account_id:
        return "PENDING_MANUAL_VERIFICATION"
    if _AUTOMATIC in account_id or _FAIL in account_id:
        return "PENDING_AUTOMATIC_VERIFICATION"
    return "AUTOMATICALLY_VERIFIED"


_STOPPED_WIRES: Final = {2: "SANCTION_SCREEN_FAILED"}
"""The last two digits of an amount -> the reason of its rejection."""
_STOPPED_CARD_PAYMENTS: Final = 4
"""The last two digits of an amount."""
_UNVERIFIABLE: Final = "UNVERIFIABLE"
_INVALID: Final = "invalid"
_DEPOSITS: Final = (11, 22)


class SimulatedScreening:
    """Offers every rejection."""

    def stopped_wire(self, amount: int | None) -> str | None:
        """Stop amounts that end in 02."""
        return None if amount is None else _STOPPED_WIRES.get(amount % 100)

    def stops_card(self, amount: int) -> bool:
        """Stop amounts that end in 04."""
        return amount % 100 == _STOPPED_CARD_PAYMENTS

    def unverifiable_name(self, name: str) -> str | None:
        """Reject names with UNVERIFIABLE in them."""
        return "The name cannot be verified." if _UNVERIFIABLE in name.upper() else None

    def invalid_file(self, name: str | None) -> str | None:
        """Reject files with `invalid` in their names."""
        return "IMAGE_QUALITY_ERROR_CUTOFF" if name and _INVALID in name.lower() else None

    def deposit_amounts(self) -> tuple[int, int]:
        """Return 11 and 22 cents."""
        return _DEPOSITS


class Simulation:
    """The simulated counterparts of one process."""

    def __init__(self, seed: bytes, state_dir: Path, identity_delay: timedelta = timedelta()) -> None:
        self.wires = SimulatedFedwire()
        self.ach = SimulatedAchNetwork()
        self.custodian = SimulatedCustodian(state_dir / CUSTODIAN)
        self.statements = SimulatedStatements()
        self.linking = SimulatedLinking(seed)
        self.identity = SimulatedIdentityCheck(identity_delay)
        self.screening = SimulatedScreening()
        self.cards = SimulatedCardProcessor(state_dir / CARD_PROCESSOR)
        self.signer = SimulatedSigner(state_dir / SIGNER_FOLDER)

    def job_runners(self) -> JobRunners:
        """Return the function of every kind of job that only a sandbox has."""
        return {
            WIRE_ANSWER: self.wires.answer,
            SIMULATED_ANSWER: self.ach.answer,
            CLEARING_JOB: claim_swipe,
            CYCLE_JOB: send_cycle,
            CUSTODIAN_DAY: self.custodian.run_day,
            STATEMENTS: self.statements.send,
        }
