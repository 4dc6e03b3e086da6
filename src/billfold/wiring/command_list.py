"""The commands by topic, as their help and the shell's completion list them: read from the sources, without imports."""

import ast
from collections.abc import Iterator, Mapping
from pathlib import Path
from types import MappingProxyType
from typing import Annotated

import typer

import billfold

TOPICS: Mapping[str, Mapping[str, str]] = MappingProxyType(
    {
        "Sandbox": {
            "sandbox": "billfold.wiring.cli.sandbox",
            "clock": "billfold.sandbox.cli.control",
            "listen": "billfold.sandbox.cli.listen",
            "trigger": "billfold.sandbox.cli.listen",
        },
        "Run the bank": {
            "serve": "billfold.wiring.cli.serve",
            "worker": "billfold.wiring.cli.serve",
            "run-https": "billfold.wiring.cli.serve",
            "migrate": "billfold.wiring.cli.migrate",
            "doctor": "billfold.wiring.cli.doctor",
            "verify": "billfold.wiring.cli.verify",
            "backup": "billfold.wiring.cli.backup",
            "backups": "billfold.wiring.cli.backup",
            "restore": "billfold.wiring.cli.backup",
            "keys": "billfold.wiring.cli.keys",
            "audit": "billfold.wiring.cli.audit",
            "due-work": "billfold.treasury.cli",
        },
        "Customers and partners": {
            "partner": "billfold.wiring.cli.partner",
            "users": "billfold.team.cli",
            "oauth-client": "billfold.oauth.cli",
            "customers": "billfold.accounts.customers.cli",
            "pocket": "billfold.accounts.pockets.cli",
            "review": "billfold.onboarding.cli",
            "applications": "billfold.onboarding.applications.cli",
            "agreements": "billfold.onboarding.agreements.cli",
            "screening": "billfold.screening.cli",
        },
        "Approve and freeze": {
            "approvals": "billfold.approvals.cli",
            "freezes": "billfold.dual_control.cli",
            "proposals": "billfold.dual_control.cli",
            "adjustment": "billfold.payments.adjustments.cli",
        },
        "Payments": {
            "ach": "billfold.payments.ach.cli",
            "wires": "billfold.payments.wires.cli",
            "files": "billfold.payments.files.cli",
            "liquidity": "billfold.payments.liquidity.cli",
            "suspense": "billfold.payments.suspense.cli",
            "clearing": "billfold.payments.clearing.cli",
            "reconcile": "billfold.reconciliation.cli",
            "cards": "billfold.payments.cards.cli",
            "card-settlement": "billfold.payments.cards.settlement.cli",
            "cash-back": "billfold.payments.cards.cash_back.cli",
            "crypto": "billfold.payments.crypto.cli",
        },
        "Treasury bills": {
            "market": "billfold.wiring.cli.market",
            "calendar": "billfold.wiring.cli.market",
            "desk": "billfold.trading.cli",
            "settlement": "billfold.trading.settlement.cli",
            "custody": "billfold.payments.custody.cli",
        },
        "Documents": {
            "statements": "billfold.reports.statements.cli",
            "tax": "billfold.reports.tax.cli",
            "proof": "billfold.reports.proofs.cli",
            "document-keys": "billfold.reports.proofs.cli",
        },
        "Develop": {
            "openapi": "billfold.wiring.cli.openapi",
            "deprecations": "billfold.wiring.cli.openapi",
            "bench": "billfold.wiring.cli.bench",
            "simulate": "billfold.wiring.cli.simulate",
        },
    }
)
"""The module of each command: a process imports only that of its own command."""
_SANDBOX = "Sandbox"
HELP = "A core for bank accounts that live in US Treasury bills."


def modules_of_commands(*, is_production: bool) -> dict[str, str]:
    """Return the module of each command; production does not have those of a sandbox."""
    topics = {topic: commands for topic, commands in TOPICS.items() if not (is_production and topic == _SANDBOX)}
    return {name: module for commands in topics.values() for name, module in commands.items()}


def list_app(*, is_production: bool) -> typer.Typer:
    """Return the command line with every command's name and first sentence, none of which can be run."""
    app = typer.Typer(
        name="billfold",
        no_args_is_help=True,
        pretty_exceptions_enable=False,
        rich_markup_mode="rich",
        help=HELP,
        epilog="Example:  billfold sandbox",
        context_settings={"help_option_names": ["-h", "--help"]},
    )
    app.callback()(options)
    topic_of = {name: topic for topic, commands in TOPICS.items() for name in commands}
    modules = modules_of_commands(is_production=is_production)
    abouts = {name: about for module in dict.fromkeys(modules.values()) for name, about in _abouts(module)}
    for name in modules:
        if name in abouts:  # others are not for people
            app.command(name, help=abouts[name], rich_help_panel=topic_of[name])(_run)
    return app


def _print_version(wanted: bool) -> None:  # noqa: FBT001 - called by the command line
    if wanted:
        typer.echo(f"billfold {billfold.__version__}")
        raise typer.Exit


def options(
    *,
    version: Annotated[
        bool, typer.Option("--version", callback=_print_version, is_eager=True, help="Print the version and exit.")
    ] = False,
) -> None:
    """Take the options before a command."""


def _run() -> None:
    raise NotImplementedError


def _abouts(module: str) -> Iterator[tuple[str, str]]:
    """Yield the name and the first paragraph of the help of each command at the top that a module has, by its source."""
    path = Path(billfold.__file__).parent.joinpath(*module.split(".")[1:])
    path = path / "__init__.py" if path.is_dir() else path.with_suffix(".py")
    tops = set[str]()
    for node in ast.parse(path.read_text(encoding="utf-8")).body:
        match node:
            case ast.Assign(targets=[ast.Name(variable)], value=ast.Call(func=ast.Name("CommandGroup"), args=[])):
                tops.add(variable)
            case ast.Assign(value=ast.Call(func=ast.Name("CommandGroup"), args=[ast.Constant(name), about, *_])):
                texts = [each.value for each in ast.walk(about) if isinstance(each, ast.Constant)]
                yield str(name), "".join(map(str, texts)).strip()
            case ast.FunctionDef(decorator_list=[ast.Call(ast.Attribute(ast.Name(of)), [ast.Constant(usage), *_])]) | (
                ast.AsyncFunctionDef(decorator_list=[ast.Call(ast.Attribute(ast.Name(of)), [ast.Constant(usage), *_])])
            ) if of in tops:
                yield str(usage).split()[0], (ast.get_docstring(node) or "").partition("\n\n")[0]
