-- 1 while a message waits to be read by the model that extracts facts.
ALTER TABLE message ADD COLUMN unread bigint NOT NULL DEFAULT 0;
CREATE INDEX message_unread ON message (scope, seq) WHERE unread = 1;
-- Who wrote the lines: `extract`, `awaits_model`, or a model by name.
ALTER TABLE summary ADD COLUMN writer text COLLATE "C" NOT NULL DEFAULT 'extract';
CREATE INDEX summary_awaits_model ON summary (scope) WHERE writer = 'awaits_model';
-- What was spent on models, by day. It names no user.
CREATE TABLE model_use (
  tenant           uuid NOT NULL,
  day              bigint NOT NULL,
  work             text COLLATE "C" NOT NULL,
  model            text COLLATE "C" NOT NULL,
  calls            bigint NOT NULL,
  input            bigint NOT NULL,
  cached_input     bigint NOT NULL,
  output           bigint NOT NULL,
  micro_usd        bigint NOT NULL,
  PRIMARY KEY (tenant, day, work, model)
);
ALTER TABLE model_use ENABLE ROW LEVEL SECURITY;
ALTER TABLE model_use FORCE ROW LEVEL SECURITY;
CREATE POLICY own_tenant ON model_use USING (tenant = throughline_tenant());
