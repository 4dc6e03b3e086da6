"""The signer of a sandbox signs only what its policy allows."""

from datetime import date, timedelta

import msgspec
import pytest

from billfold.payments.crypto.withdrawals.signing import SignerRefused, read_signed, sign_checked
from billfold.payments.crypto.withdrawals.transactions import Fees, cancellation, payment
from billfold.sandbox.chain.crypto_signer import KEY_FILE, ChainPolicy, SigningVault, write_policy

TOKEN, PAYEE = "0xa4A2243Cb7033B0234e8644CE20D130DB2515e36", "0x70997970C51812dc3A010C7d01b50e0d17dc79C8"
TODAY, FEES = date(2026, 11, 23), Fees(100, 10)
PAYMENT = payment(1, 7, token=TOKEN, recipient=PAYEE, units=60, gas_limit=90_000, fees=FEES)
APPROVE = "0x095ea7b3" + PAYMENT.data[10:]
POLICY = ChainPolicy(chain_id=1, tokens=(TOKEN,), units_per_transaction=60, units_per_day=100, max_fee=1_000)


@pytest.fixture
def vault(tmp_path):
    write_policy(tmp_path, POLICY)
    return SigningVault(tmp_path)


@pytest.mark.parametrize(
    "change",
    [
        {"chain_id": 5},
        {"value": 1},
        {"to": PAYEE},
        {"to": PAYEE, "data": "0x"},
        {"data": "0x"},
        {"data": APPROVE},
        {"data": PAYMENT.data + "00"},
        {"data": PAYMENT.data[:-2] + "3d"},
        {"data": PAYMENT.data[:-2] + "00"},
        {"max_fee": 1_001},
        {"priority_fee": 101},
        {"gas_limit": 500_001},
    ],
    ids=str,
)
def test_a_payment_outside_the_signer_policy_is_refused(vault, change):
    with pytest.raises(SignerRefused):
        vault.sign(msgspec.structs.replace(PAYMENT, **change), today=TODAY)


def test_a_nonce_is_signed_for_one_payment_and_counted_once_toward_the_daily_limit(vault, tmp_path):
    signed, by = read_signed(vault.sign(PAYMENT, today=TODAY))
    assert (signed, by) == (PAYMENT, vault.address)
    dearer = msgspec.structs.replace(PAYMENT, max_fee=200)
    again = SigningVault(tmp_path)  # as another process of the same folder
    for each in (dearer, cancellation(1, 7, wallet=vault.address, fees=FEES)):
        assert read_signed(again.sign(each, today=TODAY))[0] == each
    smaller = payment(1, 7, token=TOKEN, recipient=PAYEE, units=1, gas_limit=90_000, fees=FEES)
    with pytest.raises(SignerRefused, match="Another payment"):
        again.sign(smaller, today=TODAY)
    with pytest.raises(SignerRefused, match="a day"):
        again.sign(msgspec.structs.replace(PAYMENT, nonce=8), today=TODAY)
    assert again.sign(msgspec.structs.replace(PAYMENT, nonce=8), today=TODAY + timedelta(days=1))
    assert (tmp_path / KEY_FILE).stat().st_mode & 0o777 == 0o600


class Forger:
    """A signer that signs something else than it was given."""

    def __init__(self, vault, **changes):
        self.vault, self.changes = vault, changes

    async def address(self):
        return self.vault.address

    async def sign(self, transaction):
        return self.vault.sign(msgspec.structs.replace(transaction, **self.changes), today=TODAY)

    async def close(self):
        pass


async def test_a_signed_transaction_that_differs_from_the_request_is_refused(vault):
    raw, transaction_hash = await sign_checked(Forger(vault), vault.address, PAYMENT)
    assert (read_signed(raw)[0], len(transaction_hash)) == (PAYMENT, 66)
    nothing = cancellation(1, 7, wallet=vault.address, fees=FEES)
    for changes in ({"nonce": 9}, {"gas_limit": 21_001}, {"max_fee": 101}):
        with pytest.raises(SignerRefused, match="something else"):
            await sign_checked(Forger(vault, **changes), vault.address, nothing)
    with pytest.raises(SignerRefused, match="another key"):
        await sign_checked(Forger(vault), PAYEE, PAYMENT)
