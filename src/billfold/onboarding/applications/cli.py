"""`billfold applications`: businesses and persons who apply, and the bank's decisions."""

from collections.abc import Iterable
from typing import Annotated, Literal
from uuid import UUID

import typer
from rich.markup import escape

from billfold.cli.command import EXAMPLE_ID, CommandGroup, Row, console
from billfold.cli.context import CliError
from billfold.documents.rules import TYPES
from billfold.identity.partners.store import list_partners
from billfold.ledger.bank import Bank
from billfold.ledger.types import Origin
from billfold.onboarding.applications import store
from billfold.onboarding.applications.content import describe_application, name_of, open_application, open_applications
from billfold.onboarding.applications.decisions import decide as decide_application
from billfold.onboarding.applications.ports import CheckResult, CheckStatus
from billfold.onboarding.applications.types import ApplicationRow, ApplicationStatus

MAX_ROWS = 200
group = CommandGroup("applications", "Show and decide applications.", example="list --status MANUAL_REVIEW")

ApplicationId = Annotated[UUID, typer.Argument(help="Its id, from the list.")]
OfPartner = Annotated[str | None, typer.Option(help="Of this partner, where several chose one id.")]
Decision = Literal["APPROVED", "REJECTED", "DOCUMENTS_NEEDED", "MANUAL_REVIEW"]


@group.table(
    "list --status MANUAL_REVIEW", columns=("application", "name", "kind", "status", "submitted"), empty="None."
)
async def list_applications(
    bank: Bank, *, status: Annotated[ApplicationStatus | None, typer.Option(help="Only these.")] = None
) -> Iterable[Row]:
    """List applications, newest first."""
    rows = await store.list_all(bank.pool, None if status is None else [status], MAX_ROWS)
    return [
        (each.row.application_id, escape(name_of(each)), each.row.kind, each.row.status, each.row.submitted_at)
        for each in await open_applications(bank.pool, bank, rows)
    ]


@group.view(f"show {EXAMPLE_ID}")
async def show(bank: Bank, application_id: ApplicationId, *, partner: OfPartner = None) -> None:
    """Show the applicant, its related parties, its documents and its status history. Numbers are not shown."""
    row = await _find(bank, application_id, partner)
    application = await open_application(bank.pool, bank, row)
    for line in await describe_application(bank, application):
        console.print(escape(line), soft_wrap=True)


@group.command(f"decide {EXAMPLE_ID} --status REJECTED --reason 'The name is on no register.'")
async def decide(
    bank: Bank,
    application_id: ApplicationId,
    *,
    status: Annotated[Decision, typer.Option(case_sensitive=False, help="What it becomes.")],
    reason: Annotated[list[str] | None, typer.Option(help="Why; the applicant sees it. May be repeated.")] = None,
    document: Annotated[list[str] | None, typer.Option(help="A type of document to send (again).")] = None,
    partner: OfPartner = None,
) -> str:
    """Decide an application: approve or reject it, or send it back for documents."""
    if status != "APPROVED" and not reason:
        raise CliError("A decision other than an approval needs a reason.", "Add --reason.")
    if (status == "DOCUMENTS_NEEDED") != bool(document):
        raise CliError("Documents are named with DOCUMENTS_NEEDED, and only then.", "Name one with --document.")
    if unknown := set(document or ()) - TYPES:
        raise CliError(f"Unknown type of document {', '.join(unknown)}.", f"Use {', '.join(sorted(TYPES))}.")
    result = CheckResult(status=CheckStatus(status), reasons=tuple(reason or ()), documents=tuple(document or ()))
    row = await _find(bank, application_id, partner)
    await decide_application(bank, row, result, origin=Origin.operator(), now=await bank.now())
    if status == "APPROVED":
        return f"It is approved; the worker creates the customer {row.applicant_id}."
    return f"The application is {status}."


async def _find(bank: Bank, application_id: UUID, partner: str | None) -> ApplicationRow:
    slugs = {each.partner_id: each.slug for each in await list_partners(bank.pool)}
    rows = await store.list_by_id(bank.pool, application_id)
    found = [each for each in rows if partner in {None, slugs[each.partner_id]}]
    if not found:
        raise CliError(f"There is no application {application_id}.", "See `billfold applications list`.")
    owners = sorted({slugs[each.partner_id] for each in found})
    if len(owners) > 1:
        raise CliError(f"Customers of {', '.join(owners)} chose this id.", f"Add --partner {owners[0]}, or another.")
    if len(found) > 1:
        raise CliError("Two customers chose this id.", "Decide it in `billfold review`, by the id of the applicant.")
    return found[0]
