"""Who reads what commands reference."""

from billfold.accounts.counterparties import store as counterparty_store
from billfold.accounts.transactions import booked_by_bank
from billfold.documents import store as document_store
from billfold.ledger.commands import Reference
from billfold.ledger.engine.references import ReferenceReaders
from billfold.payments.ach.store import entries as ach_entries
from billfold.payments.suspense import store as suspense_store
from billfold.payments.wires.store.wires import look_up as look_up_wires
from billfold.treasury.custody import store as custody_store


def reference_readers() -> ReferenceReaders:
    """Return the reader of each kind of reference."""
    return {
        Reference.ACH_ENTRY: ach_entries.look_up,
        Reference.COUNTERPARTY: counterparty_store.look_up,
        Reference.DOCUMENT: document_store.look_up,
        Reference.OPEN_ACH_ENTRIES: ach_entries.look_up_under_way,
        Reference.SECURITY_TRANSFER: custody_store.look_up,
        Reference.SUSPENSE_ITEM: suspense_store.look_up,
        Reference.TRANSACTION: booked_by_bank.look_up,
        Reference.WIRE: look_up_wires,
    }
