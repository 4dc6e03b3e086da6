DELETE FROM scheduled_job WHERE kind = 'card.late';
DROP TABLE card_late_message;
