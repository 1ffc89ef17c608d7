-- Which files a session has inline, as the policy encodes it, and what models were sent of them: text, which may
-- hold what the type of that name does not take.
CREATE TABLE file_list (
  scope            uuid NOT NULL,
  session_number   bigint NOT NULL,
  revision         bigint NOT NULL,
  list             bytea NOT NULL,
  sent             bytea NOT NULL,
  PRIMARY KEY (scope, session_number)
);
ALTER TABLE file_list ENABLE ROW LEVEL SECURITY;
ALTER TABLE file_list FORCE ROW LEVEL SECURITY;
CREATE POLICY own_scope ON file_list USING (scope = throughline_scope());
