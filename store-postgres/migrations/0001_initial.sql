-- Times are microseconds since the Unix epoch (UTC). `scope` is the key of tenant, user and workspace:
-- every row that belongs to a scope has it, every query names it, and row-level security shows a
-- transaction the rows of its own scope only, so that a query that forgets it returns nothing. The large
-- tables are partitioned by it.
--
-- `tenant` is the key of a tenant, and bounds a transaction in the same way.
--
-- The numbers of migrations are those of the SQLite store's.

CREATE EXTENSION IF NOT EXISTS vector;

-- The scope of this transaction (`SET LOCAL throughline.scope`); null when none was set.
CREATE FUNCTION throughline_scope() RETURNS uuid LANGUAGE sql STABLE PARALLEL SAFE
  RETURN nullif(current_setting('throughline.scope', true), '')::uuid;

-- Whether this transaction is a worker's: it sees which scopes and jobs there are, and nothing that
-- they hold.
CREATE FUNCTION throughline_worker() RETURNS boolean LANGUAGE sql STABLE PARALLEL SAFE
  RETURN coalesce(current_setting('throughline.worker', true), '') = 'on';

-- The tenant of this transaction, where it is about what belongs to a tenant as a whole.
CREATE FUNCTION throughline_tenant() RETURNS uuid LANGUAGE sql STABLE PARALLEL SAFE
  RETURN nullif(current_setting('throughline.tenant', true), '')::uuid;

-- The id of the key that a caller of this transaction presented.
CREATE FUNCTION throughline_key() RETURNS bigint LANGUAGE sql STABLE PARALLEL SAFE
  RETURN nullif(current_setting('throughline.key', true), '')::bigint;

CREATE TABLE scope (
  key              uuid PRIMARY KEY,
  number           bigint NOT NULL GENERATED ALWAYS AS IDENTITY UNIQUE,
  tenant           text COLLATE "C" NOT NULL,
  user_id          text COLLATE "C" NOT NULL,
  workspace        text COLLATE "C" NOT NULL,
  last_seq         bigint NOT NULL DEFAULT 0,
  sessions         bigint NOT NULL DEFAULT 0,
  facts            bigint NOT NULL DEFAULT 0,
  documents        bigint NOT NULL DEFAULT 0,
  messages         bigint NOT NULL DEFAULT 0,
  tokens           bigint NOT NULL DEFAULT 0,
  -- Counted up by every erasure. Begins at random, so that a scope that was dropped and begins anew is not
  -- taken for the one that it was.
  erasures         bigint NOT NULL DEFAULT floor(random() * 2 ^ 62)::bigint,
  -- Counted up by every transaction that changes anything of the scope: what a replica shows is as new as
  -- its version.
  version          bigint NOT NULL DEFAULT 0
) WITH (fillfactor = 50);

CREATE TABLE session (
  scope            uuid NOT NULL,
  number           bigint NOT NULL,
  id               text COLLATE "C" NOT NULL,
  created_at       bigint NOT NULL,
  last_at          bigint NOT NULL,
  messages         bigint NOT NULL,
  tokens           bigint NOT NULL,
  summarized       bigint NOT NULL,
  next_position    bigint NOT NULL,
  version          bigint NOT NULL,
  PRIMARY KEY (scope, number),
  UNIQUE (scope, id)
) WITH (fillfactor = 70);

CREATE TABLE message (
  scope            uuid NOT NULL,
  session_number   bigint NOT NULL,
  position         bigint NOT NULL,
  seq              bigint NOT NULL,
  created_at       bigint NOT NULL,
  tokens           bigint NOT NULL,
  units            bigint NOT NULL,
  id               uuid NOT NULL,
  content_hash     bytea NOT NULL,
  -- Bytes and tokens of each passage, of messages that have more than one.
  cuts             bytea NOT NULL,
  role             text COLLATE "C" NOT NULL,
  name             text COLLATE "C",
  external_id      text COLLATE "C",
  content          text COLLATE "C" NOT NULL,
  parts            text COLLATE "C",
  attachments      text COLLATE "C",
  PRIMARY KEY (scope, session_number, position)
) PARTITION BY HASH (scope);
-- The order of commits: what vector indexes read to become complete.
CREATE UNIQUE INDEX message_by_seq ON message (scope, seq);
CREATE UNIQUE INDEX message_by_id ON message (scope, id);
CREATE UNIQUE INDEX message_by_external_id
  ON message (scope, session_number, external_id) WHERE external_id IS NOT NULL;

