"""Who calls the programs that want to be told."""

from billfold.events.webhooks.http_client import GuardedWebhookClient
from billfold.events.webhooks.ports import WebhookClient
from billfold.platform.settings.settings import Settings


def webhook_client_of(settings: Settings) -> WebhookClient:
    """Return who calls receivers outside; in a sandbox also those in the networks it allows."""
    return GuardedWebhookClient(allowed=settings.webhook_allowed_networks, trusted_ca=settings.webhook_trusted_ca)
