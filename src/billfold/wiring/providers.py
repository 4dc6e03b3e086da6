"""Adapters chosen by the settings: folders, mail server, webhook client, providers."""

from __future__ import annotations

import asyncio
import pkgutil
import sys
from contextlib import AbstractAsyncContextManager, aclosing, nullcontext
from dataclasses import replace
from datetime import timedelta
from email.headerregistry import Address
from email.utils import parseaddr
from pathlib import Path
from typing import TYPE_CHECKING, Any

from billfold.accounts.counterparties.ports import LinkingProvider, OwnWallets
from billfold.accounts.portals.commands import WalletSource
from billfold.approvals.store.approved_requests import ApprovedRequests
from billfold.audit.seals import FileArchive
from billfold.cli.context import CliError
from billfold.data_keys.keys import DataKeys
from billfold.data_keys.kms import AwsKmsMasterKey, FileMasterKey, MasterKey, MasterKeys
from billfold.documents.inspection import SubprocessFileInspector
from billfold.documents.local_store import LocalFileStore
from billfold.documents.ports import FileInspector, FileStore, FileStoreUnusable
from billfold.dual_control.decisions import Movements
from billfold.events.email.transports import EmailTransport, FileEmailTransport, SmtpEmailTransport
from billfold.events.webhooks.http_client import GuardedWebhookClient
from billfold.ledger.bank import Ports
from billfold.onboarding.applications.ports import IdentityCheck
from billfold.payments.cards.processor import CardProcessor
from billfold.payments.crypto.chains import LOCAL_CHAINS, ChainMistakes, Chains, read_chains
from billfold.payments.crypto.deposits.store import DepositAddresses
from billfold.payments.crypto.withdrawals.signing import Signer
from billfold.payments.crypto.withdrawals.wallet import BankWallets
from billfold.payments.custody.worker import Custodian
from billfold.payments.files.exchange import ExchangeFolders, RailExchanges
from billfold.platform.crypto import Vault
from billfold.platform.database.connection import Pool
from billfold.platform.settings.kinds import FILES, NO_ADAPTER, PLAID
from billfold.platform.settings.settings import Settings, read_settings
from billfold.platform.settings.validation import variable_name
from billfold.screening.screening import CurrentList
from billfold.trading.ports import DealerAdapter, DealerAdapters
from billfold.wiring.movements import movements

if TYPE_CHECKING:
    from billfold.accounts.counterparties.plaid import PlaidLinking
    from billfold.sandbox.forks.copies import BankCopies
    from billfold.sandbox.simulated_providers import Simulation

SEALS = "audit-seals.txt"


def archive_of(settings: Settings) -> FileArchive:
    """Return the file for copies of audit seals: the configured one, or one in the state directory."""
    return FileArchive(settings.audit_seals or settings.state_dir / SEALS)


def email_transport_of(settings: Settings) -> EmailTransport:
    """Return the configured mail server; without one e-mail is written to files."""
    sender = _sender_of(settings)
    if settings.mail_url is not None:
        return SmtpEmailTransport(settings.mail_url, sender)
    return FileEmailTransport(settings.state_dir / "mail", sender)


def _sender_of(settings: Settings) -> Address:
    """Return the sender of e-mails: the bank, unless the configured address has another name."""
    name, address = parseaddr(settings.mail_from)
    return Address(name or settings.bank_name, addr_spec=address)


def webhook_client_of(settings: Settings) -> GuardedWebhookClient:
    """Return the HTTP client of webhooks, with the private networks that the settings allow; a sandbox's has faults."""
    if not settings.is_production:
        from billfold.sandbox.control.fault_injection import FaultyWebhookClient  # noqa: PLC0415 - as below

        return FaultyWebhookClient(settings)
    return GuardedWebhookClient(allowed=settings.webhook_allowed_networks, trusted_ca=settings.webhook_trusted_ca)


def rail_files_folder(settings: Settings) -> Path:
    """Return the folder that has one folder per rail."""
    return settings.rails_dir or settings.state_dir / "rails"


