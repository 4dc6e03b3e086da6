DELETE FROM scheduled_job WHERE kind = 'sanctions.confirmed';
DROP TABLE sanctions_hit;
