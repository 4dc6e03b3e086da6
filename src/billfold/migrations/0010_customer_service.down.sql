DROP TABLE alert;
DROP INDEX customer_words, user_account_words, membership_list, card_last_four, wire_imad, wire_omad, wire_amount,
  ach_entry_amount, freeze_proposal_owner;
