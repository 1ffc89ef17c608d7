-- On whose word something is there: the user's for messages, and the user's or their backend's for what was told.
ALTER TABLE message ADD COLUMN actor TEXT NOT NULL DEFAULT 'user';
ALTER TABLE fact ADD COLUMN actor TEXT NOT NULL DEFAULT 'user';
UPDATE fact SET actor = 'api' WHERE session_number = 0;
ALTER TABLE audit ADD COLUMN actor TEXT NOT NULL DEFAULT 'api';
-- What was said, where `content` has secrets of it masked.
ALTER TABLE message ADD COLUMN original TEXT;
-- From here on `fact.rejected` says that the value was rejected when it was superseded. What is stated after its value
-- was rejected is not stored at all.
