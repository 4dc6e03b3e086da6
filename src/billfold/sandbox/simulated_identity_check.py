"""An identity check that exists only in the sandbox: names decide, after a delay of the business clock."""

from collections.abc import Mapping
from datetime import datetime, timedelta
from types import MappingProxyType
from typing import Final

import msgspec

from billfold.onboarding.applications.forms import IndividualForm
from billfold.onboarding.applications.ports import CheckedApplication, CheckResult, CheckStatus
from billfold.sandbox.magic_values import MagicValue

NEEDED_OF_BUSINESS: Final = "BUSINESS_DESCRIPTION"
NEEDED_OF_INDIVIDUAL: Final = "ADDRESS_VERIFICATION"
_APPROVED: Final = CheckResult(status=CheckStatus.APPROVED)
_REVIEWED: Final = CheckResult(status=CheckStatus.MANUAL_REVIEW, reasons=("SANDBOX_REVIEW",))
_RESULTS: Final[Mapping[str, CheckResult]] = MappingProxyType(
    {
        "REJECT": CheckResult(status=CheckStatus.REJECTED, reasons=("SANDBOX_REJECTED",)),
        "REVIEW": _REVIEWED,
        "DOCUMENTS": CheckResult(status=CheckStatus.DOCUMENTS_NEEDED, reasons=("SANDBOX_DOCUMENTS_NEEDED",)),
        "PENDING": CheckResult(status=CheckStatus.WAITING),
    }
)
"""What is in a name -> what the check finds; the first that is there decides."""
MAGIC_VALUES: Final = tuple(
    MagicValue("applications", "name", f"contains {word}", f"The check of the application is {result.status}.")
    for word, result in _RESULTS.items()
)


class SimulatedIdentityCheck:
    """Lets everybody try every result: it is in the name of a business, or the last name of a person."""

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
