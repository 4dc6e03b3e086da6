DROP TABLE freeze_proposal;
