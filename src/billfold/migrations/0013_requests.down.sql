DROP TABLE review;
DROP TABLE change_request;
DROP TABLE transfer_request;
DROP TABLE approval_rule;
DROP TABLE dual_control;
