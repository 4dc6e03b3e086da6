"""Typed calls of the Customer API."""

from collections.abc import Iterator, Sequence
from typing import Any
from uuid import UUID

from billfold.accounts.counterparties.schemas import Counterparty
from billfold.accounts.customers.schemas import Customer
from billfold.accounts.pockets.schemas import Pocket
from billfold.accounts.portals.schemas import Portal
from billfold.accounts.trades.schemas import Trade, V1Trade
from billfold.approvals.schemas import ApprovalRule, AuthorizationRequest, DualAuthUser, ShownTransferRequest
from billfold.audit.store import CustomerAuditLogEntry
from billfold.client.both_apis import BankApi
from billfold.client.responses import ApiError, changes, gets, items_of, lists
from billfold.events.notifications.kinds import CustomerNotification, NotificationAudience
from billfold.http.schemas import OffsetList
from billfold.team.schemas import ProgramKey, Team, TeamMember, TeamProgram

_AUDIENCES = "/api/v1/notification-audiences/"
_AUTHORIZATION_REQUESTS = "/api/v1/authorization-requests/"
_COUNTERPARTIES = "/api/v2/counterparties/"
_POCKETS = "/api/v2/pockets/"
_RULES = "/api/v1/approval-rules/"
_SERVICE_USERS = "/api/v1/team/service-users/"
_TEAM = "/api/v1/team/"
_TRANSFER_REQUESTS = "/api/v1/transfer-requests/"