CREATE TABLE fact (
  scope            uuid NOT NULL,
  number           bigint NOT NULL,
  session_number   bigint NOT NULL,
  slot             bigint,
  statement        bigint NOT NULL,
  observed_at      bigint NOT NULL,
  -- 1 where it was stated after its value was rejected: it never holds.
  rejected         bigint NOT NULL,
  id               uuid NOT NULL,
  superseded_by    uuid,
  weight           double precision NOT NULL,
  kind             text COLLATE "C" NOT NULL,
  text             text COLLATE "C" NOT NULL,
  subject          text COLLATE "C",
  attribute        text COLLATE "C",
  value            text COLLATE "C",
  tags             text COLLATE "C" NOT NULL,
  PRIMARY KEY (scope, number)
) PARTITION BY HASH (scope);
-- At most one active fact of a slot, and of a statement outside any slot.
CREATE UNIQUE INDEX fact_by_slot
  ON fact (scope, slot) WHERE slot IS NOT NULL AND superseded_by IS NULL;
CREATE UNIQUE INDEX fact_by_statement
  ON fact (scope, statement) WHERE slot IS NULL AND superseded_by IS NULL;
-- What every context of the user holds, and what does not hold any more, the newest change first.
CREATE INDEX fact_standing ON fact (scope, observed_at, number)
  WHERE kind IN ('instruction', 'preference') AND superseded_by IS NULL;
CREATE INDEX fact_superseded ON fact (scope, superseded_by, number) WHERE superseded_by IS NOT NULL;
CREATE UNIQUE INDEX fact_by_id ON fact (scope, id);

-- The source of a fact that was told directly bears the fact's own id, and the number of the last message
-- then. Such a fact has no session: its number is 0.
CREATE TABLE fact_source (
  scope            uuid NOT NULL,
  fact_number      bigint NOT NULL,
  message_seq      bigint NOT NULL,
  message_id       uuid NOT NULL,
  PRIMARY KEY (scope, fact_number, message_seq)
) PARTITION BY HASH (scope);
CREATE INDEX fact_source_by_message ON fact_source (scope, message_id);

-- Keyed hashes of values that were rejected: they tell nothing of them.
CREATE TABLE rejection (
  scope            uuid NOT NULL,
  key              bytea NOT NULL,
  PRIMARY KEY (scope, key)
);

CREATE TABLE entity (
  scope            uuid NOT NULL,
  session_number   bigint NOT NULL,
  kind             text COLLATE "C" NOT NULL,
  value            text COLLATE "C" NOT NULL,
  id               uuid NOT NULL,
  last_at          bigint NOT NULL,
  UNIQUE (scope, session_number, kind, value)
) PARTITION BY HASH (scope);
CREATE INDEX entity_recent ON entity (scope, session_number, last_at DESC, kind, value);

CREATE TABLE entity_source (
  scope            uuid NOT NULL,
  entity_id        uuid NOT NULL,
  message_seq      bigint NOT NULL,
  message_id       uuid NOT NULL,
  PRIMARY KEY (scope, entity_id, message_seq)
) PARTITION BY HASH (scope);
CREATE INDEX entity_source_by_message ON entity_source (scope, message_id);

CREATE TABLE summary (
  scope            uuid NOT NULL,
  session_number   bigint NOT NULL,
  version          bigint NOT NULL,
  covered          bigint NOT NULL,
  to_position      bigint NOT NULL,
  from_at          bigint NOT NULL,
  to_at            bigint NOT NULL,
  tokens           bigint NOT NULL,
  id               uuid NOT NULL,
  previous         uuid,
  PRIMARY KEY (scope, session_number, version)
);

CREATE TABLE summary_line (
  scope            uuid NOT NULL,
  session_number   bigint NOT NULL,
  version          bigint NOT NULL,
  line             bigint NOT NULL,
  message_id       uuid NOT NULL,
  text             text COLLATE "C" NOT NULL,
  PRIMARY KEY (scope, session_number, version, line)
) PARTITION BY HASH (scope);
CREATE INDEX summary_line_by_message ON summary_line (scope, message_id);

