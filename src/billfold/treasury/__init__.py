"""Treasury: bills are bought, sold and mature; fees, settlement, custody, trades and earnings."""
