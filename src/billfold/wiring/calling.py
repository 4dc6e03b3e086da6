"""Who calls the programs that want to be told."""

from billfold.adapters.guarded_http import GuardedHttp
from billfold.kit.settings import Settings
from billfold.ports.webhook import Messenger


def messenger_of(settings: Settings) -> Messenger:
    """Return who calls receivers outside; in a sandbox also those in the networks it allows."""
    return GuardedHttp(
        allowed=settings.webhook_allowed_networks, trusted_ca=settings.webhook_trusted_ca
    )