CREATE TABLE profile (
  scope            uuid PRIMARY KEY,
  version          bigint NOT NULL,
  updated_at       bigint NOT NULL,
  rules            text COLLATE "C" NOT NULL,
  card             text COLLATE "C" NOT NULL
);

-- What sessions refer to; the files themselves are kept elsewhere.
CREATE TABLE file_ref (
  scope            uuid NOT NULL,
  id               uuid NOT NULL,
  session_number   bigint NOT NULL,
  created_at       bigint NOT NULL,
  message_id       uuid,
  kind             text COLLATE "C" NOT NULL,
  title            text COLLATE "C" NOT NULL,
  reference        text COLLATE "C",
  metadata         text COLLATE "C",
  PRIMARY KEY (scope, id)
);
CREATE INDEX file_ref_recent ON file_ref (scope, session_number, created_at DESC, id DESC);

-- The document of a memory. Its id is the number of its first snapshot; numbers are of the scope.
CREATE TABLE document (
  scope            uuid NOT NULL,
  id               bigint NOT NULL,
  latest           bigint NOT NULL,
  vault            text COLLATE "C" NOT NULL,
  memory           text COLLATE "C" NOT NULL,
  PRIMARY KEY (scope, id),
  UNIQUE (scope, vault, memory)
) WITH (fillfactor = 70);

-- Every text as it was put.
CREATE TABLE document_snapshot (
  scope            uuid NOT NULL,
  number           bigint NOT NULL,
  document_id      bigint NOT NULL,
  created_at       bigint NOT NULL,
  etag             bytea NOT NULL,
  context          text COLLATE "C" NOT NULL,
  actor            text COLLATE "C" NOT NULL,
  text             text COLLATE "C" NOT NULL,
  PRIMARY KEY (scope, number),
  UNIQUE (scope, document_id, context)
) PARTITION BY HASH (scope);
CREATE INDEX document_snapshot_recent ON document_snapshot (scope, document_id, number DESC);

-- Conversations with a fixed character; the conversation itself is a session.
CREATE TABLE persona (
  scope               uuid NOT NULL,
  id                  uuid NOT NULL,
  created_at          bigint NOT NULL,
  updated_at          bigint NOT NULL,
  last_interaction_at bigint NOT NULL,
  expires_at          bigint NOT NULL,
  deleted_at          bigint,
  backed_up_at        bigint,
  turns               bigint NOT NULL,
  truncations         bigint NOT NULL,
  version             bigint NOT NULL,
  max_tokens          bigint NOT NULL,
  max_history_tokens  bigint NOT NULL,
  expiry_days         bigint NOT NULL,
  memory              bigint NOT NULL,
  temperature         double precision NOT NULL,
  session             text COLLATE "C" NOT NULL,
  name                text COLLATE "C" NOT NULL,
  system_prompt       text COLLATE "C" NOT NULL,
  personality         text COLLATE "C" NOT NULL,
  -- One a line.
  tags                text COLLATE "C" NOT NULL,
  preset              text COLLATE "C",
  PRIMARY KEY (scope, id)
);
CREATE INDEX persona_by_session ON persona (scope, session);

CREATE TABLE preset (
  scope               uuid NOT NULL,
  id                  text COLLATE "C" NOT NULL,
  created_at          bigint NOT NULL,
  updated_at          bigint NOT NULL,
  version             bigint NOT NULL,
  max_tokens          bigint NOT NULL,
  max_history_tokens  bigint NOT NULL,
  expiry_days         bigint NOT NULL,
  is_active           bigint NOT NULL,
  temperature         double precision NOT NULL,
  name                text COLLATE "C" NOT NULL,
  description         text COLLATE "C" NOT NULL,
  system_prompt       text COLLATE "C" NOT NULL,
  default_personality text COLLATE "C" NOT NULL,
  metadata            text COLLATE "C",
  PRIMARY KEY (scope, id)
);

-- Of built-in presets as well.
CREATE TABLE preset_use (
  scope            uuid NOT NULL,
  preset           text COLLATE "C" NOT NULL,
  contexts         bigint NOT NULL,
  turns            bigint NOT NULL,
  truncations      bigint NOT NULL,
  PRIMARY KEY (scope, preset)
);

