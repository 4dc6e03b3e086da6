DROP TABLE usage_count;
