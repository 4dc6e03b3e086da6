-- The messages are lost; orders, quotes and executions stay.
DROP TABLE dealer_message, dealer_session;
ALTER TABLE dealer_quote DROP COLUMN reference;
ALTER TABLE dealer_order DROP COLUMN cancel_asked, DROP COLUMN taken_because, DROP COLUMN dealer;
