DROP FUNCTION ledger_book;
DROP FUNCTION ledger_apply;
ALTER FUNCTION ledger_move SET plan_cache_mode = force_custom_plan;
ALTER FUNCTION ledger_move RENAME TO ledger_apply;
DROP FUNCTION pockets_move;
DROP TYPE new_event;
DROP TYPE new_account;
