#!/usr/bin/env python3
"""Checks a proof of the bank independently: needs Python 3.11 and `cryptography`, and nothing of Billfold.

    check_proof.py PROOF.json --key document-keys.json [--root ROOT] [--after ROOT] [--day DAY] [--customer ID]

PROOF is what the bank gave a customer, or `billfold proof backing` anybody. --key is the bank's published key file
(JWKS). --root is the root of the day as it was published, from anywhere but the bank; --after that of the day before.
It says what the bank has signed, and what does not hold. The exit status is 0 if all holds, 1 if not.

Why a proof binds the bank (docs/adr/0066): the tree of a bill has one place for every unit. A leaf says whose the
units at its place are; it covers a power of two of them, which is how far above the lowest level it stands. Two
customers cannot be shown one place, and no leaf stands for less than nothing. A customer who finds all its units
below `length` knows that they are among those that the custodian holds, or is to deliver.
"""

from __future__ import annotations

import argparse
import base64
import hashlib
import json
import sys
from datetime import datetime
from pathlib import Path
from typing import Any, NamedTuple

from cryptography.exceptions import InvalidSignature
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PublicKey

KIND = "billfold-root+jws"
LEAF, NODE = b"\x00", b"\x01"


class Wrong(Exception):
    """Something does not hold; the message says what."""


def require(holds: bool, sentence: str) -> None:  # noqa: FBT001
    """Raise Wrong unless it holds."""
    if not holds:
        raise Wrong(sentence)


def decode(text: str) -> bytes:
    """Return what stands in base64url, in its one spelling."""
    raw = base64.b64decode(text + "=" * (-len(text) % 4), altchars=b"-_", validate=True)
    require(encode(raw) == text, "Base64 is not in its one spelling.")
    return raw


def encode(raw: bytes) -> str:
    """Return bytes in base64url."""
    return base64.urlsafe_b64encode(raw).rstrip(b"=").decode()


