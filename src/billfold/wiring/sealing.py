"""Seals again what the encryption key itself seals, after it was changed. Every step may be repeated."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from billfold.oauth import signing_keys
from billfold.identity.partners import store as partner_secrets
from billfold.identity.users import totp
from billfold.identity.users.contact_resealing import reseal_contact_details
from billfold.events.webhooks import subscriptions
from billfold.platform.database.resealing import SecretColumn, reseal

if TYPE_CHECKING:
    from billfold.cli.context import StepReporter
    from billfold.ledger.bank import Bank

SECRETS: Final = (
    SecretColumn("partner_secret", ("partner_id", "secret_no"), partner_secrets.secret_context),
    SecretColumn("subscription_secret", ("subscription_id", "secret_no"), subscriptions.secret_context),
    SecretColumn("authenticator", ("user_id",), totp.secret_place),
    SecretColumn("signing_key", ("key_id",), signing_keys.secret_place),
)
"""What the encryption key itself seals. Keys of documents are never changed: `billfold document-keys rotate`."""


async def reseal_secrets(bank: Bank, progress: StepReporter) -> int:
    """Seal contact details and secrets under former encryption keys with the current one; return how many secrets."""
    await reseal_contact_details(bank, progress)
    return await reseal(bank.pool, bank.vault, SECRETS)
