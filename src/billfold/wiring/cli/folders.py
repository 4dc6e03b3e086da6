"""The folders that a bank writes to, looked at before it starts: rails, uploads, seals and the rest."""

from __future__ import annotations

import os
from pathlib import Path
from typing import TYPE_CHECKING

from billfold.audit.file_archive import FileArchive
from billfold.cli.context import CliError

if TYPE_CHECKING:
    from billfold.platform.settings.settings import Settings


def check_folders(settings: Settings) -> dict[Path, Path]:
    """Return what each configured folder is, or where it will be made. Raises CliError for what cannot be written."""
    seals = settings.audit_seals
    folders = (settings.state_dir, settings.files_dir, settings.rails_dir, seals and seals.parent)
    found = {folder: _nearest(folder) for folder in folders if folder is not None}
    for folder, there in found.items():
        if not (there.is_dir() and os.access(there, os.W_OK | os.X_OK)):
            raise CliError(f"{folder} is no folder that can be written to.", "Give this user access, or set another.")
    if seals is not None and seals.is_dir():
        raise CliError(f"{seals} is a folder.", "Set BILLFOLD_AUDIT_SEALS to the name of a file.")
    if seals is not None and not FileArchive(seals).is_own():
        raise CliError(f"{seals} is no file of seals.", "Set BILLFOLD_AUDIT_SEALS to a new file, or to one of seals.")
    return found


def _nearest(folder: Path) -> Path:
    absolute = folder.absolute()
    return next(each for each in (absolute, *absolute.parents) if each.exists() or each.is_symlink())
