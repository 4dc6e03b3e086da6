DROP FUNCTION clock_held_at, response_keep;
