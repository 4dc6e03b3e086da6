"""Trades as they are read.

Owns every read of trades. Never makes one: flows do, and the engine writes them.
"""

from billfold.domain.trades.reads import TradeRow, WantedTrades, list_trades

__all__ = ["TradeRow", "WantedTrades", "list_trades"]
