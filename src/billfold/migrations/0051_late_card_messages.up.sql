-- Messages of the card processor that were declined because the bank had not decided in time.
CREATE TABLE card_late_message (
  message_id  uuid PRIMARY KEY,
  customer_id uuid NOT NULL REFERENCES customer,
  message     json NOT NULL
);
