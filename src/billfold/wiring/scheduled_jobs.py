"""Maps each kind of scheduled job, and the files of each rail, to its function."""

from __future__ import annotations

import asyncio
from functools import partial
from typing import TYPE_CHECKING

from billfold.accounts.counterparties.requests import expire_verification
from billfold.accounts.counterparties.rules.manage import DEPOSITS_DUE, SCREENING_DUE, VERIFICATION_EXPIRY
from billfold.accounts.customers.rules import CLOSED_JOB
from billfold.accounts.holds.commands import EXPIRY_JOB as HOLD_EXPIRY_JOB
from billfold.accounts.holds.worker import expire_hold
from billfold.accounts.pockets.commands import POCKET_CLOSED_JOB
from billfold.approvals import execute_transfers, types
from billfold.approvals.authorization_requests import report_policy
from billfold.approvals.series import worker as series_worker
from billfold.approvals.store.requests import report_transfer_request, run_expiry_job
from billfold.audit.seals import AuditSealer
from billfold.batches import worker as batch_worker
from billfold.batches.types import EXPIRE_BATCH, RUN_BATCH
from billfold.data_keys.keys import DataKeys
from billfold.documents.ports import APPLICATION_DOCUMENT_JOB
from billfold.events.changes import LIMITS_CHANGED, STATEMENT_MADE, report_limits, report_statement
from billfold.events.email.outbox import EmailSender
from billfold.events.notifications.payment_notifications import NotificationWorker, failing_notifier
from billfold.events.webhooks.worker import WebhookDispatcher
from billfold.ledger.bank import Bank, JobRunners
from billfold.ledger.types import ScheduledJob
from billfold.onboarding.applicant_team import run_team_job
from billfold.onboarding.applications import decisions
from billfold.onboarding.applications.approval import run_approve_job
from billfold.onboarding.applications.types import APPROVE_JOB, CHECK_JOB, EXPIRE_JOB, REPORT_JOB, TEAM_JOB
from billfold.onboarding.rescreening import run_decided_job, screen_backlog
from billfold.payments.ach import outbound
from billfold.payments.ach.inbound_files import ACH_FILES_JOB, AchFileProcessor
from billfold.payments.ach.micro_deposits import send_micro_deposits
from billfold.payments.ach.returns import SUSPENSE_RETURN_JOB, queue_suspense_return
from billfold.payments.ach.rules.entries import ACH_WINDOW
from billfold.payments.cards import worker as card_worker
from billfold.payments.cards.authorizations.commands import EXPIRY_JOB, LATE_JOB
from billfold.payments.cards.authorizations.disputes.commands import DISPUTE_JOB
from billfold.payments.cards.authorizations.disputes.worker import run_dispute_job
from billfold.payments.cards.cash_back.rules import CASH_BACK_JOB
from billfold.payments.cards.cash_back.worker import give_month
from billfold.payments.cards.commands import ORDER_JOB, STATUS_JOB
from billfold.payments.cards.settlement.inbound import CardSettlementFiles
from billfold.payments.clearing.rules import BANK_DAY_CLOSED_JOB
from billfold.payments.clearing.worker import MovedSettlements
from billfold.payments.crypto.chains import Chains
from billfold.payments.crypto.deposits.watcher import ChainWatchers, record_returned
from billfold.payments.crypto.withdrawals.worker import withdrawal_senders
from billfold.payments.custody.inbound import CustodianFiles
from billfold.payments.custody.outbound import InstructionSender
from billfold.payments.custody.rules import APPOINTMENT as DELIVERY
from billfold.payments.fedwire.booking import queue_held_return
from billfold.payments.fedwire.inbound_files import FedwireFileProcessor
from billfold.payments.fedwire.outbound import FedwireSender
from billfold.payments.files.rules import close_job
from billfold.payments.on_us.reversals.commands import EXPIRY_JOB as REVERSAL_EXPIRY_JOB
from billfold.payments.on_us.reversals.worker import expire_request
from billfold.payments.on_us.worker import execute_all_pending
from billfold.payments.suspense.worker import UNCLAIMED_RETURN_JOB, return_unclaimed
from billfold.payments.wires.rules.recording import WIRE_SEND
from billfold.reconciliation.worker import Mornings, StatementFiles
from billfold.reports.proofs.roots.worker import DailyRootMaker
from billfold.reports.requests.types import FINISHED_JOB
from billfold.reports.requests.worker import PARALLEL, make_reports, run_finished_job
from billfold.reports.statements.worker import StatementMaker
from billfold.reports.tax.worker import TaxFormMaker
from billfold.screening.screening import run_screening_job
from billfold.screening.types import DECIDED_JOB
from billfold.servicing.worker import ActivityCounter
from billfold.team import approved_changes
from billfold.team.members import MEMBER_CHANGED, report_member
from billfold.trading.fix.worker import DealerSessions
from billfold.trading.rules.settlements import CANCEL_JOB, SEND_JOB
from billfold.trading.worker import DeskRounds
from billfold.treasury.price_fetch import PriceFetch
from billfold.treasury.price_sources import price_sources_of
from billfold.treasury.worker import WaitingCash
from billfold.wiring.providers import archive_of, email_transport_of, webhook_client_of
from billfold.wiring.worker import PeriodicTask, Worker

if TYPE_CHECKING:
    from billfold.sandbox.simulated_providers import Simulation


