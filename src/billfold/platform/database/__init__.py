"""The database: the connection pool, typed rows, batched reads, claimed rows."""
