"""`billfold sandbox trust`: browsers of this person trust the certificate authority of the sandbox."""

import shutil
import subprocess
import sys
from pathlib import Path

from billfold.cli.context import CliContext, CliError
from billfold.sandbox.running_sandbox import require_sandbox_file

_NAME = "Billfold sandbox"


def commands_to_trust(platform: str, home: Path, ca_file: Path) -> list[list[str]]:
    """Return the commands that add an authority to a person's own store: no store of the machine, no root."""
    match platform:
        case "darwin":
            keychain = str(home / "Library/Keychains/login.keychain-db")
            return [["security", "add-trusted-cert", "-r", "trustRoot", "-k", keychain, str(ca_file)]]
        case "win32":
            return [["certutil", "-user", "-addstore", "Root", str(ca_file)]]
        case _:
            firefox = [each.parent for each in sorted((home / ".mozilla/firefox").glob("*/cert9.db"))]
            added = ["-A", "-t", "C,,", "-n", _NAME, "-i", str(ca_file)]
            chrome = home / ".pki/nssdb"
            is_new = not (chrome / "cert9.db").exists()
            made = [["mkdir", "-p", str(chrome)], ["certutil", "-d", f"sql:{chrome}", "-N", "--empty-password"]]
            return [*made * is_new, *(["certutil", "-d", f"sql:{each}", *added] for each in (chrome, *firefox))]


def trust(context: CliContext) -> str:
    """Let your browsers trust this sandbox: its authority can vouch for the names of the sandbox only."""
    ca_file = Path(require_sandbox_file(context.settings().state_dir).ca_file)
    commands = commands_to_trust(sys.platform, Path.home(), ca_file)
    program = commands[-1][0]
    if shutil.which(program) is None:
        by_hand = f"Install libnss3-tools, or add {ca_file} in your browser's settings."
        raise CliError(f"{program} is not installed.", by_hand)
    for each in commands:
        done = subprocess.run(each, capture_output=True, text=True, check=False)  # noqa: S603 - of our own words
        if done.returncode:
            raise CliError(f"{program} failed: {(done.stderr or done.stdout).strip()}", f"Add {ca_file} by hand.")
    return "Your browsers trust the sandbox: start them again. To undo it, remove the certificate in their settings."