_EXPIRIES = types.EXPIRE_AUTHORIZATION_REQUEST, types.EXPIRE_TRANSFER_REQUEST


def job_runners(simulation: Simulation | None) -> JobRunners:
    """Return the function of every kind of job, the same in every process."""
    wires = simulation.wires.sender if simulation else FedwireSender()
    return {
        WIRE_SEND: wires.run,
        "wire.suspense_return": queue_held_return,
        "crypto.suspense_return": record_returned,
        outbound.COLLECT_JOB: outbound.collect_debits,
        outbound.COUNT_SETTLED_JOB: outbound.count_settled,
        **_file_jobs(),
        SUSPENSE_RETURN_JOB: queue_suspense_return,
        UNCLAIMED_RETURN_JOB: return_unclaimed,
        DEPOSITS_DUE: send_micro_deposits,
        ACH_WINDOW: outbound.AchWindows(simulation.ach.schedule_answer if simulation else None).open_window,
        VERIFICATION_EXPIRY: expire_verification,
        **_approval_jobs(),
        CLOSED_JOB: batch_worker.run_closed_job,
        CHECK_JOB: decisions.run_check_job,
        REPORT_JOB: decisions.run_report_job,
        APPROVE_JOB: run_approve_job,
        EXPIRE_JOB: decisions.run_expire_job,
        TEAM_JOB: run_team_job,
        APPLICATION_DOCUMENT_JOB: decisions.run_document_job,
        BANK_DAY_CLOSED_JOB: partial(_after_close, simulation, DailyRootMaker()),
        CASH_BACK_JOB: give_month,
        DECIDED_JOB: run_decided_job,
        SCREENING_DUE: run_screening_job,
        HOLD_EXPIRY_JOB: expire_hold,
        **_card_jobs(),
        FINISHED_JOB: run_finished_job,
        LIMITS_CHANGED: report_limits,
        STATEMENT_MADE: report_statement,
        MEMBER_CHANGED: report_member,
        **_custody_jobs(simulation),
        **(simulation.job_runners() if simulation else {}),
    }


def _approval_jobs() -> JobRunners:
    return {
        types.APPLY_AUTHORIZATION_REQUEST: approved_changes.run_apply_job,
        types.EXECUTE_TRANSFER_REQUEST: execute_transfers.run_execute_job,
        types.RUN_SERIES: series_worker.run_series,
        types.REPORT_SERIES: series_worker.report,
        types.REPORT_TRANSFER_REQUEST: report_transfer_request,
        types.REPORT_POLICY: report_policy,
        RUN_BATCH: batch_worker.run_batch,
        EXPIRE_BATCH: batch_worker.expire_batch,
        REVERSAL_EXPIRY_JOB: expire_request,
        **dict.fromkeys(_EXPIRIES, run_expiry_job),
    }


async def _after_close(simulation: Simulation | None, maker: DailyRootMaker, bank: Bank, at: ScheduledJob) -> None:
    if simulation:
        await simulation.statements.schedule(bank, at)
    await maker.run(bank, at)


def _card_jobs() -> JobRunners:
    return {
        ORDER_JOB: card_worker.place_order,
        STATUS_JOB: card_worker.report_status,
        EXPIRY_JOB: card_worker.expire_hold,
        LATE_JOB: card_worker.reverse_late,
        DISPUTE_JOB: run_dispute_job,
        POCKET_CLOSED_JOB: card_worker.close_cards,
    }


def _custody_jobs(simulation: Simulation | None) -> JobRunners:
    custody = InstructionSender(simulation.custodian.receive_file if simulation else None)
    return {DELIVERY: custody.deliver, SEND_JOB: custody.send, CANCEL_JOB: custody.cancel}


def _file_jobs() -> JobRunners:
    processors = (
        FedwireFileProcessor(),
        AchFileProcessor(),
        CardSettlementFiles(),
        CustodianFiles(),
        StatementFiles(),
    )
    return {ACH_FILES_JOB: AchFileProcessor().run, **{close_job(each.rail): each.close for each in processors}}


def file_receivers() -> tuple[PeriodicTask, ...]:
    """Return the processor of arrived files per rail; each returns how many files it checked."""
    processors = AchFileProcessor(), CardSettlementFiles(), CustodianFiles(), StatementFiles()
    return (FedwireFileProcessor(), *(each.process_all for each in processors))


async def run_worker(bank: Bank, stop: asyncio.Event) -> None:
    """Run the worker until `stop` is set."""
    tasks = (
        NotificationWorker(),
        ChainWatchers(),
        EmailSender(email_transport_of(bank.settings)),
        AuditSealer(archive_of(bank.settings)),
        StatementMaker(),
        TaxFormMaker(),
    )
    worker = Worker(
        bank,
        execute_all_pending,
        screen_backlog,
        WaitingCash().invest,
        PriceFetch(price_sources_of(bank.settings)).fetch,
        MovedSettlements().report,
        DeskRounds().run,
        DealerSessions(),
        Mornings().run,
        ActivityCounter().count,
        *file_receivers(),
        *withdrawal_senders(bank.ports[Chains]),
        *[make_reports] * PARALLEL,
        *tasks,
    )
    client, on_failing_callback = webhook_client_of(bank.settings), failing_notifier(bank.vault)
    dispatcher = WebhookDispatcher(bank.pool, bank.vault, bank.ports[DataKeys], client, on_failing=on_failing_callback)
    await asyncio.gather(worker.run(stop), dispatcher.run(stop))
