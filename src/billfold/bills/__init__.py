"""Bills: what the Treasury sells, what it is worth at any instant, what a pocket earns on it.

Owns the arithmetic of bills, the market built from published rates and auctions, the choice of
lots to sell, valuation, earnings and the fee on assets. Everything is pure: prices, days and
states go in, integers come out.
Never moves money, never writes a row, never reads a clock.
"""