-- What a backup holds goes with the messages up to the sequence number `through`.
CREATE TABLE persona_backup (
  scope            uuid NOT NULL,
  id               uuid NOT NULL,
  persona          uuid NOT NULL,
  through          bigint NOT NULL,
  taken_at         bigint NOT NULL,
  session          text COLLATE "C" NOT NULL,
  reason           text COLLATE "C" NOT NULL,
  data             text COLLATE "C" NOT NULL,
  PRIMARY KEY (scope, id)
);
CREATE INDEX persona_backup_recent ON persona_backup (scope, persona, taken_at DESC, id DESC);
CREATE INDEX persona_backup_by_session ON persona_backup (scope, session, through);

CREATE TABLE message_tag (
  scope            uuid NOT NULL,
  message_id       uuid NOT NULL,
  session_number   bigint NOT NULL,
  -- One a line.
  tags             text COLLATE "C" NOT NULL,
  PRIMARY KEY (scope, message_id)
);
CREATE INDEX message_tag_by_session ON message_tag (scope, session_number);

-- What was answered to batches with an idempotency key: hashes of key and request, and the identities
-- that messages were given.
CREATE TABLE idempotency (
  scope            uuid NOT NULL,
  at               bigint NOT NULL,
  key              bytea NOT NULL,
  fingerprint      bytea NOT NULL,
  applied          bytea NOT NULL,
  PRIMARY KEY (scope, key)
) PARTITION BY HASH (scope);
CREATE INDEX idempotency_by_age ON idempotency (scope, at);

-- A job names its tenant, user and workspace, so that a worker learns whose rows it may touch.
CREATE TABLE job (
  scope            uuid NOT NULL,
  number           bigint NOT NULL GENERATED ALWAYS AS IDENTITY,
  id               uuid PRIMARY KEY,
  due_at           bigint NOT NULL,
  attempts         bigint NOT NULL DEFAULT 0,
  priority         smallint NOT NULL,
  state            text COLLATE "C" NOT NULL,
  kind             text COLLATE "C" NOT NULL,
  subject          text COLLATE "C" NOT NULL,
  error            text COLLATE "C"
) WITH (fillfactor = 70);
CREATE INDEX job_due ON job (kind, priority DESC, due_at, number) WHERE state IN ('queued', 'running');
CREATE UNIQUE INDEX job_once ON job (scope, kind, subject) WHERE state IN ('queued', 'running');
CREATE INDEX job_by_scope ON job (scope, number);

CREATE TABLE usage_day (
  scope            uuid NOT NULL,
  day              bigint NOT NULL,
  messages         bigint NOT NULL,
  message_tokens   bigint NOT NULL,
  contexts         bigint NOT NULL,
  context_tokens   bigint NOT NULL,
  baseline_tokens  bigint NOT NULL,
  PRIMARY KEY (scope, day)
) WITH (fillfactor = 50);

-- The lexical index. A new unit is one row of lex_tail; every few hundred, the tail of a scope is
-- folded into lex_block: one posting list for each term, in blocks. Terms are hashes.
CREATE TABLE lex_stats (
  scope            uuid NOT NULL,
  namespace        bigint NOT NULL,
  units            bigint NOT NULL,
  length           bigint NOT NULL,
  tail             bigint NOT NULL,
  PRIMARY KEY (scope, namespace)
) WITH (fillfactor = 50);

CREATE TABLE lex_tail (
  scope            uuid NOT NULL,
  namespace        bigint NOT NULL,
  key              bigint NOT NULL,
  length           bigint NOT NULL,
  terms            bigint[] NOT NULL,
  counts           integer[] NOT NULL,
  PRIMARY KEY (scope, namespace, key)
) PARTITION BY HASH (scope);

CREATE TABLE lex_block (
  scope            uuid NOT NULL,
  namespace        bigint NOT NULL,
  term             bigint NOT NULL,
  block            bigint NOT NULL,
  -- Postings of the blocks before this one: a term's frequency is told by its last block.
  before           bigint NOT NULL,
  postings         bigint NOT NULL,
  data             bytea NOT NULL,
  PRIMARY KEY (scope, namespace, term, block)
) PARTITION BY HASH (scope);

-- Vectors by scope, namespace and space (an embedding model). A table of one type holds the vectors of
-- all spaces: an index of a space is a partial one over the cast to its dimensions, made by the deferred
-- migrations.
CREATE TABLE vector_space (
  id               bigint PRIMARY KEY GENERATED ALWAYS AS IDENTITY,
  name             text COLLATE "C" NOT NULL,
  dimensions       bigint NOT NULL,
  UNIQUE (name, dimensions)
);

