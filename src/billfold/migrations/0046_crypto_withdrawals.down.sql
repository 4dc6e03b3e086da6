DROP TABLE crypto_signature;
DROP TABLE crypto_transaction;
DROP TABLE crypto_wallet;
DROP TABLE crypto_withdrawal;
