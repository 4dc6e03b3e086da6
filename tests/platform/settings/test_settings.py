import base64
from datetime import UTC, datetime, time
from ipaddress import ip_network
from pathlib import Path

import pytest

from billfold.platform.settings import settings
from billfold.platform.settings.settings import Settings, reference
from billfold.platform.settings.validation import SettingsError, variable_name

_KEY = base64.b64decode("Z2wxkqQm0bNn1yR3v8uYxGJH4s9eT6cFzLpWdAoKiVE=")
_KEY_TEXT = base64.b64encode(_KEY).decode()
_PRODUCTION = {
    "BILLFOLD_ENVIRONMENT": "production",
    "BILLFOLD_ENCRYPTION_KEY": _KEY_TEXT,
    "BILLFOLD_SEED": "a seed that nobody guesses",
    "BILLFOLD_BANK_NAME": "First Bank of Bills",
    "BILLFOLD_BANK_ROUTING_NUMBER": "021000021",
    "BILLFOLD_MAIL_URL": "smtps://mail.example.com",
    "BILLFOLD_MAIL_FROM": "no-reply@bank.example",
    "BILLFOLD_BANK_BIC": "FBOBUS33",
    "BILLFOLD_BANK_PHONE": "+1 212 555 0100",
    "BILLFOLD_BANK_ADDRESS": "1 Bill Street, New York, NY 10004, US",
    "BILLFOLD_DATABASE_URL": "postgresql://bank@db/bank",
    "BILLFOLD_DOMAIN": "bank.example",
    "BILLFOLD_CUSTODIAN": "custodian_adapter:Custodian",
    "BILLFOLD_CUSTODIAN_ACCOUNT": "SAFEKEEPING-1",
    "BILLFOLD_LINKING_PROVIDER": "none",
    "BILLFOLD_IDENTITY_CHECK": "none",
    "BILLFOLD_BEHIND_PROXY": "true",
}


def _mistakes(environ: dict[str, str]) -> dict[str, str]:
    with pytest.raises(SettingsError) as refused:
        Settings.from_env(environ)
    return {mistake.name: mistake.sentence for mistake in refused.value.mistakes}


def test_a_sandbox_starts_with_default_settings():
    found = Settings.from_env({"PATH": "/bin", "BILLFOLD_SEED": ""})

    assert found == Settings()
    assert not found.is_production
    assert found.clock_start == datetime(2025, 6, 2, 13, tzinfo=UTC)
    assert found.ach_credit_hold_days == 0


_READ = {
    "port": ("9443", 9443),
    "state_dir": ("/var/lib/billfold", Path("/var/lib/billfold")),
    "seed": ("demo", b"demo"),
    "encryption_key": (_KEY_TEXT, _KEY),
    "domain": ("Bank.Example.", "bank.example"),
    "clock_start": ("2025-06-02T09:00:00-04:00", datetime(2025, 6, 2, 13, tzinfo=UTC)),
    "log_level": ("debug", "DEBUG"),
    "execute_transfers": ("No", False),
    "behind_proxy": ("1", True),
    "trusted_proxies": (
        "10.0.0.0/8, 192.0.2.1,,fd00::/8 ",
        tuple(map(ip_network, ["10.0.0.0/8", "192.0.2.1/32", "fd00::/8"])),
    ),
    "wires_open": ("7:00", time(7)),
    "wire_cutoff": ("17:30", time(17, 30)),
    "database_url": ("postgresql://bank@db:5432,standby/bank", "postgresql://bank@db:5432,standby/bank"),
    "host": ("::1", "::1"),
}


def test_settings_of_every_type_are_parsed():
    found = Settings.from_env({f"BILLFOLD_{name.upper()}": text for name, (text, _) in _READ.items()})

    assert {name: getattr(found, name) for name in _READ} == {name: value for name, (_, value) in _READ.items()}


def test_all_errors_in_the_settings_are_reported_together():
    found = _mistakes(
        {
            "BILLFOLD_PROT": "8443",
            "BILLFOLD_PORT": "eighty",
            "BILLFOLD_WORKERS": "0",
            "BILLFOLD_CLOCK_START": "2025-06-02T09:00:00",
            "BILLFOLD_TRUSTED_PROXIES": "10.0.0.0/8,here",
            "BILLFOLD_BANK_ROUTING_NUMBER": "021000022",
            "BILLFOLD_DOMAIN": "-bank-",
            "BILLFOLD_BANK_BIC": "FBOBUS3",
            "BILLFOLD_LINKING_PROVIDER": "a module",
            "BILLFOLD_EXECUTE_TRANSFERS": "maybe",
            "BILLFOLD_ENVIRONMENT": "staging",
        }
    )

    assert len(found) == 11
    assert found["BILLFOLD_PORT"] == ("BILLFOLD_PORT is 'eighty'; expected a whole number from 1 to 65535")
    assert found["BILLFOLD_ENVIRONMENT"].endswith("expected one of sandbox, production")


