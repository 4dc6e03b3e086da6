"""Where files are: those of the rails, and those that people upload."""

from pathlib import Path

from billfold.accounts.counterparties.ports import LinkingProvider
from billfold.documents.local_store import LocalFiles
from billfold.payments.files.folder_exchange import ExchangeFolders
from billfold.payments.files.ports import Rails
from billfold.platform.settings.settings import Settings
from billfold.sandbox.simulated_linking import SimulatedLinking


def rails_folder(settings: Settings) -> Path:
    """Return the folder below which every rail has its own."""
    return settings.rails_dir or settings.state_dir / "rails"


def wire_folders(settings: Settings) -> ExchangeFolders:
    """Return the folders of Fedwire."""
    return ExchangeFolders(rails_folder(settings) / "wire")


def linking_of(settings: Settings, seed: bytes) -> LinkingProvider | None:
    """Return the linking provider: the sandbox has one that is simulated, production none yet."""
    return None if settings.is_production else SimulatedLinking(seed)


def files_of(settings: Settings) -> LocalFiles:
    """Return the store of what people upload: the folder that was set, or one of the bank's."""
    return LocalFiles(settings.files_dir or settings.state_dir / "files")


def rails_of(settings: Settings) -> Rails:
    """Return the folders that were set, or those in the bank's own."""
    folder = rails_folder(settings)
    return Rails(ach=ExchangeFolders(folder / "ach"), wire=wire_folders(settings))
