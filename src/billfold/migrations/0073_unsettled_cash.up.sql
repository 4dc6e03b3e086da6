-- Cash that settles later: the proceeds of a sale for the next day, and what it costs to use them before.
-- The release before neither reads nor writes these columns, so cash that it moves counts as settled.
ALTER TABLE pocket
  ADD COLUMN unsettled bigint NOT NULL DEFAULT 0,
  ADD COLUMN unsettled_discount bigint NOT NULL DEFAULT 0,
  ADD COLUMN unsettled_on date;
