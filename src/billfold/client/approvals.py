"""Typed calls about what one member asks for and another decides."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any
from uuid import UUID

from billfold.approvals.schemas import ApprovalRule, ApprovalRules, AuthorizationRequest
from billfold.approvals.transfer_request_schemas import DualAuthUser, DualAuthUsers, ShownTransferRequest
from billfold.client.responses import ApiClient

_TRANSFER_REQUESTS = "/api/v1/transfer-requests/"
_RULES = "/api/v1/approval-rules/"
_AUTHORIZATION_REQUESTS = "/api/v1/authorization-requests/"


class ApprovalApi(ApiClient):
    """The part of the Customer API that is about dual control."""

    def request_transfer(
        self, transfer: dict[str, Any], *, reviewers: Sequence[UUID] = (), key: str | None = None
    ) -> ShownTransferRequest:
        """Ask for a transfer; `transfer` has its fields as in the API, its `id` among them."""
        body = {"transfer": transfer, "reviewers": list(reviewers)}
        return self._change("POST", _TRANSFER_REQUESTS, body, kind=ShownTransferRequest, key=key)

    def transfer_requests(self, **filters: Any) -> Iterator[ShownTransferRequest]:
        """Go through transfer requests, newest first; `status="PENDING"`."""
        return self._iterate(_TRANSFER_REQUESTS, ShownTransferRequest, filters)

    def transfer_request(self, request_id: UUID) -> ShownTransferRequest:
        """Return one transfer request."""
        return self._get(f"{_TRANSFER_REQUESTS}{request_id}/", ShownTransferRequest)

    def transfer_reviewers(self) -> list[DualAuthUser]:
        """Return who may be named as a reviewer."""
        return self._get(f"{_TRANSFER_REQUESTS}reviewers/", DualAuthUsers).items

    def change_transfer_request(
        self, request_id: UUID, *, key: str | None = None, **changes: Any
    ) -> ShownTransferRequest:
        """Change a request: `transfer`, `reviewers`. What was said about it is void."""
        path = f"{_TRANSFER_REQUESTS}{request_id}/"
        return self._change("PATCH", path, changes, kind=ShownTransferRequest, key=key)

    def cancel_transfer_request(self, request_id: UUID, *, key: str | None = None) -> None:
        """Take a request back."""
        self._change("DELETE", f"{_TRANSFER_REQUESTS}{request_id}/", {}, kind=type(None), key=key)

    def review_transfer_request(
        self, request: ShownTransferRequest, status: str, *, comment: str | None = None
    ) -> ShownTransferRequest:
        """Approve (`APPROVED`) or deny (`DENIED`) a request as it was read."""
        body = {"status": status, "comment": comment, "content_hash": request.content_hash}
        path = f"{_TRANSFER_REQUESTS}{request.id}/status/"
        return self._change("PATCH", path, body, kind=ShownTransferRequest)

    def approval_rules(self) -> list[ApprovalRule]:
        """Return the rules by which transfers and changes are approved."""
        return self._get(_RULES, ApprovalRules).items

    def approval_rule(self, rule_id: UUID) -> ApprovalRule:
        """Return one rule."""
        return self._get(f"{_RULES}{rule_id}/", ApprovalRule)

    def request_approval_rule(self, *, key: str | None = None, **fields: Any) -> AuthorizationRequest:
        """Ask for a new rule; another member confirms it."""
        return self._change("POST", _RULES, fields, kind=AuthorizationRequest, key=key)

    def request_approval_rule_change(
        self, rule_id: UUID, *, key: str | None = None, **fields: Any
    ) -> AuthorizationRequest:
        """Ask for a change of a rule; another member confirms it."""
        path = f"{_RULES}{rule_id}/"
        return self._change("PATCH", path, fields, kind=AuthorizationRequest, key=key)

    def request_approval_rule_deletion(self, rule_id: UUID, *, key: str | None = None) -> AuthorizationRequest:
        """Ask for the end of a rule; another member confirms it."""
        return self._change("DELETE", f"{_RULES}{rule_id}/", {}, kind=AuthorizationRequest, key=key)

    def authorization_requests(self, **filters: Any) -> Iterator[AuthorizationRequest]:
        """Go through sensitive changes, newest first."""
        return self._iterate(_AUTHORIZATION_REQUESTS, AuthorizationRequest, filters)

    def authorization_request(self, request_id: UUID) -> AuthorizationRequest:
        """Return one sensitive change."""
        return self._get(f"{_AUTHORIZATION_REQUESTS}{request_id}/", AuthorizationRequest)

    def review_authorization_request(
        self, request: AuthorizationRequest, status: str, *, comment: str | None = None
    ) -> AuthorizationRequest:
        """Confirm (`APPROVED`) or refuse (`DENIED`) a change as it was read."""
        body = {"status": status, "comment": comment, "content_hash": request.content_hash}
        path = f"{_AUTHORIZATION_REQUESTS}{request.id}/status/"
        return self._change("PATCH", path, body, kind=AuthorizationRequest)
