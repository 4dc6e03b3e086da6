DROP TABLE delivery_attempt, delivery, simulated_event, subscription_lane, courier, subscription_secret, subscription, told, event_reader;
DROP INDEX event_xid;
ALTER TABLE event DROP COLUMN xid;
