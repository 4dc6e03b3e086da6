DROP TABLE notification_audience, notification_recipient, notification;
