DROP INDEX audit_entry_freeze, freeze_proposal_list;
CREATE INDEX freeze_proposal_newest ON freeze_proposal (proposed_at);
