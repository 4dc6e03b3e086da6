"""`billfold init production`: asks what a bank needs and writes settings, secrets, roles and units into a folder."""

import base64
import os
import re
import secrets
import shlex
import sys
import tempfile
import tomllib
from collections.abc import Iterable, Iterator, Mapping, Sequence
from importlib.resources import files
from pathlib import Path
from typing import Annotated, NamedTuple
from urllib.parse import quote

import typer
from rich.markup import escape

from billfold.cli.command import CommandGroup, print_error, print_line, print_success
from billfold.cli.context import CliError, read_text_file
from billfold.cli.python_process import python_command
from billfold.platform.settings import kinds
from billfold.platform.settings.kinds import Setting, SettingType
from billfold.platform.settings.settings import Settings, declared_settings
from billfold.platform.settings.validation import variable_name

group = CommandGroup("init", "Write the files that a bank of your own starts with.", example="production /etc/billfold")
_CHECKOUT = Path(__file__).parents[4] / "deploy"
_PLAIN = re.compile(r"[A-Za-z0-9_.,:/@+-]*")
_CREATE = "CREATE DATABASE billfold OWNER billfold TEMPLATE template0 ENCODING 'UTF8' LOCALE 'C.UTF-8';"
_COMMAND = """#!/bin/sh
# A command of the bank with its settings, as root: ./billfold doctor. Only `migrate` has the address of the owner.
set -a
. {folder}/billfold.env
BILLFOLD_STATE_DIR=${{BILLFOLD_STATE_DIR:-/var/lib/billfold}}
BILLFOLD_DATABASE_URL_FILE={folder}/secrets/database BILLFOLD_SEED_FILE={folder}/secrets/seed
BILLFOLD_ENCRYPTION_KEY_FILE={folder}/secrets/key BILLFOLD_MAIL_URL_FILE={folder}/secrets/mail
test "$1" != migrate || BILLFOLD_DATABASE_OWNER_URL_FILE={folder}/secrets/owner
exec {program} "$@"
"""


def _server(raw: str) -> str:
    if raw.startswith("/"):
        return raw
    host, _, port = raw.rpartition(":")
    if ":" in host and not (host.startswith("[") and host.endswith("]")):
        raise ValueError(raw)
    kinds.HOST.read(host.strip("[]"))
    kinds.integer(1, 65_535).read(port)
    return raw


_SERVER = SettingType("like 127.0.0.1:5432, or the folder of a socket like /run/postgresql", _server)
_OWN: Mapping[str, Setting] = {
    "install": Setting(kinds.choice("systemd", "compose"), "What starts the processes."),
    "database": Setting(_SERVER, "Your PostgreSQL, 15 or later."),
    "behind_proxy": Setting(kinds.choice("yes", "no"), "Whether a proxy of yours ends https."),
}
_OWN_SERVER = "postgres:5432"
"""In the network of the compose file."""
_DRAWN = frozenset({"environment", "database_url", "database_owner_url", "seed", "encryption_key"})


class _Question(NamedTuple):
    """A question with its default; `only` is an answer on which it depends, `name=text` or `name!text`."""

    name: str
    default: str = ""
    only: str = ""


_QUESTIONS = (
    _Question("install", "systemd"),
    _Question("database", "127.0.0.1:5432", "install=systemd"),
    *map(
        _Question, ("domain", "bank_name", "bank_routing_number", "bank_bic", "bank_address", "bank_phone", "mail_url")
    ),
    _Question("mail_from", "no-reply@{domain}"),
    _Question("custodian", "files"),
    _Question("custodian_account", only="custodian!none"),
    _Question("linking_provider", "none"),
    _Question("linking_client_id", only="linking_provider=plaid"),
    _Question("linking_secret", only="linking_provider=plaid"),
    _Question("identity_check", "none"),
    _Question("behind_proxy", "yes", "install=systemd"),
    _Question("trusted_proxies", "127.0.0.1", "behind_proxy=yes"),
    _Question("tls_certificate", only="behind_proxy=no"),
    _Question("tls_key", only="behind_proxy=no"),
)
_OF_COMPOSE = {"behind_proxy": "yes", "trusted_proxies": "172.30.64.0/24"}
_OF_MAIL = re.compile(
    r"\nLoadCredential=mail:\S+| BILLFOLD_MAIL_URL_FILE=\S+|\n +BILLFOLD_MAIL_URL_FILE: \S+|\n  mail: .+|, mail(?=])"
)
"""What units, compose file and command have of one secret: other secrets come after it in the same way."""


