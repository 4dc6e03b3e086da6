"""Routing and account numbers: valid ones are accepted, mistyped ones are refused."""

import pytest

from billfold.accounts.counterparties.rules import identifiers
from billfold.accounts.counterparties.rules.identifiers import keccak_256

ABA = ["021000021", "011000015", "121182904", "084106768", "122105155", "091000019"]
IBANS = ["DE89370400440532013000", "GB29 NWBK 6016 1331 9268 19", "FR1420041010050500013M02606"]
ADDRESSES = [
    "0xf39Fd6e51aad88F6F4ce6aB8827279cffFb92266",
    "0x70997970C51812dc3A010C7d01b50e0d17dc79C8",
    "0x3C44CdDdB6a900fa2b585dd299e03d12FA4293BC",
    "0x5aAeb6053F3E94C9b9A09f33669435E7Ef1BeAed",
]


def test_keccak_matches_the_original_submission_and_not_sha_3():
    assert keccak_256(b"").hex() == ("c5d2460186f7233c927e7db2dcc703c0e500b653ca82273b7bfad8045d85a470")
    assert keccak_256(b"Transfer(address,address,uint256)").hex() == (
        "ddf252ad1be2c89b69c2b068fc378daa952ba7f163c4a11628f55a4df523b3ef"
    )
    assert len({keccak_256(b"x" * length) for length in range(134, 140)}) == 6


@pytest.mark.parametrize("number", ABA)
def test_a_routing_number_with_a_wrong_check_digit_is_refused(number):
    assert identifiers.routing_number_error(number) is None
    for place in range(9):
        for by in range(1, 10):
            digit = str((int(number[place]) + by) % 10)
            other = number[:place] + digit + number[place + 1 :]
            assert identifiers.routing_number_error(other) is not None


@pytest.mark.parametrize(
    ("number", "why"),
    [
        ("02100002", "9 digits"),
        ("0210000211", "9 digits"),
        ("02100002a", "9 digits"),
        ("٠٢١٠٠٠٠٢١", "9 digits"),
        ("021000022", "check digit"),
        ("000000000", "begin"),
        ("131000021", "begin"),
        ("990000009", "begin"),
    ],
)
def test_an_invalid_routing_number_is_refused_with_the_reason(number, why):
    assert why in (identifiers.routing_number_error(number) or "")


@pytest.mark.parametrize("number", IBANS)
def test_an_iban_with_one_wrong_character_is_refused(number):
    assert identifiers.iban_error(number) is None
    assert identifiers.has_iban_form(number)
    assert "check digits" in (identifiers.iban_error(number[:-1] + "8") or "")


@pytest.mark.parametrize(
    ("number", "why"),
    [
        ("US89370400440532013000", "US has none"),
        ("DE8937040044053201300", "IBAN"),
        ("hello", "like DE89"),
        ("", "like DE89"),
        ("DE" + "1" * 40, "like DE89"),
    ],
)
def test_an_invalid_iban_is_refused_with_the_reason(number, why):
    assert why in (identifiers.iban_error(number) or "")


@pytest.mark.parametrize("code", ["COBADEFFXXX", "COBADEFF", "CHASUS33", "E097AEXX"])
def test_a_bic_with_eight_or_eleven_characters_and_a_country_is_accepted(code):
    assert identifiers.bic_error(code) is None


@pytest.mark.parametrize("code", ["COBADEF", "COBADEFFXX", "COBAZZFF", "COBADEFF BBB", "cobadeff"])
def test_an_invalid_bic_is_refused(code):
    assert identifiers.bic_error(code) is not None


@pytest.mark.parametrize("address", ADDRESSES)
def test_an_evm_address_with_wrong_checksum_capitals_is_refused(address):
    for chain in ("ETHEREUM", "POLYGON", "BASE"):
        assert identifiers.wallet_error(chain, address) is None
        assert identifiers.wallet_error(chain, address.lower()) is None
        assert "typing mistake" in (identifiers.wallet_error(chain, _swapped(address)) or "")
    assert identifiers.to_checksum_address(address.lower()) == address


@pytest.mark.parametrize(
    ("chain", "address"),
    [
        ("ETHEREUM", "0x" + "0" * 40),
        ("ETHEREUM", "0x123"),
        ("BASE", "f39Fd6e51aad88F6F4ce6aB8827279cffFb92266"),
        ("SOLANA", "0xf39Fd6e51aad88F6F4ce6aB8827279cffFb92266"),
        ("SOLANA", "EPjFWdd5AufqSSqeM2qN1xzybapC8G4wEG"),
        ("SOLANA", "0PjFWdd5AufqSSqeM2qN1xzybapC8G4wEGGkZwyTDt1v"),
    ],
)
def test_a_wallet_address_of_a_different_chain_is_refused(chain, address):
    assert identifiers.wallet_error(chain, address) is not None


def test_a_solana_address_must_decode_to_32_bytes():
    usdc = "EPjFWdd5AufqSSqeM2qN1xzybapC8G4wEGGkZwyTDt1v"
    assert identifiers.wallet_error("SOLANA", usdc) is None
    assert identifiers.wallet_error("SOLANA", "1" * 32) is None


def _swapped(address):
    """Change the case of the first letter."""
    place = next(n for n, each in enumerate(address) if n > 1 and each.isalpha())
    return address[:place] + address[place].swapcase() + address[place + 1 :]
