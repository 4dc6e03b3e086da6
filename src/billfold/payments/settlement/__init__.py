"""Settlement: the bank settles each day's trades and payments with dealers, Treasury and rails."""
