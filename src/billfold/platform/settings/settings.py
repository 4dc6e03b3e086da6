"""Everything an operator can set, read once from BILLFOLD_* variables and frozen.

A secret can be in a file instead: BILLFOLD_SEED_FILE names the file with the seed.
All errors are collected before any is reported, misspelled names included.
"""

from collections.abc import Collection, Mapping
from dataclasses import dataclass, fields
from datetime import UTC, datetime, time, timedelta
from difflib import get_close_matches
from functools import cache
from pathlib import Path
from typing import Any

from billfold.platform.settings import kinds, validation
from billfold.platform.settings.kinds import Network, Setting, setting
from billfold.platform.settings.reconciliation import ReconciliationSettings
from billfold.platform.settings.usage_limits import USAGE_LIMITS
from billfold.platform.settings.validation import FILE_SUFFIX, PREFIX, format_setting, variable_name

_HTTPS_PORT = 443
_HOLD_DAYS = {"sandbox": 0, "production": 2}


@dataclass(frozen=True, slots=True, kw_only=True)
class Settings(ReconciliationSettings):
    """The settings of one bank. Defaults run a sandbox on this machine."""

    environment: str = setting(
        kinds.choice("sandbox", "production"), "A sandbox has a clock that can be set and simulated rails.", "sandbox"
    )
    database_url: str | None = setting(
        kinds.DATABASE, "The database. If unset, an embedded one is run.", None, secret=True
    )
    database_owner_url: str | None = setting(
        kinds.DATABASE, "The address for its owner, who migrates it. If unset, the address above.", None, secret=True
    )
    database_pooler_url: str | None = setting(
        kinds.DATABASE, "The same through a transaction pooler, only for API processes.", None, secret=True
    )
    state_dir: Path = setting(kinds.PATH, "Where the embedded database, keys and files are kept.", Path(".billfold"))
    host: str = setting(kinds.HOST, "The address to listen on.", "127.0.0.1")
    port: int = setting(kinds.integer(1, 65_535), "The port of https.", 8443)
    http_port: int = setting(kinds.integer(1, 65_535), "The port on which plain http is rejected.", 8080)
    workers: int = setting(kinds.integer(1, 64), "Number of API processes.", 1)
    seed: bytes | None = setting(
        kinds.SEED, "The seed of all ids. If unset, a sandbox creates and keeps one.", None, secret=True
    )
    database_replica_url: str | None = setting(
        kinds.DATABASE, "Its streaming replicas, from which workers read reports and statements.", None, secret=True
    )
    encryption_key: bytes | None = setting(
        kinds.SECRET_KEY,
        "The key that seals secrets in the database. If unset, a sandbox creates one.",
        None,
        secret=True,
    )
    retired_encryption_keys: tuple[bytes, ...] = setting(
        kinds.list_of(kinds.SECRET_KEY), "Former keys, under which values may still be sealed.", (), secret=True
    )
    master_keys: tuple[str, ...] = setting(
        kinds.list_of(kinds.MASTER_KEY),
        "The master key that wraps customers' data keys: `file` is the encryption key. Further ones are former keys.",
        ("file",),
    )
    master_key_url: str | None = setting(
        kinds.HTTPS_ORIGIN, "The address of Vault, or of KMS if it is not that of the AWS region.", None
    )
    master_key_token: str | None = setting(kinds.text("a token"), "The token for Vault.", None, secret=True)
    retention_years: int = setting(
        kinds.integer(1, 100, "years"), "Retention of a closed customer's personal data, until its key is destroyed.", 6
    )
    domain: str = setting(kinds.DOMAIN, "The name of the host; partners and auth are below it.", "localhost")
    auth_url: str | None = setting(
        kinds.HTTPS_ORIGIN, "The public address of the authorization server, its issuer.", None
    )
    customer_url: str | None = setting(kinds.HTTPS_ORIGIN, "The public address of the Customer API.", None)
    rate_limit_per_minute: int = setting(
        kinds.integer(1, 1_000_000),
        "Requests each token of a new partner may send; `billfold partner set-rate-limit` changes it.",
        300,
    )
    money_rate_limit_per_minute: int = setting(
        kinds.integer(1, 1_000_000), "The part of them that may move money; likewise.", 60
    )
    usage_limits: tuple[tuple[str, int], ...] = setting(
        kinds.list_of(kinds.USAGE_LIMIT),
        "Daily limits of actions that cost the bank or others, where they differ from the page of limits.",
        (),
    )
    aum_fee_bps: int = setting(kinds.integer(0, 1000, "basis points"), "The yearly fee on the value of a pocket.", 25)
    same_day_haircut_bps: int = setting(
        kinds.integer(0, 1000, "basis points"), "The cost of selling for the same day.", 0
    )
    market_data_max_age_days: int = setting(
        kinds.integer(1, 30, "days"),
        "Number of bond market days for which rates remain tradable in production; then trading stops.",
        1,
    )
    ach_credit_hold_days: int = setting(kinds.integer(0, 90, "days"), "Hold on ACH credits: 2 in production.", 0)
    wire_fee_cents: int = setting(kinds.integer(0, 100_00, "cents"), "The fee for sending a wire.", 0)
    usdc_minimum_cents: int = setting(
        kinds.integer(1, 1_000_000_00, "cents"), "The minimum USDC payment, worth the cost of a transaction.", 1_00
    )
    wires_open: time = setting(
        kinds.TIME_OF_DAY, "The time from which wires leave on a Fedwire day.", validation.WIRE_HOURS["wires_open"]
    )
    wire_cutoff: time = setting(
        kinds.TIME_OF_DAY,
        "The cut-off of domestic wires; later ones leave on the next such day.",
        validation.WIRE_HOURS["wire_cutoff"],
    )
    international_wire_cutoff: time = setting(
        kinds.TIME_OF_DAY, "The cut-off of international wires.", validation.WIRE_HOURS["international_wire_cutoff"]
    )
    ach_review_above_cents: int = setting(
        kinds.integer(0, 999_999_999_999, "cents"),
        "The ACH amount per day above which originations of a customer are reviewed by an operator.",
        1_000_000_00,
    )
    ach_cutoff: time = setting(kinds.TIME_OF_DAY, "The cut-off of ACH originations, as of a banking day.", time(12))
    correspondent_routing_number: str = setting(
        kinds.ROUTING_NUMBER, "The correspondent bank of international wires.", "026009593"
    )
    clock_start: datetime = setting(
        kinds.INSTANT, "The initial time of a new sandbox's clock.", datetime(2025, 6, 2, 13, tzinfo=UTC)
    )
    execute_transfers: bool = setting(
        kinds.BOOLEAN, "True if a sandbox carries out approved transfer requests.", default=True
    )
    bank_routing_number: str = setting(kinds.ROUTING_NUMBER, "The routing number of the bank.", "061199992")
    bank_name: str = setting(kinds.text("a name", max_length=35), "The name of the bank.", "Billfold Sandbox Bank")
    bank_bic: str = setting(kinds.BIC, "The bank's BIC.", "BLFDUS33")
    bank_address: str = setting(
        kinds.text("an address", max_length=140), "The bank's address.", "1 Ledger Way, Wilmington, DE 19801, US"
    )
    bank_phone: str = setting(
        kinds.text("a phone number", max_length=40), "The bank's phone number for error reports.", "+1 302 555 0142"
    )
    tax_control_code: str | None = setting(
        kinds.text("a code", max_length=5), "The bank's Transmitter Control Code at the IRS, for files of forms.", None
    )
    tax_number: str | None = setting(kinds.text("nine digits", max_length=10), "The bank's employer number.", None)
    tax_contact: str | None = setting(
        kinds.text("a name", max_length=40), "The contact of the IRS for a file of forms.", None
    )
    tax_email: str | None = setting(kinds.text("an address", max_length=50), "The e-mail of that contact.", None)
    linking_provider: str | None = setting(
        kinds.LINKING_PROVIDER, "The provider that links accounts. If unset, a sandbox simulates it.", None
    )
    linking_url: str = setting(
        kinds.LINKING_URL, "The address of Plaid, or of a compatible service.", "https://production.plaid.com"
    )
    linking_client_id: str | None = setting(
        kinds.text("an id", max_length=128), "The bank's client id there.", None, secret=True
    )
    linking_secret: str | None = setting(
        kinds.text("a key", max_length=256), "The secret of that client id.", None, secret=True
    )
    identity_check: str | None = setting(
        kinds.ADAPTER, "The adapter that checks the identity of applicants. If unset, a sandbox simulates one.", None
    )
    card_processor: str | None = setting(
        kinds.ADAPTER,
        "The adapter of the card processor. If unset, a sandbox simulates one, and production has no cards.",
        None,
    )
    card_processor_key: bytes | None = setting(
        kinds.SECRET_KEY,
        "The key that signs messages of the card processor. If unset, a sandbox creates one, and production takes"
        " none.",
        None,
        secret=True,
    )
    card_blocked_categories: tuple[str, ...] = setting(
        kinds.list_of(kinds.MERCHANT_CATEGORY),
        "The merchant categories (ISO 18245) that no card can pay: by default gambling.",
        ("7800", "7801", "7802", "7995"),
    )
    dispute_days: int = setting(kinds.integer(1, 730, "days"), "How long a card payment can be disputed.", 120)
    dispute_credit_max_cents: int = setting(
        kinds.integer(0, 1_000_000_00, "cents"), "What a customer is credited without operators.", 2_500_00
    )
    reversal_days: int = setting(kinds.integer(1, 730, "days"), "How long an on-us transfer can be reversed.", 60)
    reversal_request_days: int = setting(kinds.integer(1, 90, "days"), "Banking days to answer such a request.", 10)
    crypto_signer: str | None = setting(
        kinds.ADAPTER,
        "The adapter that signs for the bank's wallet. If unset, a sandbox simulates one, production sends no USDC.",
        None,
    )
    sandbox_kyb_delay: int = setting(
        kinds.integer(0, 30 * 86_400, "seconds"), "Duration of the simulated identity check, on the bank's clock.", 0
    )
    chains: Path | None = setting(
        kinds.PATH,
        "The file of chains that stablecoins move on (TOML). If unset, a sandbox has a local chain, production none.",
        None,
    )
    sanctions_threshold: int = setting(
        kinds.integer(70, 100, "of 100"), "The similarity to a name on the sanctions list that is a hit.", 85
    )
    operator: str | None = setting(
        kinds.text("a name", max_length=64), "The operator who runs commands. If unset, the system account.", None
    )
    mail_url: str | None = setting(
        kinds.MAIL_SERVER, "The mail server. If unset, e-mails are written to files.", None, secret=True
    )
    mail_from: str = setting(
        kinds.MAIL_ADDRESS, "The sender of e-mails; without a name it has the bank's.", "no-reply@localhost"
    )
    audit_seals: Path | None = setting(
        kinds.PATH, "The file outside the bank to which seals of the audit log are appended.", None
    )
    files_dir: Path | None = setting(kinds.PATH, "The folder for uploaded files, outside the bank.", None)
    files_s3_bucket: str | None = setting(
        kinds.BUCKET, "The S3 bucket for uploaded files. If unset, they are in the folder.", None
    )
    files_s3_endpoint: str | None = setting(
        kinds.S3_ENDPOINT, "The server of that bucket; the bucket is the path's first part.", None
    )
    files_s3_region: str = setting(kinds.text("a region", max_length=64), "The region of that bucket.", "us-east-1")
    files_s3_prefix: str = setting(kinds.OBJECT_PREFIX, "The prefix of all file names in that bucket.", "")
    files_s3_credentials: str = setting(
        kinds.choice("keys", "aws"),
        "Whether to use the two keys below, or temporary ones found by the AWS SDK, such as those of a machine's role.",
        "keys",
    )
    files_s3_access_key: str | None = setting(
        kinds.text("a key id", max_length=128), "The access key id for that bucket.", None, secret=True
    )
    files_s3_secret_key: str | None = setting(
        kinds.text("a key", max_length=256), "The secret of that key id.", None, secret=True
    )
    files_s3_trusted_ca: Path | None = setting(
        kinds.PATH, "A certificate authority that is trusted there in addition to the system's (PEM).", None
    )
    rails_dir: Path | None = setting(kinds.PATH, "The folder of files to and from the rails, outside the bank.", None)
    log_level: str = setting(
        kinds.choice("DEBUG", "INFO", "WARNING", "ERROR", normalize=str.upper),
        "The lowest level that is logged.",
        "INFO",
    )
    log_format: str | None = setting(
        kinds.choice("json", "text"),
        "The format of all output of `serve` and `worker`. If unset, the log is JSON, other messages are text.",
        None,
    )
    management_host: str = setting(kinds.HOST, "The address of the management port.", "127.0.0.1")
    management_port: int | None = setting(
        kinds.integer(1, 65_535),
        "The port of /livez, /readyz and /metrics of each process. If unset, there is none.",
        None,
    )
    drain_seconds: int = setting(
        kinds.integer(0, 600, "seconds"), "Time for which `serve` reports that it is not ready before it stops.", 0
    )
    traces: str = setting(kinds.choice("none", "otlp"), "The target of spans; OTEL_ variables set the rest.", "none")
    access_log: bool = setting(kinds.BOOLEAN, "True to log each request.", default=False)
    connections_max: int = setting(
        kinds.integer(16, 100_000), "Maximum number of connections of each API process.", 2048
    )
    connections_per_address: int = setting(
        kinds.integer(1, 100_000),
        "Maximum number of them per IPv4 address, or per IPv6 /64. Trusted proxies are not limited.",
        256,
    )
    uploads_per_tenant: int = setting(
        kinds.integer(1, 100), "Files of one partner or customer that a process inspects at a time.", 2
    )
    engine_concurrency: int = setting(kinds.integer(1, 64), "Maximum number of concurrent batches of commands.", 2)
    batch_limit: int = setting(kinds.integer(1, 5000), "Maximum number of commands in a batch, doubled on Citus.", 300)
    tls_certificate: Path | None = setting(
        kinds.PATH, "The certificate of the server (PEM). A sandbox makes its own.", None
    )
    tls_key: Path | None = setting(kinds.PATH, "The key of that certificate (PEM, PKCS#8).", None)
    behind_proxy: bool = setting(kinds.BOOLEAN, "True if a proxy in front of the bank terminates https.", default=False)
    trusted_proxies: tuple[Network, ...] = setting(
        kinds.list_of(kinds.NETWORK), "The proxies whose forwarded headers are trusted.", ()
    )
    webhook_attempts_days: int = setting(
        kinds.integer(1, 3650, "days"), "Retention of a delivery's attempts after the last one.", 30
    )
    request_log_days: int = setting(kinds.integer(1, 365, "days"), "Retention of the request log.", 7)
    daily_proofs_days: int = setting(
        kinds.integer(30, 36_500, "days"),
        "Time for which proofs of a daily root can be created; the signed root is kept forever.",
        400,
    )
    webhook_allowed_networks: tuple[Network, ...] = setting(
        kinds.list_of(kinds.NETWORK),
        "Private networks that webhooks of a sandbox may be sent to, by http and on any port.",
        (),
    )
    webhook_trusted_ca: Path | None = setting(
        kinds.PATH, "A certificate authority that webhooks of a sandbox trust too (PEM).", None
    )

    @property
    def is_production(self) -> bool:
        """Tell whether this is a production bank."""
        return self.environment == "production"

    @property
    def limits(self) -> Mapping[str, int]:
        """Return every limit of `usage_limits` with its effective value."""
        return USAGE_LIMITS if not self.usage_limits else {**USAGE_LIMITS, **dict(self.usage_limits)}

    @property
    def traded_rates_max_age_days(self) -> int | None:
        """Return the maximum age of tradable rates; None in a sandbox, which simulates them."""
        return self.market_data_max_age_days if self.is_production else None

    @property
    def quotes_age_max(self) -> timedelta | None:
        """Return the maximum age of dealers' quotes; None for a bank whose prices follow daily rates alone."""
        return None if self.max_price_age is None else timedelta(seconds=self.max_price_age)

    @property
    def auth_origin(self) -> str:
        """Return the public address of the authorization server, without a trailing slash."""
        return self.auth_url or self._subdomain_origin("auth")

    @property
    def customer_origin(self) -> str:
        """Return the public address of the Customer API, without a trailing slash."""
        return self.customer_url or self._subdomain_origin("api")

    @property
    def cards_origin(self) -> str:
        """Return the public address that the card processor calls, without a trailing slash."""
        return self._subdomain_origin("cards")

    def _subdomain_origin(self, label: str) -> str:
        usual = self.behind_proxy or self.port == _HTTPS_PORT
        return f"https://{label}.{self.domain}" + ("" if usual else f":{self.port}")

    @classmethod
    def from_env(cls, environ: Mapping[str, str], *, ignored_variables: Collection[str] = ()) -> "Settings":
        """Return the settings of an environment; an empty variable counts as not set.

        `ignored_variables` names BILLFOLD_ variables of other programs. Raises SettingsError
        with every error: wrong values, unknown names, settings that production lacks or forbids.
        """
        known = _variables()
        provided = {
            name: raw.strip()
            for name, raw in environ.items()
            if name.startswith(PREFIX) and raw.strip() and name not in ignored_variables
        }
        mistakes = [_unknown_setting(name, known) for name in sorted(provided.keys() - known.keys())]
        values: dict[str, Any] = {}
        for name, declared in declared_settings().items():
            validation.read_setting(name, declared, provided, values=values, mistakes=mistakes)
        environment = values.get("environment", "sandbox")
        values.setdefault("ach_credit_hold_days", _HOLD_DAYS[environment])
        mistakes += validation.find_conflicts(values, declared_settings(), {mistake.name for mistake in mistakes})
        if mistakes:
            raise validation.SettingsError(mistakes)
        return cls(**values)