class CustomerApi(BankApi):
    """Calls with an httpx client that authenticates itself, for one customer."""

    customer = gets("/api/v1/customer/", Customer)
    user = gets("/api/v1/user/", dict[str, Any])
    agreements = gets("/api/v1/agreements/", dict[str, Any])
    notifications = lists("/api/v1/notifications/", CustomerNotification)
    """Filters: `status="UNREAD"`."""
    audiences = items_of(_AUDIENCES, NotificationAudience)
    audience = gets(f"{_AUDIENCES}{{}}/", NotificationAudience)
    """The users notified of one type."""
    clear_audience = changes("DELETE", f"{_AUDIENCES}{{}}/", type(None))
    """Go back to the platform's default."""
    trades = lists("/api/v2/trades/", Trade)
    """Transfers of bills included."""
    v1_trades = lists("/api/v1/trades/", V1Trade)
    """Purchases, sales and maturities."""

    counterparties = lists(_COUNTERPARTIES, Counterparty)
    """Filters: `status="VERIFIED"`, `type="ach"`."""
    add_counterparty = changes("POST", _COUNTERPARTIES, Counterparty)
    change_counterparty = changes("PATCH", f"{_COUNTERPARTIES}{{}}/", Counterparty)
    """Another `display_name`, or `status="UNLINKED"`."""
    change_pocket = changes("PATCH", f"{_POCKETS}{{}}/", Pocket)
    change_portal = changes("PATCH", f"{_POCKETS}{{}}/portals/{{}}/", type(None))
    """Another `name`, or `status="CLOSED"`."""

    team = gets(_TEAM, Team)
    """All members in groups by status."""
    team_member = gets(f"{_TEAM}{{}}/", TeamMember)
    change_member = changes("PUT", f"{_TEAM}{{}}/", TeamMember)
    """Another `role` or `status`."""
    deactivate_member = changes("DELETE", f"{_TEAM}{{}}/", TeamMember)
    resend_invite = changes("POST", f"{_TEAM}{{}}/invite/", TeamMember)
    cancel_invite = changes("DELETE", f"{_TEAM}{{}}/invite/", TeamMember)
    program = gets(f"{_SERVICE_USERS}{{}}/", TeamProgram)
    """One service user."""
    service_user_keys = items_of(f"{_SERVICE_USERS}{{}}/keys/", ProgramKey)
    """Its public keys, newest first."""
    revoke_service_user_key = changes("DELETE", f"{_SERVICE_USERS}{{}}/keys/{{}}/", type(None))
    """Revoke the service user's tokens."""

    transfer_requests = lists(_TRANSFER_REQUESTS, ShownTransferRequest)
    transfer_request = gets(f"{_TRANSFER_REQUESTS}{{}}/", ShownTransferRequest)
    change_transfer_request = changes("PATCH", f"{_TRANSFER_REQUESTS}{{}}/", ShownTransferRequest)
    """Another `transfer` or other `reviewers`; reviews given before are void."""
    cancel_transfer_request = changes("DELETE", f"{_TRANSFER_REQUESTS}{{}}/", type(None))
    transfer_reviewers = items_of(f"{_TRANSFER_REQUESTS}reviewers/", DualAuthUser)
    """The users who may be named as reviewers."""
    approval_rules = items_of(_RULES, ApprovalRule)
    approval_rule = gets(f"{_RULES}{{}}/", ApprovalRule)
    request_approval_rule = changes("POST", _RULES, AuthorizationRequest)
    """Another member confirms it, as with an update or a deletion."""
    request_approval_rule_change = changes("PATCH", f"{_RULES}{{}}/", AuthorizationRequest)
    request_approval_rule_deletion = changes("DELETE", f"{_RULES}{{}}/", AuthorizationRequest)
    authorization_requests = lists(_AUTHORIZATION_REQUESTS, AuthorizationRequest)
    authorization_request = gets(f"{_AUTHORIZATION_REQUESTS}{{}}/", AuthorizationRequest)

    # -- the user and what happened ------------------------------------------------------

    def memberships(self) -> list[dict[str, Any]]:
        """Return whose team the user belongs to."""
        memberships_page = self._get("/api/v1/user/memberships/", dict[str, list[dict[str, Any]] | str])
        items = memberships_page["items"]
        return items if isinstance(items, list) else []

    def mark_notification(self, notification_id: UUID, status: str) -> CustomerNotification:
        """Mark a notification as READ or UNREAD."""
        path = f"/api/v1/notifications/{notification_id}/"
        return self._change("PATCH", path, {"status": status}, kind=CustomerNotification)

    def set_audience(
        self, notification_type: str, *, roles: Sequence[str], user_ids: Sequence[UUID] = ()
    ) -> NotificationAudience:
        """Choose who is notified of a type; both empty means no one."""
        body = {"roles": list(roles), "user_ids": [str(each) for each in user_ids]}
        return self._change("PUT", f"{_AUDIENCES}{notification_type}/", body, kind=NotificationAudience)

    def audit_log(self, member_id: UUID | None = None, **timestamps: str) -> Iterator[CustomerAuditLogEntry]:
        """Iterate over actions of one member or of all: `timestamp_from`, `timestamp_to`."""
        member_path = "" if member_id is None else f"members/{member_id}/"
        return self._iterate(f"{_TEAM}{member_path}audit-logs/", CustomerAuditLogEntry, timestamps)

    def audit_log_csv(self) -> str:
        """Return the whole log as CSV."""
        return self._text(f"{_TEAM}audit-logs.csv")

    def transactions_csv(self) -> str:
        """Return all transactions as CSV."""
        return self._text("/api/v2/transactions.csv")

    def trades_csv(self) -> str:
        """Return all trades as CSV."""
        return self._text("/api/v1/trades.csv")

    # -- Pockets and payees ---------------------------------------------------------------

    def confirm_deposits(
        self, counterparty_id: UUID, first: int, second: int, *, key: str | None = None
    ) -> Counterparty:
        """Name the two amounts in cents that arrived at a counterparty's account."""
        path = f"{_COUNTERPARTIES}{counterparty_id}/verify-micro-deposits/"
        return self._change("POST", path, {"amounts": [first, second]}, kind=Counterparty, key=key)

    def pockets(self, *, offset: int = 0, limit: int = 30) -> OffsetList[Pocket]:
        """Return some Pockets, newest first."""
        return self._get(_POCKETS, OffsetList[Pocket], {"offset": offset, "limit": limit})

    def open_pocket(self, name: str, strategy_id: str, *, key: str | None = None) -> Pocket:
        """Open a Pocket that follows one strategy, like `UST-4W`."""
        body = {"pocket_name": name, "trading_strategy_id": strategy_id}
        return self._change("POST", _POCKETS, body, kind=Pocket, key=key)

    def portals(self, pocket_id: UUID | None = None) -> Iterator[Portal]:
        """Iterate over the portals of a Pocket, or of all."""
        path = "/api/v2/portals/" if pocket_id is None else f"{_POCKETS}{pocket_id}/portals/"
        return self._iterate(path, Portal)

    def open_portal(self, pocket_id: UUID, name: str, *, key: str | None = None) -> Portal:
        """Open a portal of a Pocket."""
        path = f"{_POCKETS}{pocket_id}/portals/"
        return self._change("POST", path, {"name": name}, kind=Portal, key=key)

    # -- the team -------------------------------------------------------------------------

    def invite_member(
        self, first_name: str, last_name: str, email: str, *, role: str, key: str | None = None, **fields: str
    ) -> TeamMember:
        """Invite a person by e-mail; `phone_number`."""
        body = {"first_name": first_name, "last_name": last_name, "email": email, "role": role, **fields}
        return self._change("POST", f"{_TEAM}invite/", body, kind=TeamMember, key=key)

    def create_service_user(
        self, name: str, scopes: Sequence[str], public_key: str, *, key: str | None = None, **fields: str
    ) -> TeamProgram:
        """Create a service user with its first public key, PEM; `description`, `profile`."""
        body: dict[str, Any] = {"name": name, "scopes": list(scopes), "public_key": public_key}
        return self._change("POST", _SERVICE_USERS, body | fields, kind=TeamProgram, key=key)

    def add_service_user_key(
        self, member_id: UUID, public_key: str, *, rotate: bool = False, key: str | None = None
    ) -> ProgramKey:
        """Register another public key, in addition to the others or in their place."""
        path = f"{_SERVICE_USERS}{member_id}/keys/{'rotate/' if rotate else ''}"
        return self._change("POST", path, {"public_key": public_key}, kind=ProgramKey, key=key)

    # -- dual control ----------------------------------------------------------------------

    def request_transfer(
        self, transfer: dict[str, Any], *, reviewers: Sequence[UUID] = (), key: str | None = None
    ) -> ShownTransferRequest:
        """Request a transfer; `transfer` has its fields as in the API, its `id` among them."""
        body = {"transfer": transfer, "reviewers": list(reviewers)}
        return self._change("POST", _TRANSFER_REQUESTS, body, kind=ShownTransferRequest, key=key)

    def review_transfer_request(
        self, request: ShownTransferRequest, status: str, *, comment: str | None = None
    ) -> ShownTransferRequest:
        """Approve (`APPROVED`) or deny (`DENIED`) a request as it was read."""
        body = {"status": status, "comment": comment, "content_hash": request.content_hash}
        path = f"{_TRANSFER_REQUESTS}{request.id}/status/"
        return self._change("PATCH", path, body, kind=ShownTransferRequest)

    def review_authorization_request(
        self, request: AuthorizationRequest, status: str, *, comment: str | None = None
    ) -> AuthorizationRequest:
        """Confirm (`APPROVED`) or refuse (`DENIED`) a change as it was read."""
        body = {"status": status, "comment": comment, "content_hash": request.content_hash}
        path = f"{_AUTHORIZATION_REQUESTS}{request.id}/status/"
        return self._change("PATCH", path, body, kind=AuthorizationRequest)

    def _text(self, path: str) -> str:
        response = self._http.get(path)
        if response.is_error:
            raise ApiError(response)
        return response.text
