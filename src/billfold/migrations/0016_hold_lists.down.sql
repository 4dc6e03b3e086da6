DROP INDEX hold_placed, hold_until;