@group.command("production /etc/billfold", "production /etc/billfold --answers bank.toml --yes")
def production(
    folder: Annotated[Path, typer.Argument(help="A folder that is not there yet, and stays.")] = Path("/etc/billfold"),
    answers: Annotated[Path | None, typer.Option(help="Answers as lines of TOML, as --questions prints them.")] = None,
    answer: Annotated[list[str] | None, typer.Option(help="One answer, NAME=TEXT; any setting may be named.")] = None,
    *,
    yes: Annotated[bool, typer.Option("--yes", help="Ask nothing: take the default where no answer is given.")] = False,
    questions: Annotated[bool, typer.Option("--questions", help="Print the questions as a file to fill in.")] = False,
) -> None:
    """Ask what a production bank needs, and write settings, secrets, roles, and units or a compose file.

    Answers can be given beforehand, in a file or by options; the rest is asked. Seed, encryption key and passwords are
    drawn. Everything is written into a new folder that only its owner can read, and nothing is ever overwritten. At the
    end the four steps that remain are printed. `billfold doctor` then tells what is still missing.
    """
    if questions:
        typer.echo("\n".join(_template()))
        return
    if os.path.lexists(folder):
        raise CliError(f"{folder} exists.", "Name a folder that does not: nothing is overwritten.")
    folder = _nameable(folder.absolute())
    given = _ask(_given(answers, answer or []), yes=yes)
    written = _files(given, folder)
    _write(folder, written)
    print_success(f"{len(written)} files are in {folder}. Keep a copy of its secrets where the bank is not.")
    program = Path(python_command()[0]).resolve()
    if given["install"].lower() == "systemd" and not all(
        each.stat().st_mode & 0o001 for each in (program, *program.parents)
    ):
        print_error(f"The user billfold may not run {program}.", "Make the environment with a Python of the system.")
    print_line("\n[bold]Four steps remain[/] (docs/operate/deploy.md):")
    for number, (what, command) in enumerate(_steps(given["install"], shlex.quote(str(folder))), 1):
        print_line(f"  {number}. {what}\n     [cyan]{escape(command)}[/]")


def _nameable(path: Path) -> Path:
    if not _PLAIN.fullmatch(str(path)):
        raise CliError(f"{path} has a space or a sign.", "Choose a path that units of systemd can name as it is.")
    return path


def _given(path: Path | None, pairs: Sequence[str]) -> dict[str, str]:
    """Return the answers of the file, and of the options instead. Raises CliError if any cannot be."""
    try:
        found = {name: str(text) for name, text in tomllib.loads(read_text_file(path)).items()} if path else {}
    except tomllib.TOMLDecodeError as error:
        raise CliError(f"{path} is not TOML: {error}.", "Write lines like bank_name = 'Example Bank'.") from None
    if unread := [pair for pair in pairs if "=" not in pair]:
        raise CliError(f"{unread[0]} is not an answer.", "Write it as NAME=TEXT.")
    found |= {name: text for name, _, text in (pair.partition("=") for pair in pairs)}
    found = {name: text.strip() for name, text in found.items() if text.strip()}
    mistakes = [each for name, text in found.items() if (each := _mistake(name, text))]
    if mistakes:
        raise CliError("\n".join(mistakes), "`billfold init production --questions` prints what is asked.")
    return found


def _declared(name: str) -> Setting | None:
    return _OWN.get(name) or (None if name in _DRAWN else declared_settings().get(name))


def _mistake(name: str, text: str) -> str:
    """Return why a text is not an answer, or nothing."""
    declared = _declared(name)
    if declared is None:
        return f"{name} is not a question or a setting."
    try:
        declared.kind.read_line(_quoted(text) and text)
    except ValueError:
        return f"{name} is not {declared.kind.expected}" + ("." if declared.secret else f": {text}")
    return ""


