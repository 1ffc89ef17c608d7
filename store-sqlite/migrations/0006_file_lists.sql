-- Which files a session has inline, as the policy encodes it, and what models were sent of them.
CREATE TABLE file_list (
  scope_id       INTEGER NOT NULL,
  session_number INTEGER NOT NULL,
  revision       INTEGER NOT NULL,
  list           BLOB NOT NULL,
  sent           BLOB NOT NULL,
  PRIMARY KEY (scope_id, session_number)
) STRICT, WITHOUT ROWID;
