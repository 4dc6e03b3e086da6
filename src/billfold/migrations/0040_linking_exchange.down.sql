DROP TABLE linking_exchange;
