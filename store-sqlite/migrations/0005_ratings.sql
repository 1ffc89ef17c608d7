-- The version of the preset whose prompt and personality a context still has.
ALTER TABLE persona ADD COLUMN preset_version INTEGER;
-- What users say of answers.
CREATE TABLE answer_rating (
  scope_id       INTEGER NOT NULL,
  message_id     BLOB NOT NULL,
  user_id        TEXT NOT NULL,
  session_number INTEGER NOT NULL,
  rated_at       INTEGER NOT NULL,
  helpful        INTEGER NOT NULL,
  preset_version INTEGER,
  preset         TEXT,
  note           TEXT,
  PRIMARY KEY (scope_id, message_id, user_id)
) STRICT, WITHOUT ROWID;
CREATE INDEX answer_rating_by_session ON answer_rating (scope_id, session_number);
