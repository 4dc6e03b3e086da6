"""Where files are: those of the rails, and those that people upload."""

from pathlib import Path

from billfold.adapters.exchange_folders import ExchangeFolders
from billfold.adapters.local_files import LocalFiles
from billfold.adapters.simulated_linking import SimulatedLinking
from billfold.kit.settings import Settings
from billfold.ports.exchange import Rails
from billfold.ports.linking import LinkingProvider


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
