DROP TABLE daily_root_refusal, daily_root_page, daily_root;