def fedwire_folders(settings: Settings) -> ExchangeFolders:
    """Return the folders of Fedwire."""
    return ExchangeFolders(rail_files_folder(settings) / "wire")


def rail_exchanges_of(settings: Settings) -> RailExchanges:
    """Return the folders through which files of the rails are exchanged."""
    folder = rail_files_folder(settings)
    return RailExchanges(
        ach=ExchangeFolders(folder / "ach"),
        wire=fedwire_folders(settings),
        card=ExchangeFolders(folder / "card"),
        custody=custodian_of(settings) or ExchangeFolders(folder / "custody"),
        statement=ExchangeFolders(folder / "statement"),
    )


def file_store_of(settings: Settings) -> FileStore:
    """Return the store of uploaded documents: the configured bucket or folder, or one in the state directory."""
    if settings.files_s3_bucket is None:
        return LocalFileStore(settings.files_dir or settings.state_dir / "files")
    from billfold.documents import s3_store  # noqa: PLC0415 - loads a client that most banks do not need

    try:
        credentials = (
            s3_store.aws_credentials()
            if settings.files_s3_credentials == "aws"
            else s3_store.fixed_credentials(settings.files_s3_access_key or "", settings.files_s3_secret_key or "")
        )
    except Exception as error:  # the SDK is missing, or finds none
        raise CliError(
            f"The AWS SDK has no credentials for the file store: {error}",
            f"Install billfold[aws] and run on a machine with a role, or set {variable_name('files_s3_credentials')}.",
        ) from error
    return s3_store.S3FileStore(
        settings.files_s3_endpoint or "",
        settings.files_s3_bucket,
        region=settings.files_s3_region,
        prefix=settings.files_s3_prefix,
        credentials=credentials,
        trusted_ca=settings.files_s3_trusted_ca,
    )


async def check_file_store(settings: Settings) -> str:
    """Check that uploaded documents can be stored, and return where. Raises CliError."""
    try:
        return await file_store_of(settings).check()
    except FileStoreUnusable as error:
        raise CliError(str(error), f"Check {variable_name(error.setting)}.") from error


def master_keys_of(settings: Settings, vault: Vault) -> MasterKeys:
    """Return the key wrapper: the first master key of the settings, with the former ones. Raises CliError."""
    return MasterKeys([_master_key_of(settings, vault, name) for name in settings.master_keys])


def _master_key_of(settings: Settings, vault: Vault, name: str) -> MasterKey:
    kind, _, key = name.partition(":")
    if kind == "vault-transit":
        if settings.master_key_url is None or settings.master_key_token is None:
            missing = f"{variable_name('master_key_url')} and {variable_name('master_key_token')}"
            raise CliError(f"The master key {name} needs {missing}.", "Set both.")
        from billfold.data_keys.vault_transit import VaultTransitMasterKey  # noqa: PLC0415 - loads an HTTP client

        return VaultTransitMasterKey(key, url=settings.master_key_url, token=settings.master_key_token)
    if kind == "aws-kms":
        try:
            return AwsKmsMasterKey(key, endpoint_url=settings.master_key_url)
        except Exception as error:  # the SDK is missing, or finds no region
            raise CliError(
                f"The master key {name} cannot be used: {error}", "Install billfold[aws]; set AWS_REGION."
            ) from error
    return FileMasterKey(vault)


def simulation_of(settings: Settings, seed: bytes) -> Simulation | None:
    """Return the simulated counterparts of a sandbox; production has none and cannot import them."""
    if settings.is_production:
        return None
    from billfold.sandbox.simulated_providers import Simulation  # noqa: PLC0415 - production does not import the sandbox

    return Simulation(seed, settings.state_dir, timedelta(seconds=settings.sandbox_kyb_delay))


def bank_lease_of(settings: Settings) -> AbstractAsyncContextManager[None]:
    """Return the lock of a process that has the bank open: in a sandbox others may want it closed."""
    if settings.is_production:
        return nullcontext()
    from billfold.sandbox.forks.lease import bank_lease  # noqa: PLC0415 - production does not import the sandbox

    return bank_lease(settings.state_dir)


