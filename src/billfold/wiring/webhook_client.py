"""Who calls the programs that want to be told."""

from billfold.events.webhooks.ports import Messenger
from billfold.platform.network.webhook_client import GuardedHttp
from billfold.platform.settings.settings import Settings


def messenger_of(settings: Settings) -> Messenger:
    """Return who calls receivers outside; in a sandbox also those in the networks it allows."""
    return GuardedHttp(
        allowed=settings.webhook_allowed_networks, trusted_ca=settings.webhook_trusted_ca
    )
