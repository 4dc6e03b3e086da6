ALTER FUNCTION ledger_apply RESET enable_hashagg;
