-- 1 while a message waits to be read by the model that extracts facts.
ALTER TABLE message ADD COLUMN unread INTEGER NOT NULL DEFAULT 0;
CREATE INDEX message_unread ON message (scope_id, seq) WHERE unread = 1;
-- Who wrote the lines: `extract`, `awaits_model`, or a model by name.
ALTER TABLE summary ADD COLUMN writer TEXT NOT NULL DEFAULT 'extract';
CREATE INDEX summary_awaits_model ON summary (scope_id) WHERE writer = 'awaits_model';
-- What was spent on models, by day. It names no user.
CREATE TABLE model_use (
  tenant         TEXT NOT NULL,
  day            INTEGER NOT NULL,
  work           TEXT NOT NULL,
  model          TEXT NOT NULL,
  calls          INTEGER NOT NULL,
  input          INTEGER NOT NULL,
  cached_input   INTEGER NOT NULL,
  output         INTEGER NOT NULL,
  micro_usd      INTEGER NOT NULL,
  PRIMARY KEY (tenant, day, work, model)
) STRICT, WITHOUT ROWID;
