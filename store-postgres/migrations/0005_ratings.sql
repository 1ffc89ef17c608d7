-- The version of the preset whose prompt and personality a context still has.
ALTER TABLE persona ADD COLUMN preset_version bigint;
-- What users say of answers.
CREATE TABLE answer_rating (
  scope            uuid NOT NULL,
  message_id       uuid NOT NULL,
  session_number   bigint NOT NULL,
  rated_at         bigint NOT NULL,
  helpful          bigint NOT NULL,
  preset_version   bigint,
  user_id          text COLLATE "C" NOT NULL,
  preset           text COLLATE "C",
  note             text COLLATE "C",
  PRIMARY KEY (scope, message_id, user_id)
);
CREATE INDEX answer_rating_by_session ON answer_rating (scope, session_number);
ALTER TABLE answer_rating ENABLE ROW LEVEL SECURITY;
ALTER TABLE answer_rating FORCE ROW LEVEL SECURITY;
CREATE POLICY own_scope ON answer_rating USING (scope = throughline_scope());