def no_repeats(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    """Return an object of JSON in which no name stands twice: a second one would be read by some and not by others."""
    found = dict(pairs)
    require(len(found) == len(pairs), "A name stands twice in an object.")
    return found


def parse(text: str | bytes) -> Any:  # noqa: ANN401 - any JSON
    """Return JSON; numbers are whole."""
    return json.loads(text, object_pairs_hook=no_repeats, parse_float=_refuse_float)


def _refuse_float(text: str) -> None:
    raise Wrong(f"{text} is not a whole number.")


def count(value: object, what: str) -> int:
    """Return a number that is whole and not below zero."""
    require(type(value) is int, f"{what} is not a whole number.")
    assert isinstance(value, int)
    require(value >= 0, f"{what} is below zero.")
    return value


class Key(NamedTuple):
    """A key of the bank, and from which second on it is revoked."""

    public: Ed25519PublicKey
    revoked_at: int | None


def keys_of(content: bytes) -> dict[str, Key]:
    """Return the keys of a JWKS by their thumbprints (RFC 7638): an id that is another is forged."""
    found = {}
    for jwk in parse(content)["keys"]:
        if jwk.get("crv") != "Ed25519":
            continue
        named = json.dumps({"crv": "Ed25519", "kty": "OKP", "x": jwk["x"]}, separators=(",", ":"))
        thumbprint = encode(hashlib.sha256(named.encode()).digest())
        require(jwk.get("kid", thumbprint) == thumbprint, f"The key file is forged: {jwk.get('kid')} is {thumbprint}.")
        revoked_at = count(jwk["revoked"]["revoked_at"], "A revocation") if "revoked" in jwk else None
        found[thumbprint] = Key(Ed25519PublicKey.from_public_bytes(decode(jwk["x"])), revoked_at)
    require(bool(found), "The key file has no Ed25519 key.")
    return found


def signed_root(jws: str, keys: dict[str, Key]) -> dict[str, Any]:
    """Return what the bank has signed of a day."""
    parts = jws.split(".")
    require(len(parts) == 3, "The root is cut off.")  # noqa: PLR2004 - header, payload, signature
    header = parse(decode(parts[0]))
    require(header.get("typ") == KIND and header.get("alg") == "EdDSA", "What is signed is not a daily root.")
    require(header.get("kid") in keys, f"The root is signed with the key {header.get('kid')}, which is not the bank's.")
    try:
        keys[header["kid"]].public.verify(decode(parts[2]), f"{parts[0]}.{parts[1]}".encode())
    except InvalidSignature:
        raise Wrong("The signature of the root does not hold.") from None
    root: dict[str, Any] = parse(decode(parts[1]))
    revoked = keys[header["kid"]].revoked_at
    taken = datetime.fromisoformat(root["taken_at"]).timestamp()
    require(revoked is None or taken < revoked, "The root is signed with a key that the bank had revoked before.")
    if revoked is not None:
        print(
            "Caution: the bank has revoked the key of this root since. Compare the root with one kept before (--root)."
        )
    return root


def check_lines(root: dict[str, Any]) -> None:
    """Check that no more is owed of any bill than there is."""
    count(root["customers"]["count"], "The number of customers")
    for cusip, line in root["bills"].items():
        held = count(line["at_custodian"], f"{cusip} at the custodian")
        lots = count(line["lots"], f"{cusip} of customers")
        require(lots <= held + line["to_receive"], f"{lots} of {cusip} are owed, and there are fewer.")


def length_of(line: dict[str, Any]) -> int:
    """Return how many units of a bill may have an owner."""
    return int(line["at_custodian"]) + int(line["to_receive"])


def check_leaf(proven: dict[str, Any], salt: bytes, *, length: int, power: int, root: str) -> None:
    """Check that a leaf is where it says, below a root over so many places."""
    height, at = max(length - 1, 0).bit_length(), count(proven["at"], "A place")
    require(at % (1 << power) == 0 and at + (1 << power) <= length, "A leaf stands behind the last place.")
    require(len(proven["path"]) == height - power, "A way up is too short or too long.")
    node, place = hashlib.sha256(LEAF + salt + proven["leaf"].encode()).digest(), at >> power
    for sibling in proven["path"]:
        other = bytes.fromhex(sibling)
        require(len(other) == len(node), "A hash next to the path is too short or too long.")
        node = hashlib.sha256(NODE + (other + node if place & 1 else node + other)).digest()
        place >>= 1
    require(node.hex() == root, "A way does not lead to the root.")


def check_customer(proof: dict[str, Any], root: dict[str, Any]) -> dict[str, Any]:
    """Check all that is proven about a customer; return its leaf."""
    salt = bytes.fromhex(proof["salt"])
    customers, proven = root["customers"], proof["customer"]
    check_leaf(proven, salt, length=customers["count"], power=0, root=customers["root"])
    leaf: dict[str, Any] = parse(proven["leaf"])
    count(leaf["cash"], "Cash")
    found: dict[str, list[tuple[int, int]]] = {}
    for each in proof["bills"]:
        bill = parse(each["leaf"])
        require(bill["customer"] == leaf["customer"], "A leaf of a bill is another customer's.")
        units = count(bill["units"], "Units")
        require(units.bit_count() == 1, "A leaf of a bill is not a power of two.")
        line = root["bills"][bill["bill"]]
        check_leaf(each, salt, length=length_of(line), power=units.bit_length() - 1, root=line["root"])
        found.setdefault(bill["bill"], []).append((each["at"], units))
    require(found.keys() == leaf["bills"].keys(), "Not every bill of the customer is proven.")
    for cusip, places in found.items():
        ends = 0
        for at, units in sorted(places):
            require(at >= ends, f"Two leaves of {cusip} are at one place.")
            ends = at + units
        stated = count(leaf["bills"][cusip]["units"], "Units")
        require(stated == sum(units for _, units in places), f"Not all units of {cusip} are proven.")
    return leaf


def check_previous(jws: str, root: dict[str, Any], keys: dict[str, Key]) -> None:
    """Check that the root of the day before is the one that this follows."""
    before = signed_root(jws, keys)
    require(before["number"] + 1 == root["number"], f"Number {root['number']} does not follow {before['number']}.")
    require(before["day"] < root["day"], f"{root['day']} is not after {before['day']}.")
    require(root["previous"] == hashlib.sha256(jws.encode()).hexdigest(), "It does not follow the root that was given.")


def say(root: dict[str, Any], leaf: dict[str, Any] | None, jws: str) -> None:
    """Say what the bank has signed."""
    print(f"{root['bank']} has signed root {root['number']}, of {root['day']}, taken at {root['taken_at']}.")
    print(f"Its fingerprint is {hashlib.sha256(jws.encode()).hexdigest()}: compare it with what others got.")
    if leaf is None:
        for cusip, line in sorted(root["bills"].items()):
            print(
                f"{cusip}: customers own {line['lots']:,}; the custodian holds {line['at_custodian']:,}, "
                f"{line['to_receive']:,} are to be received."
            )
        return
    dollars, cents = divmod(leaf["cash"], 100)
    print(f"It owed customer {leaf['customer']}: ${dollars:,}.{cents:02} in cash,")
    for cusip, held in sorted(leaf["bills"].items()):
        print(f"  {held['units']:,} units of {cusip}, among {length_of(root['bills'][cusip]):,} that there are,")
    print(f"at journal entry {leaf['entry_no']:,}, commit {leaf['version']:,}, chain {leaf['chain']}.")


def check(arguments: argparse.Namespace) -> None:
    """Check a proof. Raises Wrong."""
    proof, keys = parse(arguments.proof.read_bytes()), keys_of(arguments.key.read_bytes())
    jws = proof["root"]
    root = signed_root(jws, keys)
    check_lines(root)
    if arguments.root is not None:
        published = arguments.root.read_text().strip()
        require(published == jws, "The root of the proof is not the one that was published.")
    if arguments.after is not None:
        check_previous(arguments.after.read_text().strip(), root, keys)
    require(arguments.day in {None, root["day"]}, f"It is a proof of {root['day']}.")
    leaf = check_customer(proof, root) if "customer" in proof else None
    owner = None if leaf is None else leaf["customer"]
    require(arguments.customer in {None, owner}, f"It is the proof of {owner}.")
    say(root, leaf, jws)


def main() -> int:
    """Check what the command line names; return the exit status."""
    parser = argparse.ArgumentParser(description="Checks a proof of what the bank owed at the close of a day.")
    parser.add_argument("proof", type=Path)
    parser.add_argument("--key", type=Path, required=True, help="the bank's published keys")
    parser.add_argument("--root", type=Path, help="the root of the day as it was published")
    parser.add_argument("--after", type=Path, help="the root of the day before")
    parser.add_argument("--day", help="the day that the proof must be of")
    parser.add_argument("--customer", help="the customer that the proof must be of")
    try:
        check(parser.parse_args())
    except Wrong as wrong:
        print(f"It does not hold: {wrong}", file=sys.stderr)
        return 1
    except (OSError, ValueError, KeyError, TypeError, AttributeError, RecursionError) as error:
        print(f"A file cannot be read: {type(error).__name__} {error}", file=sys.stderr)
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
