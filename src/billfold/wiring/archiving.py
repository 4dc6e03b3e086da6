"""Where the seals of the audit log are carried to."""

from billfold.adapters.file_archive import FileArchive
from billfold.kit.settings import Settings
from billfold.ports.archive import Archive

SEALS = "audit-seals.txt"


def archive_of(settings: Settings) -> Archive:
    """Return the file that was set, or the one in the bank's own folder."""
    return FileArchive(settings.audit_seals or settings.state_dir / SEALS)
