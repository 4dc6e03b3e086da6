DROP INDEX transaction_of_bank;