def current_settings_of(settings: Settings) -> Settings:
    """Return the settings, in a sandbox with those that a scenario has changed."""
    if settings.is_production:
        return settings
    from billfold.sandbox.running_sandbox import read_sandbox_file  # noqa: PLC0415 - as above

    box = read_sandbox_file(settings.state_dir)
    return replace(settings, **read_settings(box.changed_settings)) if box else settings


def until_paused(settings: Settings, stop: asyncio.Event) -> AbstractAsyncContextManager[asyncio.Event]:
    """Return an event that is set when `stop` is, or in a sandbox when the bank must be closed."""
    if settings.is_production:
        return nullcontext(stop)
    from billfold.sandbox.forks import lease  # noqa: PLC0415 - as above

    return lease.until_paused(settings.state_dir, stop)


def copies_of(settings: Settings, dsn: str) -> BankCopies:
    """Return the forks of a sandbox, with every file of its bank."""
    from billfold.sandbox.forks import copies  # noqa: PLC0415 - production does not import the sandbox

    state_dir = settings.state_dir
    of_bank = copies.BankFiles(
        folders={
            "rails": rail_files_folder(settings),
            "files": settings.files_dir or state_dir / "files",
            "mail": state_dir / "mail",
            "dealers": state_dir / "dealers",
        },
        files={
            "audit-seals.txt": settings.audit_seals or state_dir / SEALS,
            "blocks.jsonl": state_dir / LOCAL_CHAINS.parent / "blocks.jsonl",
            "cards.sqlite": state_dir / "card_processor" / "cards.sqlite",
            "signed.sqlite": state_dir / "crypto_signer" / "signed.sqlite",
            "custodian.sqlite": state_dir / "custodian" / "custodian.sqlite",
            "sandbox.json": state_dir / "sandbox.json",
        },
    )
    bucket = "Documents in a bucket are not copied. Unset BILLFOLD_FILES_S3_BUCKET."
    obstacle = bucket if settings.files_s3_bucket else None
    return copies.BankCopies(state_dir, copies.Databases(dsn), of_bank, obstacle=obstacle)


def forbid_simulations() -> None:
    """Make every import of a simulated counterpart fail in this process: its bank is real."""
    sys.modules["billfold.sandbox"] = None  # type: ignore[assignment]  # what makes `import` raise


def custodian_of(settings: Settings) -> Custodian | None:
    """Return the configured carrier of messages; None if they are files of the rails. Raises CliError."""
    name = None if settings.custodian == FILES else settings.custodian
    found: Custodian | None = _adapter("custodian", name, Custodian)
    return found


def dealer_adapters_of(settings: Settings) -> DealerAdapters:
    """Return the adapters of dealers. Raises CliError."""
    named = {each.dealer: each.adapter for each in settings.dealer_sessions if each.adapter}
    return DealerAdapters({each: _adapter("dealer_sessions", name, DealerAdapter) for each, name in named.items()})


def linking_provider_of(settings: Settings, simulation: Simulation | None) -> LinkingProvider | None:
    """Return the configured linking provider, or the simulated one of a sandbox. Raises CliError."""
    if settings.linking_provider == PLAID:
        return _plaid(settings)
    found: LinkingProvider | None = _adapter("linking_provider", settings.linking_provider, LinkingProvider)
    return simulation.linking if simulation and settings.linking_provider is None else found


def _plaid(settings: Settings) -> PlaidLinking:
    from billfold.accounts.counterparties.plaid import PlaidLinking  # noqa: PLC0415 - loads an HTTP client

    return PlaidLinking(
        url=settings.linking_url,
        client_id=settings.linking_client_id or "",
        secret=settings.linking_secret or "",
    )


async def check_linking_provider(settings: Settings) -> str:
    """Check that accounts can be linked, and return the provider. Raises CliError."""
    if settings.linking_provider != PLAID:
        return settings.linking_provider or "simulated"
    async with aclosing(_plaid(settings)) as plaid:
        problem = await plaid.check()
    if problem:
        names = map(variable_name, ("linking_url", "linking_client_id", "linking_secret"))
        raise CliError(f"{settings.linking_url}: {problem}", f"Check {', '.join(names)}.")
    return f"{PLAID} at {settings.linking_url}"


