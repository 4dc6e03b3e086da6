"""The commands by topic, as their help and the shell's completion list them: read from the sources, without imports."""

import ast
from collections.abc import Iterator, Mapping
from pathlib import Path

from rich.console import Console
from rich.table import Table
from rich.text import Text

import billfold

TOPICS: Mapping[str, Mapping[str, str]] = {
    "Sandbox": {
        "sandbox": "billfold.wiring.cli.sandbox",
        "clock": "billfold.sandbox.cli.control",
        "listen": "billfold.sandbox.cli.listen",
        "trigger": "billfold.sandbox.cli.listen",
        "certify": "billfold.sandbox.cli.certify",
    },
    "Run the bank": {
        "init": "billfold.wiring.cli.init",
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
        "events": "billfold.events.cli",
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
        "routing": "billfold.payments.routing.cli",
        "clearing": "billfold.payments.clearing.cli",
        "reconcile": "billfold.reconciliation.cli",
        "cards": "billfold.payments.cards.cli",
        "card-settlement": "billfold.payments.cards.settlement.cli",
        "cash-back": "billfold.payments.cards.cash_back.cli",
        "disputes": "billfold.payments.cards.authorizations.disputes.cli",
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
        "mcp": "billfold.wiring.cli.mcp",
        "bench": "billfold.wiring.cli.checkout",
        "simulate": "billfold.wiring.cli.checkout",
    },
}
"""The module of each command: a process imports only that of its own command."""
_SANDBOX = "Sandbox"
_NAME_WIDTH = 18
_END = """
[bold]Options:[/] --version, --help, and for your shell --install-completion. `billfold COMMAND --help` has more.

Example:  billfold sandbox
"""
HELP = "A core for bank accounts that live in US Treasury bills."


def modules_of_commands(*, is_production: bool) -> dict[str, str]:
    """Return the module of each command; production does not have those of a sandbox."""
    topics = {topic: commands for topic, commands in TOPICS.items() if not (is_production and topic == _SANDBOX)}
    return {name: module for commands in topics.values() for name, module in commands.items()}


def print_help(*, is_production: bool) -> None:
    """Print the commands by topic."""
    console, abouts = Console(highlight=False), abouts_of_commands(is_production=is_production)
    console.print("\n[bold]Usage:[/] billfold COMMAND\n\n" + HELP)
    for topic, commands in TOPICS.items():
        rows = Table(box=None, show_header=False, padding=(0, 2, 0, 0))
        rows.add_column(no_wrap=True, min_width=_NAME_WIDTH, style="cyan")
        for name in commands:
            if name in abouts:
                rows.add_row(f"  {name}", Text(abouts[name]))
        if rows.rows:
            console.print(f"\n[bold]{topic}[/]", rows)
    console.print(_END)


def abouts_of_commands(*, is_production: bool) -> dict[str, str]:
    """Return the help of each command at the top; those that are not for people have none."""
    modules = modules_of_commands(is_production=is_production)
    found = {name: about for each in dict.fromkeys(modules.values()) for name, about in _abouts(each)}
    return {name: found[name] for name in modules if name in found}


def _abouts(module: str) -> Iterator[tuple[str, str]]:
    """Yield name and first paragraph of the help of commands of a module, by its source."""
    path = Path(billfold.__file__).parent.joinpath(*module.split(".")[1:])
    path = path / "__init__.py" if path.is_dir() else path.with_suffix(".py")
    try:
        source = path.read_text(encoding="utf-8")
    except OSError:  # installed without sources: the commands work, their help is in each
        return
    for node in ast.parse(source).body:
        match node:
            case ast.FunctionDef(decorator_list=decorators) | ast.AsyncFunctionDef(decorator_list=decorators):
                for each in decorators:
                    match each:
                        case ast.Call(args=[ast.Constant(usage), *_]) if _module_of(str(usage).split()[0]) == module:
                            yield str(usage).split()[0], (ast.get_docstring(node) or "").partition("\n\n")[0]
                        case _:
                            pass
            case ast.Assign(value=ast.Call(func=ast.Name("CommandGroup"), args=[ast.Constant(name), about, *_])):
                texts = [each.value for each in ast.walk(about) if isinstance(each, ast.Constant)]
                yield str(name), "".join(map(str, texts)).strip()
            case _:
                pass


def _module_of(name: str) -> str | None:
    return modules_of_commands(is_production=False).get(name)
