DROP INDEX customer_of_bank, wire_of_bank, ach_entry_of_bank, card_of_bank;