@pytest.mark.parametrize(
    ("name", "suggested"),
    [
        ("BILLFOLD_PROT", "perhaps BILLFOLD_PORT"),
        ("BILLFOLD_SEEDFILE", "perhaps BILLFOLD_SEED_FILE"),
        ("BILLFOLD_AUM_FEES_BPS", "perhaps BILLFOLD_AUM_FEE_BPS"),
        ("BILLFOLD_XYZZY", "nothing under that name"),
    ],
)
def test_a_misspelled_setting_is_refused_with_a_suggestion(name, suggested):
    assert _mistakes({name: _KEY_TEXT}) == {name: f"{name} is not a setting; expected {suggested}"}


@pytest.mark.parametrize("start", ["2023-01-03T07:59:59-05:00", "0001-01-01T00:00:00+05:00", "2098-01-01T00:00:00Z"])
def test_a_clock_start_outside_the_market_data_is_refused(start):
    assert "from 2023-01-03T13:00:00+00:00 on" in _mistakes({"BILLFOLD_CLOCK_START": start})["BILLFOLD_CLOCK_START"]


def test_ignored_environment_variables_are_not_checked():
    Settings.from_env({"BILLFOLD_PROFILE": "me"}, ignored_variables={"BILLFOLD_PROFILE"})


_ADDRESSES = {
    "MAIL_FROM": [
        *("nobody", "@b.example", "a@", "a@-b.example", "Bank a@b", "Bank <ä@b.example>"),
        *("a@b.example, c@d.example", "Bank <a@b.example>x", "Bank, Inc. <a@b.example>"),
    ],
    "MAIL_URL": ["smtp://", "smtps://mail:99999", "smtp://mail:port", "smtps://[::1", "smtps://mail\nsmtps://mail"],
    "DATABASE_URL": ["postgres://u@h:port/d", "postgresql://u:p@h:5432,i:99999/d", "postgresql://h/d\0"],
    "HOST": ["not a host", "0.0.0.0:80", "https://bank.example", "*", "::1:::"],
    "AUTH_URL": ["http://a.example", "https://a.example/x", "https://u@a.example", "https://a b", "https://:443"],
    "SEED": ["\ufeffa seed that an editor marked", "a seed\nof two lines"],
}


@pytest.mark.parametrize(("name", "wrong"), [(name, each) for name, wrong in _ADDRESSES.items() for each in wrong])
def test_an_unusable_address_setting_is_refused(name, wrong):
    assert _mistakes({f"BILLFOLD_{name}": wrong}).keys() == {f"BILLFOLD_{name}"}


@pytest.mark.parametrize(
    "key",
    [
        "short",
        base64.b64encode(_KEY[:31]).decode(),
        base64.b64encode(_KEY + b"x").decode(),
        base64.b64encode(bytes(32)).decode(),
        base64.b64encode(bytes(range(32))).decode(),
        base64.b64encode(_KEY[:16] * 2).decode(),
        base64.b64encode(b"please-change-me-please-now-1234").decode(),
        base64.b64encode(b"0123456789abcdefghijklmnopqrstuv").decode(),
        _KEY_TEXT.rstrip("=") + "!",
    ],
)
def test_a_short_or_default_encryption_key_is_refused_and_not_shown(key):
    sentence = _mistakes({"BILLFOLD_ENCRYPTION_KEY": key})["BILLFOLD_ENCRYPTION_KEY"]

    assert key not in sentence
    assert "[hidden]" in sentence
    assert "openssl rand" in sentence


_BUCKET = {
    "BILLFOLD_FILES_S3_BUCKET": "bank-files",
    "BILLFOLD_FILES_S3_ENDPOINT": "https://s3.bank.example/",
    "BILLFOLD_FILES_S3_ACCESS_KEY": "AKIA",
    "BILLFOLD_FILES_S3_SECRET_KEY": "tell nobody",
}