def identity_check_of(settings: Settings, simulation: Simulation | None) -> IdentityCheck | None:
    """Return the configured identity check, or the simulated one of a sandbox. Raises CliError."""
    found: IdentityCheck | None = _adapter("identity_check", settings.identity_check, IdentityCheck)
    return simulation.identity if simulation and settings.identity_check is None else found


def card_processor_of(settings: Settings, simulation: Simulation | None) -> CardProcessor | None:
    """Return the configured card processor, or the simulated one of a sandbox. Raises CliError."""
    found: CardProcessor | None = _adapter("card_processor", settings.card_processor, CardProcessor)
    return simulation.cards if simulation and settings.card_processor is None else found


def chains_of(settings: Settings) -> Chains:
    """Return the chains of the configured file, or the local chain of a sandbox that has one. Raises CliError."""
    local = settings.state_dir / LOCAL_CHAINS
    path = settings.chains or (None if settings.is_production or not local.is_file() else local)
    if path is None:
        return Chains()
    try:
        return read_chains(path)
    except ChainMistakes as error:
        raise CliError(str(error), f"Correct the file of {variable_name('chains')}: docs/operate/crypto.md.") from None


def signer_of(settings: Settings, simulation: Simulation | None) -> Signer | None:
    """Return the configured signer of the bank's wallet, or the simulated one of a sandbox. Raises CliError."""
    found: Signer | None = _adapter("crypto_signer", settings.crypto_signer, Signer)
    return simulation.signer if simulation and settings.crypto_signer is None else found


def ports_of(settings: Settings, pool: Pool, data_keys: DataKeys, simulation: Simulation | None) -> Ports:
    """Return the providers of a bank. Raises CliError."""
    ports, chains = Ports(), chains_of(settings)
    ports[DataKeys] = data_keys
    ports[Movements] = movements()
    ports[RailExchanges] = rail_exchanges_of(settings)
    ports[FileStore] = file_store_of(settings)
    ports[FileInspector] = SubprocessFileInspector()
    ports[ApprovedRequests] = ApprovedRequests(pool)
    ports[CurrentList] = CurrentList()
    ports[LinkingProvider] = linking_provider_of(settings, simulation)
    ports[IdentityCheck] = identity_check_of(settings, simulation)
    ports[CardProcessor] = card_processor_of(settings, simulation)
    ports[DealerAdapters] = dealer_adapters_of(settings)
    ports[Signer] = signer_of(settings, simulation)
    ports[OwnWallets] = BankWallets(ports)
    ports[Chains], ports[WalletSource] = chains, DepositAddresses(pool, chains)
    return ports


def check_adapters(settings: Settings) -> str:
    """Read the chains, create every adapter of a production bank, and return their names. Raises CliError."""
    chains_of(settings)
    if not settings.is_production:
        return "simulated if not set"
    custodian_of(settings)
    dealer_adapters_of(settings)
    linking_provider_of(settings, None)
    identity_check_of(settings, None)
    card_processor_of(settings, None)
    signer_of(settings, None)
    named = (
        settings.custodian,
        settings.linking_provider,
        settings.identity_check,
        settings.card_processor or NO_ADAPTER,
        settings.crypto_signer or NO_ADAPTER,
    )
    return "custodian {}, linking provider {}, identity check {}, card processor {}, signer {}".format(*named)


def _adapter(field: str, name: str | None, port: type[object]) -> Any:  # noqa: ANN401 - what a package offers
    """Return the named adapter; None if there is none."""
    if name in {None, NO_ADAPTER}:
        return None
    made: Any = None
    try:
        made = pkgutil.resolve_name(str(name))()
        problem: Exception | None = None if isinstance(made, port) else TypeError(f"{made!r} is no {port.__name__}")
    except Exception as error:  # noqa: BLE001 - whatever somebody else's code raises
        problem = error
    if problem is None:
        return made
    raise CliError(
        f"The adapter {name} of {variable_name(field)} cannot be made: {problem!r}.",
        "Install its package together with Billfold and see its documentation, or set another adapter, or none.",
    ) from problem
