DROP TABLE earlier_link;
