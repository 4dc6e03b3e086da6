"""Treasury: buys, sells and redeems bills; fees, settlement, custody, trades and earnings."""
