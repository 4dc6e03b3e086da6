"""The checks of `billfold certify api --customer`: the same for a client of the Customer API, its proofs and keys."""

from collections.abc import Iterable
from typing import Any
from uuid import UUID

from typing_extensions import override

from billfold.sandbox.cli.certify_api import (
    EVERY_REQUEST,
    Certification,
    Drive,
    Fault,
    Finding,
    Renewal,
    finding,
    listing_mistakes,
    refusals,
)
from billfold.sandbox.control.faults import FaultKind
from billfold_client.customer import CustomerApi
from billfold_client.partner import PartnerApi

_MOVES = 6
"""So that a list has pages."""


class CustomerCertification(Certification):
    """Drives a client of the Customer API, the service user of the sandbox's customer, through all checks."""

    pays, lists = "create_transfer_request", "list_transactions"

    def __init__(
        self, api: PartnerApi, drive: Drive, renewal: Renewal, *, customer: CustomerApi, client_id: str
    ) -> None:
        self._of_customer, self._rotated = customer, {"client_id": client_id}
        super().__init__(api, drive, renewal)
        for _ in range(_MOVES):
            self._move()

    @override
    def _payer(self) -> UUID:
        return self._of_customer.get_customer().id

    @override
    def _own_checks(self) -> list[Finding]:
        nonce = Fault("a nonce is required in the proof (401)", FaultKind.NONCE_REQUIRED, times=EVERY_REQUEST)
        return [self.pay(nonce), self.list_events()]

    @override
    def _count_paid(self, cents: int) -> int:
        made = self._of_customer.list_transfer_requests(pocket=[self._pocket], limit=100)
        return sum(each.transfer.amount.value == cents for each in made)

    @override
    def _rows(self) -> Iterable[Any]:
        return self._of_customer.list_transactions(pocket=[self._pocket], limit=100)

    def list_events(self) -> Finding:
        """Let the client read all events, with new fields and kinds."""
        due = [str(each.event.event_id) for each in self._of_customer.list_events(limit=100)]
        new = {"fault": FaultKind.NEW_FIELDS, "times": EVERY_REQUEST}
        answer, requests = self._meet({"do": "events"}, "list_events", new, arriving=True)
        wrong = listing_mistakes(answer, due, is_whole=False) + refusals(requests)
        return finding("new fields and a new kind of event", "reads every event once", wrong)
