DROP TABLE card_limits;
DROP TABLE card_payment;
DROP TABLE card_authorization;
