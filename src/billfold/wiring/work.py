"""What `billfold worker` does, side by side until it is stopped."""

import asyncio

from billfold.audit.worker import AuditSealer
from billfold.events.email.worker import EmailSender
from billfold.events.notifications.worker import NotificationWorker, failing_notifier
from billfold.events.webhooks.worker import WebhookDispatcher
from billfold.ledger.bank import Bank
from billfold.onboarding.rescreening import screen_backlog
from billfold.payments.clearing.moves import MovedSettlements
from billfold.payments.crypto.chains import Chains
from billfold.payments.crypto.deposits.watcher import ChainWatchers
from billfold.payments.crypto.withdrawals.worker import withdrawal_senders
from billfold.payments.on_us.worker import execute_all_pending
from billfold.reports.requests.worker import PARALLEL, make_reports
from billfold.reports.statements.worker import StatementMaker
from billfold.reports.tax.worker import TaxFormMaker
from billfold.treasury.worker import WaitingCash
from billfold.wiring.providers import archive_of, email_transport_of, webhook_client_of
from billfold.wiring.scheduled_jobs import file_receivers
from billfold.wiring.worker import Worker


async def work(bank: Bank, stop: asyncio.Event) -> None:
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
        MovedSettlements().report,
        *file_receivers(),
        *withdrawal_senders(bank.ports[Chains]),
        *[make_reports] * PARALLEL,
        *tasks,
    )
    client, on_failing_callback = webhook_client_of(bank.settings), failing_notifier(bank.vault)
    dispatcher = WebhookDispatcher(bank.pool, bank.vault, client, on_failing=on_failing_callback)
    await asyncio.gather(worker.run(stop), dispatcher.run(stop))
