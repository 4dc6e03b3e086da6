"""Where the seals of the audit log are carried to."""

from billfold.audit.file_archive import FileArchive
from billfold.audit.ports import Archive
from billfold.platform.settings.settings import Settings

SEALS = "audit-seals.txt"


def archive_of(settings: Settings) -> Archive:
    """Return the file that was set, or the one in the bank's own folder."""
    return FileArchive(settings.audit_seals or settings.state_dir / SEALS)
