DROP TABLE card_detail_key;
DROP TABLE card_order;
DROP TABLE card;
