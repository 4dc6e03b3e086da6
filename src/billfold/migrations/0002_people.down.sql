DROP TABLE letter, mailed_link, known_device, session, proof_failure, passkey_challenge, authenticator, passkey, person_password,
  membership, person;