def test_s3_settings_are_required_together_and_use_https():
    here = {"BILLFOLD_FILES_S3_ENDPOINT": "http://localhost:9000", "BILLFOLD_FILES_S3_PREFIX": "/bank/files/"}
    found = Settings.from_env(_BUCKET | here)
    assert (found.files_s3_endpoint, found.files_s3_prefix) == ("http://localhost:9000", "bank/files")
    assert Settings.from_env(_BUCKET).files_s3_endpoint == "https://s3.bank.example"
    keys = {name: "" for name in _BUCKET if name.endswith("_KEY")}
    role = {"BILLFOLD_FILES_S3_CREDENTIALS": "aws"}
    assert Settings.from_env(_BUCKET | keys | role).files_s3_access_key is None
    assert set(_mistakes(_BUCKET | role)) == set(keys)
    assert "tell nobody" not in repr(found)
    for name in _BUCKET:
        wanted = "BILLFOLD_FILES_S3_BUCKET" if name.endswith("_BUCKET") else name
        assert set(_mistakes(_BUCKET | {name: ""})) == {wanted}
    for wrong in (
        {"BILLFOLD_FILES_S3_ENDPOINT": "http://s3.bank.example"},
        {"BILLFOLD_FILES_S3_ENDPOINT": "https://s3.bank.example/bank-files"},
        {"BILLFOLD_FILES_S3_BUCKET": "Bank_Files"},
        {"BILLFOLD_FILES_S3_PREFIX": "../other"},
        {"BILLFOLD_FILES_S3_TRUSTED_CA": "/nowhere.pem"},
        {"BILLFOLD_FILES_DIR": "/srv/files"},
    ):
        assert set(_mistakes(_BUCKET | wrong)) == set(wrong)


_PLAID = {
    "BILLFOLD_LINKING_PROVIDER": "plaid",
    "BILLFOLD_LINKING_CLIENT_ID": "5f0c",
    "BILLFOLD_LINKING_SECRET": "tell nobody",
}


def test_plaid_settings_are_required_together_and_use_https():
    found = Settings.from_env(_PLAID)
    assert found.linking_url == "https://production.plaid.com"
    assert "tell nobody" not in repr(found)
    for name in _PLAID:
        assert set(_mistakes(_PLAID | {name: ""})) == {name}
    for wrong in (
        {"BILLFOLD_LINKING_URL": "http://production.plaid.com"},
        {"BILLFOLD_LINKING_URL": "https://production.plaid.com/link"},
        {"BILLFOLD_LINKING_PROVIDER": "Plaid"},
        {"BILLFOLD_LINKING_PROVIDER": "none"},
    ):
        assert set(_mistakes(_PLAID | wrong)) == set(wrong)


def test_settings_never_show_secrets():
    secret = {"BILLFOLD_DATABASE_URL": "postgresql://u:canary@h/d", "BILLFOLD_SEED": "canary"}

    assert "canary" not in repr(Settings.from_env(secret))
    assert "canary" not in str(_mistakes({"BILLFOLD_DATABASE_URL": "mysql://u:canary@h/d"}))
    assert "canary" not in str(_mistakes({"BILLFOLD_SEED": "canary" * 20}))


def secret_file(folder, mode):
    file = folder / "key"
    file.write_text(_KEY_TEXT + "\n")
    file.chmod(mode)
    return file


def test_a_secret_can_be_read_from_a_file(tmp_path):
    file = secret_file(tmp_path, 0o600)

    assert Settings.from_env({"BILLFOLD_ENCRYPTION_KEY_FILE": str(file)}).encryption_key == _KEY


def test_a_missing_or_world_readable_secret_file_is_refused(tmp_path):
    file = secret_file(tmp_path, 0o640)

    assert "chmod 600" in str(_mistakes({"BILLFOLD_ENCRYPTION_KEY_FILE": str(file)}))
    unread = {key: text for key, text in _PRODUCTION.items() if key != "BILLFOLD_SEED"}
    found = _mistakes(unread | {"BILLFOLD_SEED_FILE": str(tmp_path / "none")})
    assert found.keys() == {"BILLFOLD_SEED_FILE"}
    assert "can be read" in str(found)
    assert "BILLFOLD_SEED_FILE is set" in str(_mistakes({"BILLFOLD_SEED": "a", "BILLFOLD_SEED_FILE": str(file)}))
    assert "not a setting" in str(_mistakes({"BILLFOLD_PORT_FILE": str(file)}))