CREATE TABLE vector_state (
  scope            uuid NOT NULL,
  space_id         bigint NOT NULL REFERENCES vector_space (id),
  namespace        bigint NOT NULL,
  through          bigint NOT NULL,
  vectors          bigint NOT NULL,
  PRIMARY KEY (scope, space_id, namespace)
) WITH (fillfactor = 50);

CREATE TABLE embedding (
  scope            uuid NOT NULL,
  space_id         bigint NOT NULL,
  namespace        bigint NOT NULL,
  key              bigint NOT NULL,
  value            halfvec NOT NULL,
  PRIMARY KEY (scope, space_id, namespace, key)
) PARTITION BY HASH (scope);

-- What belongs to a tenant as a whole, by the key of the tenant. Whoever changes any of it holds the
-- tenant's row. `keys` counts its rows of api_key: that is how a worker learns whether there is any key at
-- all, and sees none.
CREATE TABLE tenant (
  key              uuid PRIMARY KEY,
  name             text COLLATE "C" NOT NULL,
  keys             bigint NOT NULL DEFAULT 0
);
CREATE INDEX tenant_with_keys ON tenant (key) WHERE keys > 0;

-- Of a key its secret's hash is kept. No user is any user, no workspace any workspace.
CREATE TABLE api_key (
  tenant           uuid NOT NULL,
  number           bigint NOT NULL GENERATED ALWAYS AS IDENTITY,
  id               bigint PRIMARY KEY,
  version          bigint NOT NULL,
  created_at       bigint NOT NULL,
  expires_at       bigint,
  revoked_at       bigint,
  last_used_at     bigint,
  previous_until   bigint,
  rate_most        bigint,
  rate_per         bigint,
  hash             bytea NOT NULL,
  previous_hash    bytea,
  user_id          text COLLATE "C",
  workspace        text COLLATE "C",
  permissions      text COLLATE "C" NOT NULL,
  name             text COLLATE "C" NOT NULL,
  UNIQUE (tenant, id)
) WITH (fillfactor = 70);
CREATE INDEX api_key_by_tenant ON api_key (tenant, number);
CREATE INDEX api_key_by_user ON api_key (tenant, user_id) WHERE user_id IS NOT NULL;

CREATE TABLE tenant_settings (
  tenant           uuid PRIMARY KEY,
  version          bigint NOT NULL,
  updated_at       bigint NOT NULL,
  token_budget     bigint,
  tier             text COLLATE "C",
  flags            text COLLATE "C" NOT NULL,
  models           text COLLATE "C" NOT NULL,
  client_config    text COLLATE "C" NOT NULL
);

CREATE TABLE share (
  tenant           uuid NOT NULL,
  number           bigint NOT NULL GENERATED ALWAYS AS IDENTITY,
  id               uuid NOT NULL,
  created_at       bigint NOT NULL,
  writable         bigint NOT NULL,
  user_id          text COLLATE "C" NOT NULL,
  workspace        text COLLATE "C" NOT NULL,
  session          text COLLATE "C" NOT NULL,
  PRIMARY KEY (tenant, id),
  UNIQUE (tenant, user_id, workspace, session)
);

CREATE TABLE share_member (
  tenant           uuid NOT NULL,
  share_id         uuid NOT NULL,
  user_id          text COLLATE "C" NOT NULL,
  PRIMARY KEY (tenant, user_id, share_id)
);
CREATE INDEX share_member_by_share ON share_member (tenant, share_id);

CREATE TABLE audit (
  tenant           uuid NOT NULL,
  number           bigint NOT NULL GENERATED ALWAYS AS IDENTITY,
  at               bigint NOT NULL,
  key_id           bigint,
  action           text COLLATE "C" NOT NULL,
  target           text COLLATE "C",
  outcome          text COLLATE "C" NOT NULL,
  PRIMARY KEY (tenant, number)
);

-- Rate limits: what was taken of a bucket and not refilled yet, by a hash of its key and rate. It is worth
-- no write to the log: after a crash every bucket is full.
CREATE UNLOGGED TABLE rate_bucket (
  key              uuid PRIMARY KEY,
  taken            bigint NOT NULL,
  at               bigint NOT NULL,
  full_at          bigint NOT NULL,
  -- What the last call was told: microseconds until it would be admitted, 0 if it was.
  wait             bigint NOT NULL
) WITH (fillfactor = 50);

