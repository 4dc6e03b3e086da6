"""Creates, fills in and submits applications, and changes their status."""

from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from datetime import datetime
from typing import Any, Final
from uuid import UUID

from billfold.audit import record
from billfold.audit.record import AuditedAction
from billfold.data_keys.keys import DataKeys
from billfold.documents import store as document_store
from billfold.events.notifications.notify import notify
from billfold.ledger import scheduler
from billfold.ledger.bank import Bank
from billfold.ledger.types import Origin, ScheduledJob
from billfold.onboarding.applications import store, types
from billfold.onboarding.applications.content import (
    Application,
    Content,
    open_application,
    seal_application,
    seal_related_party,
)
from billfold.onboarding.applications.rules.status import IDLE_LIMIT
from billfold.onboarding.applications.types import ApplicationRow, ApplicationStatus

_TITLES: Final[Mapping[ApplicationStatus, str]] = {
    ApplicationStatus.APPROVED: "An application was approved",
    ApplicationStatus.REJECTED: "An application was rejected",
    ApplicationStatus.MANUAL_REVIEW: "An application is being reviewed",
    ApplicationStatus.DOCUMENTS_NEEDED: "An application needs documents",
    ApplicationStatus.CLOSED: "An application was closed",
}
"""The statuses that notify the team, with the title of the notification."""
_REPORTED: Final = _TITLES.keys() - {ApplicationStatus.CLOSED}
_CHECKED: Final = frozenset({ApplicationStatus.SUBMITTED, ApplicationStatus.PENDING})


class ApplicationChange:
    """A change of one locked application, with its audit entry. `at`: business time."""

    def __init__(
        self, bank: Bank, action: AuditedAction, application: Application, *, at: datetime, wall: datetime
    ) -> None:
        self.bank, self.action, self.application, self.at, self.wall = bank, action, application, at, wall

    @property
    def row(self) -> ApplicationRow:
        """The current row of the application."""
        return self.application.row

    async def save(self, content: Content) -> None:
        """Replace the content of the application."""
        row = self.row
        sealed = await seal_application(
            self.action.conn, self.bank, row.applicant_id, row.application_id, content=content
        )
        await self.update(content=sealed, updated_at=self.at)

    async def save_party(self, related_party_id: UUID, content: Content) -> None:
        """Add a related party, or replace its content."""
        row, known = self.row, self.application.party_rows.get(related_party_id)
        await store.put_related_party(
            self.action,
            types.RelatedPartyRow(
                customer_id=row.customer_id,
                application_id=row.application_id,
                related_party_id=related_party_id,
                content=await seal_related_party(self.action.conn, self.bank, row, related_party_id, content=content),
                created_at=known.created_at if known else self.at,
                updated_at=self.at,
            ),
        )
        await self.update(updated_at=self.at)

    async def remove_party(self, related_party_id: UUID) -> None:
        """Remove a related party."""
        await store.delete_related_party(self.action, self.row, related_party_id)
        await self.update(updated_at=self.at)

    async def update(self, **changes: Any) -> None:
        """Change columns, and request the documents that the data now requires."""
        row = await store.update_application(self.action, self.row, **changes)
        await self._reload(row)
        await self.request_documents()

    async def move(
        self,
        status: ApplicationStatus,
        *,
        reasons: tuple[str, ...] = (),
        wait_until: datetime | None = None,
        **changes: Any,
    ) -> None:
        """Move to a status, with the resulting event, notification and check."""
        moved = await store.move_application(
            self.action, self.row, status, at=self.at, exception_reasons=list(reasons), **changes
        )
        self.action.details |= {"status": status} | ({"reasons": list(reasons)} if reasons else {})
        kind = types.REPORT_JOB if status in _REPORTED else types.CHECK_JOB if status in _CHECKED else None
        if kind is not None:
            job = ScheduledJob(kind, moved.move_id, moved.customer_id, wait_until or self.at)
            await scheduler.schedule(self.action.conn, [job])
        if status in _TITLES:
            await self._notify(moved)
        if status in {ApplicationStatus.REJECTED, ApplicationStatus.CLOSED}:
            await store.drop_awaited_members(self.action, moved)
        await self._reload(moved)

    async def request_documents(self) -> None:
        """Request required documents; cancel requests for documents no longer required that have no file."""
        row, conn = self.row, self.action.conn
        required = self.application.required(self.bank.seed)
        for document_id, request in required.items():
            await document_store.request_document(
                conn,
                row.customer_id,
                document_id,
                request.type,
                at=self.at,
                application_id=row.application_id,
                related_party_id=request.related_party_id,
                subject_id=row.applicant_id,
            )
        await document_store.drop_requests(conn, row.customer_id, row.application_id, keep=required)
        await self._reload(row)

    async def _reload(self, row: ApplicationRow) -> None:
        self.application = await open_application(self.action.conn, self.bank, row)

    async def _notify(self, row: ApplicationRow) -> None:
        await notify(
            self.action.conn,
            self.bank.vault,
            row.customer_id,
            "APPLICATION_STATUS_CHANGED",
            title=_TITLES[row.status],
            description=f"The application {row.application_id} is {row.status}.",
            metadata={"application_id": str(row.application_id), "status": row.status},
            now=self.wall,
        )


@asynccontextmanager
async def application_change(
    bank: Bank,
    row: ApplicationRow,
    verb: str,
    *,
    origin: Origin,
    at: datetime,
    wall: datetime,
    details: Mapping[str, Any] | None = None,
) -> AsyncIterator[ApplicationChange]:
    """Open the transaction of a change of an application, with entry `application.<verb>` in its owner's log."""
    await bank.ports[DataKeys].of(bank.pool, row.applicant_id)  # fetched before the transaction, which must not wait
    async with record.audited(
        bank, row.customer_id, origin, f"application.{verb}", resource_id=row.application_id, details=details, now=wall
    ) as action:
        locked = await store.lock_application(action.conn, row.customer_id, row.application_id)
        application = await open_application(action.conn, bank, locked)
        yield ApplicationChange(bank, action, application, at=at, wall=wall)


async def begin_application(
    bank: Bank, action: AuditedAction, row: ApplicationRow, *, at: datetime, wall: datetime
) -> Application | None:
    """Add a new application and request its documents; None if its owner already has one with this id."""
    if not await store.add_application(action, row):
        return None
    application = await open_application(action.conn, bank, row)
    change = ApplicationChange(bank, action, application, at=at, wall=wall)
    await change.request_documents()
    if row.kind == types.ApplicationKind.BUSINESS:
        job = ScheduledJob(types.EXPIRE_JOB, row.applicant_id, row.customer_id, at + IDLE_LIMIT)
        await scheduler.schedule(action.conn, [job])
    return change.application