def test_production_starts_with_all_required_settings():
    found = Settings.from_env(_PRODUCTION)

    assert found.is_production
    assert found.ach_credit_hold_days == 2
    assert Settings.from_env(_PRODUCTION | {"BILLFOLD_ACH_CREDIT_HOLD_DAYS": "5"}) != found


@pytest.mark.parametrize("name", sorted(_PRODUCTION.keys() - {"BILLFOLD_ENVIRONMENT"}))
def test_production_without_a_required_setting_is_refused(name):
    found = _mistakes({key: value for key, value in _PRODUCTION.items() if key != name})

    expected = {name}
    if name == "BILLFOLD_BEHIND_PROXY":
        expected = {"BILLFOLD_TLS_CERTIFICATE", "BILLFOLD_TLS_KEY"}
    assert found.keys() == expected
    assert all("is not set" in sentence for sentence in found.values())


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("BILLFOLD_SEED", "short"),
        ("BILLFOLD_CLOCK_START", "2025-06-02T09:00:00-04:00"),
        ("BILLFOLD_WEBHOOK_ALLOWED_NETWORKS", "127.0.0.0/8"),
        ("BILLFOLD_EXECUTE_TRANSFERS", "false"),
        ("BILLFOLD_CUSTODIAN", "billfold.sandbox.simulated_providers:SimulatedCustodian"),
    ],
)
def test_production_refuses_sandbox_settings(name, value):
    assert _mistakes(_PRODUCTION | {name: value}).keys() == {name}


def test_a_tls_certificate_without_its_key_is_refused(tmp_path):
    there = tmp_path / "server.pem"
    there.write_text("pem")

    alone = _mistakes({"BILLFOLD_TLS_CERTIFICATE": str(there)})
    absent = _mistakes({"BILLFOLD_TLS_CERTIFICATE": str(there), "BILLFOLD_TLS_KEY": str(tmp_path / "server.key")})
    both = Settings.from_env({"BILLFOLD_TLS_CERTIFICATE": str(there), "BILLFOLD_TLS_KEY": str(there)})

    assert alone.keys() == {"BILLFOLD_TLS_KEY"}
    assert "a file that is there" in absent["BILLFOLD_TLS_KEY"]
    assert both.tls_key == there


def test_settings_that_contradict_each_other_are_refused():
    assert "BILLFOLD_BEHIND_PROXY" in _mistakes({"BILLFOLD_TRUSTED_PROXIES": "10.0.0.1"})
    assert "BILLFOLD_HTTP_PORT" in _mistakes({"BILLFOLD_PORT": "8080"})


def test_wire_hours_must_end_after_they_begin_and_ach_hours_by_the_last_deadline():
    assert _mistakes({"BILLFOLD_ACH_CUTOFF": "16:46"}).keys() == {"BILLFOLD_ACH_CUTOFF"}
    assert Settings.from_env({"BILLFOLD_ACH_CUTOFF": "16:45"}).ach_cutoff == time(16, 45)
    assert _mistakes({"BILLFOLD_WIRES_OPEN": "15:30"}) == {
        "BILLFOLD_INTERNATIONAL_WIRE_CUTOFF": "BILLFOLD_INTERNATIONAL_WIRE_CUTOFF is '15:00'; "
        "expected later than BILLFOLD_WIRES_OPEN, 18:45 at the latest"
    }
    assert _mistakes({"BILLFOLD_WIRE_CUTOFF": "18:46"}).keys() == {"BILLFOLD_WIRE_CUTOFF"}
    for wrong in ("16", "25:00", "16:00:30", "4 pm", "16:60"):
        assert "like 16:00" in _mistakes({"BILLFOLD_WIRE_CUTOFF": wrong})["BILLFOLD_WIRE_CUTOFF"]


def test_public_addresses_are_subdomains_unless_set():
    assert Settings().auth_origin == "https://auth.localhost:8443"
    assert Settings(port=443, domain="bank.example").customer_origin == "https://api.bank.example"
    assert Settings(behind_proxy=True, domain="b.example").auth_origin == "https://auth.b.example"
    named = Settings.from_env({"BILLFOLD_AUTH_URL": "https://Login.Bank.example/"})
    assert named.auth_origin == "https://login.bank.example"


def test_every_setting_is_in_the_settings_reference():
    table = reference()

    for name in settings.declared_settings():
        assert f"| `{variable_name(name)}`" in table
    assert "`BILLFOLD_SEED` or `BILLFOLD_SEED_FILE`" in table
    assert "| 8443 |" in table
    assert "| `BILLFOLD_WIRE_CUTOFF` | 16:00 |" in table
