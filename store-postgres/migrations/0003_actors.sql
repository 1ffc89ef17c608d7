-- On whose word something is there: the user's for messages, and the user's or their backend's for what was told.
ALTER TABLE message ADD COLUMN actor text COLLATE "C" NOT NULL DEFAULT 'user';
ALTER TABLE fact ADD COLUMN actor text COLLATE "C" NOT NULL DEFAULT 'user';
-- A migration belongs to no scope, and would see no row.
ALTER TABLE fact NO FORCE ROW LEVEL SECURITY;
UPDATE fact SET actor = 'api' WHERE session_number = 0;
ALTER TABLE fact FORCE ROW LEVEL SECURITY;
ALTER TABLE audit ADD COLUMN actor text COLLATE "C" NOT NULL DEFAULT 'api';
-- What was said, where `content` has secrets of it masked.
ALTER TABLE message ADD COLUMN original text COLLATE "C";
-- From here on `fact.rejected` says that the value was rejected when it was superseded. What is stated after its value
-- was rejected is not stored at all.
-- Rejected values are read on their own, and imports look up what the user replaced.
CREATE INDEX fact_rejected ON fact (scope, superseded_by, number)
  WHERE rejected = 1 AND superseded_by IS NOT NULL;
CREATE INDEX fact_replaced ON fact (scope, slot, statement) WHERE superseded_by IS NOT NULL;
