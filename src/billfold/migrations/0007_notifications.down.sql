DROP TABLE notification_past, notification_mark, notification_audience, notification_recipient, notification;
