"""Blocks, transactions and receipts as JSON-RPC shows them."""

from typing import Any

from eth_utils.address import to_checksum_address


def hex_of(value: bytes) -> str:
    """Return bytes as JSON-RPC writes them."""
    return "0x" + value.hex()


def render_block(block: Any) -> dict[str, Any]:  # noqa: ANN401 - py-evm has no types for its blocks
    """Return a block with the hashes of its transactions."""
    header = block.header
    return {
        "number": hex(header.block_number),
        "hash": hex_of(header.hash),
        "parentHash": hex_of(header.parent_hash),
        "stateRoot": hex_of(header.state_root),
        "timestamp": hex(header.timestamp),
        "gasLimit": hex(header.gas_limit),
        "gasUsed": hex(header.gas_used),
        "baseFeePerGas": hex(header.base_fee_per_gas),
        "transactions": [hex_of(each.hash) for each in block.transactions],
    }


def render_transaction(transaction: Any, block: Any = None, place: int | None = None) -> dict[str, Any]:  # noqa: ANN401
    """Return a transaction; without a block it is pending."""
    fee = getattr(transaction, "max_fee_per_gas", None)
    shown = {
        "hash": hex_of(transaction.hash),
        "from": to_checksum_address(transaction.sender),
        "to": to_checksum_address(transaction.to) if transaction.to else None,
        "nonce": hex(transaction.nonce),
        "value": hex(transaction.value),
        "gas": hex(transaction.gas),
        "input": hex_of(transaction.data),
        "type": hex(getattr(transaction, "type_id", 0) or 0),
        "blockHash": None if block is None else hex_of(block.hash),
        "blockNumber": None if block is None else hex(block.number),
        "transactionIndex": None if place is None else hex(place),
    }
    if fee is None:
        return shown | {"gasPrice": hex(transaction.gas_price)}
    return shown | {"maxFeePerGas": hex(fee), "maxPriorityFeePerGas": hex(transaction.max_priority_fee_per_gas)}


def render_receipt(receipt: dict[str, Any], first_log: int) -> dict[str, Any]:
    """Return a receipt of the backend; `first_log` counts the logs before it in the block."""
    place = {
        "blockHash": hex_of(receipt["block_hash"]),
        "blockNumber": hex(receipt["block_number"]),
        "transactionHash": hex_of(receipt["transaction_hash"]),
        "transactionIndex": hex(receipt["transaction_index"]),
    }
    created = receipt["contract_address"]
    return place | {
        "from": to_checksum_address(receipt["from"]),
        "to": to_checksum_address(receipt["to"]) if receipt["to"] else None,
        "contractAddress": to_checksum_address(created) if created else None,
        "status": hex(receipt["status"]),
        "gasUsed": hex(receipt["gas_used"]),
        "cumulativeGasUsed": hex(receipt["cumulative_gas_used"]),
        "effectiveGasPrice": hex(receipt["effective_gas_price"]),
        "type": hex(int(receipt["type"])),
        "logs": [
            place
            | {
                "address": to_checksum_address(log["address"]),
                "topics": [hex_of(topic) for topic in log["topics"]],
                "data": hex_of(log["data"]),
                "logIndex": hex(first_log + number),
                "removed": False,
            }
            for number, log in enumerate(receipt["logs"])
        ],
    }