@cache
def declared_settings() -> Mapping[str, Setting]:
    """Return the declarations of all settings, in order."""
    return {each.name: each.metadata["setting"] for each in fields(Settings)}


def read_settings(raw: Mapping[str, str]) -> dict[str, Any]:
    """Return the values of settings as a person writes them, by name. Raises ValueError."""
    return {name: declared_settings()[name].kind.read_line(text) for name, text in raw.items()}


def _variables() -> dict[str, str]:
    declared = declared_settings()
    in_files = [name for name in declared if declared[name].secret]
    return {variable_name(name): name for name in declared} | {
        variable_name(name) + FILE_SUFFIX: name for name in in_files
    }


def _unknown_setting(name: str, known: Mapping[str, str]) -> validation.SettingMistake:
    # Without the common prefix, so that only similar names are suggested.
    suffixes = [each.removeprefix(PREFIX) for each in known]
    nearest = get_close_matches(name.removeprefix(PREFIX), suffixes, n=1)
    expected = f"perhaps {PREFIX}{nearest[0]}" if nearest else "nothing under that name"
    return validation.SettingMistake(name, validation.MASK, expected, unknown=True)


def reference() -> str:
    """Return the table of all settings as Markdown: variable, default, expected, meaning."""
    rows = ["| Variable | Default | Expected | Meaning |", "|---|---|---|---|"]
    for each in fields(Settings):
        declared = declared_settings()[each.name]
        names = f"`{variable_name(each.name)}`"
        if declared.secret:
            names += f" or `{variable_name(each.name)}{FILE_SUFFIX}`"
        rows.append(f"| {names} | {format_setting(each.default)} | {declared.kind.expected} | {declared.meaning} |")
    return "\n".join(rows) + "\n"
