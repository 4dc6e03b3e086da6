"""Where files are: those of the rails, and those that people upload."""

from pathlib import Path

from billfold.accounts.counterparties.ports import LinkingProvider
from billfold.documents.local_store import LocalFileStore
from billfold.payments.files.folder_exchange import ExchangeFolders
from billfold.payments.files.ports import RailExchanges
from billfold.platform.settings.settings import Settings
from billfold.sandbox.simulated_linking import SimulatedLinking


def rail_files_folder(settings: Settings) -> Path:
    """Return the folder below which every rail has its own."""
    return settings.rails_dir or settings.state_dir / "rails"


def fedwire_folders(settings: Settings) -> ExchangeFolders:
    """Return the folders of Fedwire."""
    return ExchangeFolders(rail_files_folder(settings) / "wire")


def linking_provider_of(settings: Settings, seed: bytes) -> LinkingProvider | None:
    """Return the linking provider: the sandbox has one that is simulated, production none yet."""
    return None if settings.is_production else SimulatedLinking(seed)


def file_store_of(settings: Settings) -> LocalFileStore:
    """Return the store of what people upload: the folder that was set, or one of the bank's."""
    return LocalFileStore(settings.files_dir or settings.state_dir / "files")


def rail_exchanges_of(settings: Settings) -> RailExchanges:
    """Return the folders that were set, or those in the bank's own."""
    folder = rail_files_folder(settings)
    return RailExchanges(ach=ExchangeFolders(folder / "ach"), wire=fedwire_folders(settings))
