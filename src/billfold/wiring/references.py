"""What the engine reads for a command beside the holdings of its customers."""

from collections.abc import Sequence
from functools import cache, partial
from importlib import import_module
from pkgutil import walk_packages

import billfold
from billfold.accounts.counterparties import store as counterparty_store
from billfold.accounts.counterparties.store import notify_changes
from billfold.accounts.customers import store as customer_store
from billfold.accounts.portals.store import load_portals
from billfold.accounts.transactions.store import find_bank_bookings
from billfold.audit.command_entries import record_commands
from billfold.documents import store as document_store
from billfold.ledger.commands import Reference
from billfold.ledger.engine.pending_command import ReferenceReaders
from billfold.ledger.engine.ports import BatchRecorder, IdentifierLoader
from billfold.payments.ach import store as ach_entries
from billfold.payments.cards import store as card_store
from billfold.payments.cards.authorizations import store as card_authorizations
from billfold.payments.crypto.deposits import store as crypto_deposits
from billfold.payments.crypto.withdrawals.store import load_open_withdrawals
from billfold.payments.crypto.withdrawals.store import load_references as load_withdrawals
from billfold.payments.custody import worker as custody_store
from billfold.payments.on_us.store import load_pending
from billfold.payments.suspense import store as suspense_store
from billfold.payments.wires.store import load_open_wires
from billfold.payments.wires.store import load_references as look_up_wires
from billfold.platform.crypto import Vault
from billfold.screening import hits as sanctions_hits

_APART = ("billfold.sandbox", "billfold.wiring")


@cache
def load_rules() -> None:
    """Import every module named `rules`, or in a folder `rules`, so that the engine can decide every command."""
    for each in walk_packages(billfold.__path__, "billfold."):
        if not each.name.startswith(_APART) and "rules" in each.name.split("."):
            import_module(each.name)


def reference_readers() -> ReferenceReaders:
    """Return the reader of each kind of reference."""
    return {
        Reference.ACH_ENTRY: ach_entries.load_references,
        Reference.CARD: card_store.load_references,
        Reference.CARD_AUTHORIZATION: card_authorizations.load_references,
        Reference.COUNTERPARTY: counterparty_store.find_payees,
        Reference.CUSTOMER_PROFILE: customer_store.find_profiles,
        Reference.CRYPTO_WITHDRAWAL: load_withdrawals,
        Reference.CRYPTO_DEPOSIT: crypto_deposits.load_references,
        Reference.DOCUMENT: document_store.find_referenced,
        Reference.OPEN_ACH_ENTRIES: ach_entries.load_open_entries,
        Reference.OPEN_WIRES: load_open_wires,
        Reference.OPEN_WITHDRAWALS: load_open_withdrawals,
        Reference.SANCTIONS_HIT: sanctions_hits.find_standing_of_customers,
        Reference.SECURITY_TRANSFER: custody_store.load_references,
        Reference.SUSPENSE_ITEM: suspense_store.load_references,
        Reference.TRANSACTION: find_bank_bookings,
        Reference.WIRE: look_up_wires,
    }


def identifier_loaders() -> Sequence[IdentifierLoader]:
    """Return what loads portals, counterparties and pending transfers."""
    return load_portals, counterparty_store.load_payees, load_pending


def batch_recorders(vault: Vault) -> Sequence[BatchRecorder]:
    """Return the recorders of audit entries and of notifications."""
    return partial(record_commands, vault=vault), partial(notify_changes, vault=vault)
