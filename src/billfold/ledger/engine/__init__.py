"""The single writer of money: takes a batch of commands, plans each and makes them durable."""
