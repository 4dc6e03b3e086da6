"""Treasury bills: the issues on sale, their value at any instant, and what a pocket earns on them.

Owns bill arithmetic, the market built from published rates and auctions, the choice of
lots to sell, valuation, earnings and the fee on assets. Everything is pure: prices, days and
states go in, integers come out.
Never moves money, never writes a row, never reads a clock.
"""
