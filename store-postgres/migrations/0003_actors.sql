-- On whose word something is there: the user's for messages, and the user's or their backend's for what was told.
ALTER TABLE message ADD COLUMN actor text COLLATE "C" NOT NULL DEFAULT 'user';
ALTER TABLE fact ADD COLUMN actor text COLLATE "C" NOT NULL DEFAULT 'user';
-- A migration belongs to no scope, and would see no row.
ALTER TABLE fact NO FORCE ROW LEVEL SECURITY;
UPDATE fact SET actor = 'api' WHERE session_number = 0;
-- Until here `fact.rejected` said that a fact was stated after its value had been rejected. From here on it says that
-- the value was rejected when the fact was superseded: that holds of both, and of what was taken back directly, unless
-- it was told directly again. A direct correction cannot be told from a fact that was told anew in its place; the keys
-- in `rejection` still keep what it corrected from being stated again. What is stated after its value was rejected is
-- not stored at all.
UPDATE fact SET rejected = 1
  WHERE superseded_by IS NOT NULL AND kind <> 'retraction' AND EXISTS (
    SELECT 1 FROM fact taken_back
    WHERE taken_back.scope = fact.scope AND taken_back.id = fact.superseded_by
      AND taken_back.kind = 'retraction' AND taken_back.session_number = 0);
UPDATE fact SET rejected = 0
  WHERE rejected = 1 AND EXISTS (
    SELECT 1 FROM fact again
    WHERE again.scope = fact.scope AND again.slot IS NOT DISTINCT FROM fact.slot AND again.statement = fact.statement
      AND again.kind <> 'retraction' AND again.session_number = 0 AND again.number > fact.number);
ALTER TABLE fact FORCE ROW LEVEL SECURITY;
ALTER TABLE audit ADD COLUMN actor text COLLATE "C" NOT NULL DEFAULT 'api';
-- The ids that callers give are of their author: the owner, or a guest of the session.
DROP INDEX message_by_external_id;
CREATE UNIQUE INDEX message_by_external_id
  ON message (scope, session_number, external_id, (CASE WHEN actor = 'guest' THEN coalesce(name, '') ELSE '' END))
  WHERE external_id IS NOT NULL;
-- What was said, where `content` has secrets of it masked.
ALTER TABLE message ADD COLUMN original text COLLATE "C";
-- Rejected values are read on their own, and imports look up what the user replaced.
CREATE INDEX fact_rejected ON fact (scope, superseded_by, number)
  WHERE rejected = 1 AND superseded_by IS NOT NULL;
CREATE INDEX fact_replaced ON fact (scope, slot, statement) WHERE superseded_by IS NOT NULL;
-- Refusals of processes that serve no metrics, until one that does counts them. They name no tenant.
CREATE TABLE refusal (
  interface        text COLLATE "C" NOT NULL,
  code             text COLLATE "C" NOT NULL,
  count            bigint NOT NULL,
  PRIMARY KEY (interface, code)
);
