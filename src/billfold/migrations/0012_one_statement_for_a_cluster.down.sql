DROP FUNCTION last_reversal;
DROP FUNCTION ledger_heads_locked;
