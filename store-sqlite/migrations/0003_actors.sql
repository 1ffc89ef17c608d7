-- On whose word something is there: the user's for messages, and the user's or their backend's for what was told.
ALTER TABLE message ADD COLUMN actor TEXT NOT NULL DEFAULT 'user';
ALTER TABLE fact ADD COLUMN actor TEXT NOT NULL DEFAULT 'user';
UPDATE fact SET actor = 'api' WHERE session_number = 0;
ALTER TABLE audit ADD COLUMN actor TEXT NOT NULL DEFAULT 'api';
-- The ids that callers give are of their author: the owner, or a guest of the session.
DROP INDEX message_by_external_id;
CREATE UNIQUE INDEX message_by_external_id
  ON message (scope_id, session_number, external_id, (CASE WHEN actor = 'guest' THEN coalesce(name, '') ELSE '' END))
  WHERE external_id IS NOT NULL;
-- What was said, where `content` has secrets of it masked.
ALTER TABLE message ADD COLUMN original TEXT;
-- Until here `fact.rejected` said that a fact was stated after its value had been rejected. From here on it says that
-- the value was rejected when the fact was superseded: that holds of both, and of what was taken back directly, unless
-- it was told directly again. A direct correction cannot be told from a fact that was told anew in its place; the keys
-- in `rejection` still keep what it corrected from being stated again. What is stated after its value was rejected is
-- not stored at all.
UPDATE fact SET rejected = 1
  WHERE superseded_by IS NOT NULL AND kind <> 'retraction' AND EXISTS (
    SELECT 1 FROM fact taken_back
    WHERE taken_back.scope_id = fact.scope_id AND taken_back.id = fact.superseded_by
      AND taken_back.kind = 'retraction' AND taken_back.session_number = 0);
UPDATE fact SET rejected = 0
  WHERE rejected = 1 AND EXISTS (
    SELECT 1 FROM fact again
    WHERE again.scope_id = fact.scope_id AND again.slot IS fact.slot AND again.statement = fact.statement
      AND again.kind <> 'retraction' AND again.session_number = 0 AND again.number > fact.number);
-- Rejected values are read on their own, and imports look up what the user replaced.
CREATE INDEX fact_rejected ON fact (scope_id, superseded_by, number)
  WHERE rejected = 1 AND superseded_by IS NOT NULL;
CREATE INDEX fact_replaced ON fact (scope_id, slot, statement) WHERE superseded_by IS NOT NULL;
-- Refusals of processes that serve no metrics, until one that does counts them.
CREATE TABLE refusal (
  interface      TEXT NOT NULL,
  code           TEXT NOT NULL,
  count          INTEGER NOT NULL,
  PRIMARY KEY (interface, code)
) STRICT, WITHOUT ROWID;