def _ask(given: dict[str, str], *, yes: bool) -> dict[str, str]:
    """Return all answers: those given, and what a person says or with `yes` the defaults. Raises CliError."""
    missing = []
    for name, default, only in _QUESTIONS:
        if given.get("install", "").lower() == "compose":
            given = _OF_COMPOSE | given
        if name in given or not _holds(only, given):
            continue
        usual = default.format(domain=given.get("domain", ""))
        if not yes:
            given[name] = _prompt(name, usual)
        elif default:
            given[name] = usual
        else:
            missing.append(name)
    if missing:
        raise CliError(f"Without an answer: {', '.join(missing)}.", "Add --answer NAME=TEXT, or lines to the file.")
    return given


def _holds(condition: str, given: Mapping[str, str]) -> bool:
    name, sign, text = re.split(r"([=!])", condition) if condition else ("", "!", "")
    answer = given.get(name, "none").lower()
    return not condition or (answer == text) == (sign == "=")


def _prompt(name: str, default: str) -> str:
    declared = _declared(name)
    assert declared is not None
    print_line(f"[dim]{escape(declared.meaning)} Expected: {escape(declared.kind.expected)}.[/]")
    while True:
        text = str(typer.prompt(name, default=default or None, hide_input=declared.secret)).strip()
        if text and not (wrong := _mistake(name, text)):
            return text
        print_error(wrong if text else "An answer is needed.")


def _template() -> Iterator[str]:
    yield "# Answers for `billfold init production --answers FILE --yes`."
    for name, default, only in _QUESTIONS:
        declared, condition = _declared(name), only.replace("=", " is ").replace("!", " is not ")
        assert declared is not None
        yield f"\n# {declared.meaning} Expected: {declared.kind.expected}." + (only and f" Asked if {condition}.")
        yield f'{only and "# "}{name} = "{default if "{" not in default else ""}"'


def _files(given: Mapping[str, str], folder: Path) -> dict[str, str]:
    """Return the files by their paths in the folder. Raises SettingsError if answers contradict each other."""
    is_compose = given["install"].lower() == "compose"
    server = _OWN_SERVER if is_compose else given["database"]
    passwords = {role: secrets.token_urlsafe(24) for role in ("billfold", "billfold_serve", "postgres")}
    owner, own = (_address(role, passwords, server) for role in tuple(passwords)[:2])
    sealed = {
        "database_url": own,
        "seed": secrets.token_urlsafe(32),
        "encryption_key": base64.b64encode(secrets.token_bytes(32)).decode(),
        "mail_url": given["mail_url"],
    }
    named = {name: text for name, text in given.items() if name not in {"install", "database", *sealed}}
    extra = {name: text for name, text in named.items() if (declared := _declared(name)) and declared.secret}
    stated = {"environment": "production", **{name: _absolute(name, text) for name, text in named.items()}}
    environ = {variable_name(name): text for name, text in stated.items()}
    Settings.from_env(environ | {variable_name(name): text for name, text in sealed.items()})
    secrets_in = dict(zip(("database", "seed", "key", "mail"), sealed.values(), strict=True)) | extra
    plain = [f"{variable_name(name)}={_quoted(text)}" for name, text in stated.items() if name not in extra]
    written = {
        "billfold.env": "\n".join(plain),
        "secrets/owner": owner,
        **{f"secrets/{name}": text for name, text in secrets_in.items()},
    }
    return written | (_for_compose(passwords, extra) if is_compose else _for_systemd(passwords, folder, extra))


def _with_secrets(text: str, extra: Iterable[str]) -> str:
    """Return a shipped text with further secrets, by the names of their settings."""
    return _OF_MAIL.sub(
        lambda found: (
            found[0] + "".join(found[0].replace("MAIL_URL", name.upper()).replace("mail", name) for name in extra)
        ),
        text,
    )


def _absolute(name: str, text: str) -> str:
    """Return an answer as it means the same in any folder."""
    declared = _declared(name)
    return str(Path(text).absolute()) if declared and declared.kind is kinds.PATH else text


