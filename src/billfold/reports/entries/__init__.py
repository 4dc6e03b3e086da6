"""What an account of a Pocket did in a period: balances and entries, read once for every format and statement."""
