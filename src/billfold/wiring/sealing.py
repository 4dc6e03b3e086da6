"""Seals the personal data that earlier releases stored in plain text. Every step may be stopped and begun again.

What was sealed with a former key of the bank, and is found by an index, is sealed anew.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from functools import partial
from typing import TYPE_CHECKING, Final

from billfold.access.oauth import signing_keys
from billfold.access.partners import store as partner_secrets
from billfold.access.users import totp
from billfold.access.users.earlier_rows import seal_contact_details
from billfold.accounts.counterparties.earlier_rows import seal_earlier_counterparties
from billfold.data_keys.columns import SEALED_COLUMNS
from billfold.data_keys.earlier_rows import seal_earlier_rows
from billfold.documents.sealed_files import seal_earlier_files
from billfold.events.email.outbox import seal_earlier_emails
from billfold.events.notifications.descriptions import seal_earlier_descriptions
from billfold.events.webhooks import subscriptions
from billfold.payments.files.contents import seal_earlier_contents
from billfold.platform.database.resealing import SecretColumn, reseal

if TYPE_CHECKING:
    from billfold.cli.context import StepReporter
    from billfold.ledger.bank import Bank

_STEPS: Final[tuple[Callable[..., Awaitable[int]], ...]] = (
    seal_earlier_files,
    seal_earlier_contents,
    seal_contact_details,
    seal_earlier_descriptions,
    seal_earlier_emails,
    seal_earlier_counterparties,
    *(partial(seal_earlier_rows, column=column) for column in SEALED_COLUMNS),
)

SECRETS: Final = (
    SecretColumn("partner_secret", ("partner_id", "secret_no"), partner_secrets.secret_context),
    SecretColumn("subscription_secret", ("subscription_id", "secret_no"), subscriptions.secret_context),
    SecretColumn("authenticator", ("user_id",), totp.secret_place),
    SecretColumn("signing_key", ("key_id",), signing_keys.secret_place),
)
"""What the encryption key itself seals. Keys of documents are never changed: `billfold document-keys rotate`."""


async def reseal_secrets(bank: Bank) -> int:
    """Seal secrets under former encryption keys with the current one; return how many."""
    return await reseal(bank.pool, bank.vault, SECRETS)


async def seal_earlier_data(bank: Bank, progress: StepReporter) -> int:
    """Run every step; return how many values were sealed."""
    return sum([await step(bank, progress=progress) for step in _STEPS])