def _for_compose(passwords: Mapping[str, str], extra: Iterable[str]) -> dict[str, str]:
    return {
        "compose.yaml": _with_secrets(_shipped("container/compose.yaml"), extra),
        "secrets/postgres": passwords["postgres"],
        "secrets/roles.sql": _roles(passwords),
    }


def _for_systemd(passwords: Mapping[str, str], folder: Path, extra: Iterable[str]) -> dict[str, str]:
    program = str(_nameable(Path(sys.prefix, "bin", "billfold")))
    units = {name: _shipped(f"systemd/{name}") for name in ("billfold-serve@.service", "billfold-worker@.service")}
    command = _with_secrets(_COMMAND, extra)
    return {
        **{
            name: _with_secrets(text, extra)
            .replace("/opt/billfold/bin/billfold", program)
            .replace("/etc/billfold", str(folder))
            for name, text in units.items()
        },
        "roles.sql": re.sub(r"ALTER DATABASE .*", _CREATE, _roles(passwords)),
        "billfold": command.format(folder=shlex.quote(str(folder)), program=shlex.quote(program)),
    }


def _roles(passwords: Mapping[str, str]) -> str:
    text = re.sub(r"^--.*\n", "", _shipped("container/roles.sql"), flags=re.MULTILINE)
    texts = {"a long random one": passwords["billfold"], "another one": passwords["billfold_serve"]}
    return re.sub("|".join(texts), lambda found: texts[found[0]], text)


def _address(role: str, passwords: Mapping[str, str], server: str) -> str:
    if server.startswith("/"):
        at = f"/billfold?host={quote(server, safe='')}"
    else:
        is_near = server.rpartition(":")[0].strip("[]") in kinds.THIS_MACHINE or server == _OWN_SERVER
        at = f"{server}/billfold" + ("" if is_near else "?sslmode=verify-full")
    return f"postgresql://{role}:{passwords[role]}@{at}"


def _quoted(text: str) -> str:
    """Return a value as systemd, a shell and Compose read it alike. Raises ValueError if there is no such way."""
    if _PLAIN.fullmatch(text):
        return text
    if not {"'", "\\"} & {*text}:
        return f"'{text}'"
    if {'"', "\\", "$", "`"} & {*text}:
        raise ValueError(text)
    return f'"{text}"'


def _shipped(name: str) -> str:
    shipped = files("billfold") / "deploy" / name
    return (shipped if shipped.is_file() else _CHECKOUT / name).read_text(encoding="utf-8")


def _write(folder: Path, written: Mapping[str, str]) -> None:
    """Write the folder as a whole, or nothing of it."""
    folder.parent.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(dir=folder.parent, prefix=".billfold-init-") as place:
        made = Path(place) / folder.name
        made.mkdir(mode=0o700)
        (made / "secrets").mkdir(mode=0o700)
        for name, text in written.items():
            (made / name).touch(mode=0o700 if text.startswith("#!") else 0o600)
            (made / name).write_text(text.rstrip("\n") + "\n", encoding="utf-8")
        made.rename(folder)


def _steps(install: str, at: str) -> tuple[tuple[str, str], ...]:
    """Return the steps that remain, each with its command."""
    compose = f"docker compose -f {at}/compose.yaml"
    user = "useradd --system --user-group --no-create-home billfold"
    units = "systemctl enable --now billfold-serve@8443 billfold-worker@9465"
    if install.lower() == "compose":
        owners = f"chown 10001 {at}/secrets/* && chown 999 {at}/secrets/postgres {at}/secrets/roles.sql"
        return (
            ("Build the image", "make wheel && docker build -f deploy/container/Containerfile -t billfold ."),
            ("Give the secrets to the users of the containers", owners),
            ("Start: database, migration, server, worker", f"{compose} up -d"),
            ("Check, and do what it says", f"{compose} exec serve billfold doctor"),
        )
    return (
        ("Create roles and database", f"sudo -u postgres psql -v ON_ERROR_STOP=1 < {at}/roles.sql"),
        ("Migrate", f"{at}/billfold migrate up"),
        ("Start the processes", f"{user}; cp {at}/*.service /etc/systemd/system/ && {units}"),
        ("Check, and do what it says", f"{at}/billfold doctor"),
    )