-- Which entries of the ledger of erasures were applied here, and which ledger that is. The ledger itself
-- is in a schema of its own, which no dump of the store takes along, or on another server.
CREATE TABLE erasure_ledger (
  id               uuid PRIMARY KEY
);
CREATE TABLE erasure_applied (
  number           bigint PRIMARY KEY
);

-- Sixteen partitions of each large table, and the rule that a row shows to its own scope alone. A
-- partition by itself shows nothing to anyone.
DO $$
DECLARE
  parent text;
BEGIN
  FOREACH parent IN ARRAY ARRAY['message', 'fact', 'fact_source', 'entity', 'entity_source',
    'summary_line', 'document_snapshot', 'idempotency', 'lex_tail', 'lex_block', 'embedding']
  LOOP
    FOR part IN 0..15 LOOP
      EXECUTE format('CREATE TABLE %I PARTITION OF %I FOR VALUES WITH (MODULUS 16, REMAINDER %s)',
        parent || '_' || lpad(part::text, 2, '0'), parent, part);
      EXECUTE format('ALTER TABLE %I ENABLE ROW LEVEL SECURITY',
        parent || '_' || lpad(part::text, 2, '0'));
      EXECUTE format('ALTER TABLE %I FORCE ROW LEVEL SECURITY',
        parent || '_' || lpad(part::text, 2, '0'));
    END LOOP;
  END LOOP;
  FOREACH parent IN ARRAY ARRAY['session', 'message', 'fact', 'fact_source', 'rejection',
    'entity', 'entity_source', 'summary', 'summary_line', 'profile', 'file_ref', 'document',
    'document_snapshot', 'persona', 'preset', 'preset_use', 'persona_backup', 'message_tag', 'idempotency',
    'usage_day', 'lex_stats', 'lex_tail', 'lex_block', 'vector_state', 'embedding']
  LOOP
    EXECUTE format('ALTER TABLE %I ENABLE ROW LEVEL SECURITY', parent);
    EXECUTE format('ALTER TABLE %I FORCE ROW LEVEL SECURITY', parent);
    EXECUTE format('CREATE POLICY own_scope ON %I USING (scope = throughline_scope())', parent);
  END LOOP;
  FOREACH parent IN ARRAY ARRAY['api_key', 'tenant_settings', 'share', 'share_member', 'audit']
  LOOP
    EXECUTE format('ALTER TABLE %I ENABLE ROW LEVEL SECURITY', parent);
    EXECUTE format('ALTER TABLE %I FORCE ROW LEVEL SECURITY', parent);
    EXECUTE format('CREATE POLICY own_tenant ON %I USING (tenant = throughline_tenant())', parent);
  END LOOP;
END $$;

-- Who presents a key does not say whose it is: the one row with its id shows, and the name of its tenant.
-- Nobody can list keys that way, for 2^64 ids would have to be asked for one by one.
CREATE POLICY presented ON api_key FOR SELECT USING (id = throughline_key());

ALTER TABLE tenant ENABLE ROW LEVEL SECURITY;
ALTER TABLE tenant FORCE ROW LEVEL SECURITY;
CREATE POLICY own_tenant ON tenant USING (key = throughline_tenant());
CREATE POLICY of_presented ON tenant FOR SELECT
  USING (key = (SELECT k.tenant FROM api_key k WHERE k.id = throughline_key()));
CREATE POLICY worker_reads ON tenant FOR SELECT USING (throughline_worker());

ALTER TABLE scope ENABLE ROW LEVEL SECURITY;
ALTER TABLE scope FORCE ROW LEVEL SECURITY;
CREATE POLICY own_scope ON scope USING (key = throughline_scope());
CREATE POLICY worker_reads ON scope FOR SELECT USING (throughline_worker());

-- How many vectors a scope has tells where an index is worth its while.
CREATE POLICY worker_reads ON vector_state FOR SELECT USING (throughline_worker());

ALTER TABLE job ENABLE ROW LEVEL SECURITY;
ALTER TABLE job FORCE ROW LEVEL SECURITY;
CREATE POLICY own_scope ON job USING (scope = throughline_scope());
CREATE POLICY worker_claims ON job FOR SELECT USING (throughline_worker());
CREATE POLICY worker_leases ON job FOR UPDATE USING (throughline_worker());
