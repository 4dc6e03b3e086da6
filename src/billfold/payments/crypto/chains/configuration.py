"""The file of chains: TOML with a `[[chain]]` per chain, read and checked once when a process starts."""

from collections.abc import Iterable, Iterator
from pathlib import Path
from urllib.parse import urlsplit

import msgspec

from billfold.payments.crypto.chains.addresses import WatchOnlyAddresses
from billfold.payments.crypto.chains.rules import read_address
from billfold.payments.crypto.chains.types import Chain, Chains, Token

LOCAL_CHAINS = Path("chain", "chains.toml")
"""Where the state directory of a sandbox has the file of its local chain."""


class ChainMistakes(Exception):
    """The chains are misconfigured. Each sentence names the chain and the field; no address of a node is repeated."""

    def __init__(self, mistakes: Iterable[str]) -> None:
        self.mistakes = tuple(mistakes)
        super().__init__("\n".join(self.mistakes))


class _File(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    chain: tuple[Chain, ...] = ()


def read_chains(path: Path) -> Chains:
    """Return the chains of a file by name. Raises ChainMistakes."""
    try:
        found = msgspec.toml.decode(path.read_bytes(), type=_File)
    except (OSError, ValueError) as error:  # a mistake of msgspec or TOML names the field, not its value
        raise ChainMistakes([f"{path}: {getattr(error, 'strerror', None) or error}"]) from None
    return checked_chains(found.chain)


def checked_chains(chains: Iterable[Chain]) -> Chains:
    """Return chains by name, addresses of tokens in the form of EIP-55. Raises ChainMistakes."""
    chains = tuple(chains)
    mistakes = [f"{each.name}: {mistake}" for each in chains for mistake in _mistakes(each)]
    for field in ("name", "chain_id"):
        values = [getattr(each, field) for each in chains]
        mistakes += [f"{value}: {field} is there twice" for value in sorted({v for v in values if values.count(v) > 1})]
    if mistakes:
        raise ChainMistakes(mistakes)
    return Chains(
        (each.name, msgspec.structs.replace(each, tokens=tuple(map(_checksummed, each.tokens)))) for each in chains
    )


def _checksummed(token: Token) -> Token:
    return msgspec.structs.replace(token, address=read_address(token.address) or token.address)


def _mistakes(chain: Chain) -> Iterator[str]:
    for number, url in enumerate(chain.rpc_urls, 1):
        if not _is_node_url(url):
            yield f"rpc_urls {number} is no address (https://host/..., or http:// in a network of your own)"
    if len(set(chain.rpc_urls)) < len(chain.rpc_urls):
        yield "rpc_urls has a node twice: two answers of one node are no agreement"
    for token in chain.tokens:
        if read_address(token.address) is None:
            yield f"the address of token {token.asset} is none, or its checksum (EIP-55) is wrong"
    if len({token.address.lower() for token in chain.tokens}) < len(chain.tokens):
        yield "tokens has an address twice"
    try:
        WatchOnlyAddresses(chain.xpub, chain.derivation_path)
    except ValueError as error:
        yield f"xpub {error}"


def _is_node_url(url: str) -> bool:
    try:
        parts = urlsplit(url)
        _ = parts.port
    except ValueError:
        return False
    return parts.scheme in {"http", "https"} and bool(parts.hostname) and url.isprintable() and " " not in url
