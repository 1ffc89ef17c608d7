-- Ids are 16-byte UUIDs, times are microseconds since the Unix epoch (UTC). Every row that belongs
-- to a scope is reached through an index that starts with the scope, so that the cost of a query
-- depends on the rows of its scope.

-- "thru": marks the file as ours, in the same transaction.
PRAGMA application_id = 0x74687275;

CREATE TABLE scope (
  id             INTEGER PRIMARY KEY,
  tenant         TEXT NOT NULL,
  user           TEXT NOT NULL,
  workspace      TEXT NOT NULL DEFAULT '',
  last_seq       INTEGER NOT NULL DEFAULT 0,
  sessions       INTEGER NOT NULL DEFAULT 0,
  facts          INTEGER NOT NULL DEFAULT 0,
  documents      INTEGER NOT NULL DEFAULT 0,
  messages       INTEGER NOT NULL DEFAULT 0,
  tokens         INTEGER NOT NULL DEFAULT 0,
  -- Counted up by every erasure. Begins at random, so that a scope that was dropped and begins anew is not
  -- taken for the one that it was.
  erasures       INTEGER NOT NULL DEFAULT (abs(random() / 2)),
  UNIQUE (tenant, user, workspace)
) STRICT;

CREATE TABLE session (
  scope_id       INTEGER NOT NULL REFERENCES scope(id),
  number         INTEGER NOT NULL,
  id             TEXT NOT NULL,
  created_at     INTEGER NOT NULL,
  last_at        INTEGER NOT NULL,
  messages       INTEGER NOT NULL,
  tokens         INTEGER NOT NULL,
  summarized     INTEGER NOT NULL,
  next_position  INTEGER NOT NULL,
  version        INTEGER NOT NULL,
  PRIMARY KEY (scope_id, number),
  UNIQUE (scope_id, id)
) STRICT, WITHOUT ROWID;

CREATE TABLE message (
  rowid          INTEGER PRIMARY KEY,
  scope_id       INTEGER NOT NULL,
  session_number INTEGER NOT NULL,
  position       INTEGER NOT NULL,
  id             BLOB NOT NULL UNIQUE,
  seq            INTEGER NOT NULL,
  role           TEXT NOT NULL,
  name           TEXT,
  content        TEXT NOT NULL,
  content_hash   BLOB NOT NULL,
  external_id    TEXT,
  created_at     INTEGER NOT NULL,
  tokens         INTEGER NOT NULL,
  parts          TEXT,
  attachments    TEXT,
  units          INTEGER NOT NULL,
  -- Bytes and tokens of each passage, of messages that have more than one.
  cuts           BLOB NOT NULL,
  UNIQUE (scope_id, session_number, position)
) STRICT;

-- The order of commits: what vector indexes read to become complete.
CREATE UNIQUE INDEX message_by_seq ON message (scope_id, seq);
CREATE UNIQUE INDEX message_by_external_id
  ON message (scope_id, session_number, external_id) WHERE external_id IS NOT NULL;

CREATE TABLE fact (
  scope_id       INTEGER NOT NULL,
  number         INTEGER NOT NULL,
  id             BLOB NOT NULL,
  session_number INTEGER NOT NULL,
  kind           TEXT NOT NULL,
  text           TEXT NOT NULL,
  subject        TEXT,
  attribute      TEXT,
  value          TEXT,
  tags           TEXT NOT NULL,
  slot           INTEGER,
  statement      INTEGER NOT NULL,
  weight         REAL NOT NULL,
  superseded_by  BLOB,
  observed_at    INTEGER NOT NULL,
  -- Stated after its value was rejected: it never holds.
  rejected       INTEGER NOT NULL,
  PRIMARY KEY (scope_id, number)
) STRICT, WITHOUT ROWID;

-- At most one active fact of a slot, and of a statement outside any slot.
CREATE UNIQUE INDEX fact_by_slot
  ON fact (scope_id, slot) WHERE slot IS NOT NULL AND superseded_by IS NULL;
CREATE UNIQUE INDEX fact_by_statement
  ON fact (scope_id, statement) WHERE slot IS NULL AND superseded_by IS NULL;
-- What every context of the user holds, and what does not hold any more, the newest change first.
CREATE INDEX fact_standing ON fact (scope_id, observed_at, number)
  WHERE kind IN ('instruction', 'preference') AND superseded_by IS NULL;
CREATE INDEX fact_superseded ON fact (scope_id, superseded_by, number)
  WHERE superseded_by IS NOT NULL;

CREATE UNIQUE INDEX fact_by_id ON fact (scope_id, id);

-- The source of a fact that was told directly bears the fact's own id, and the number of the last message
-- then. Such a fact has no session: its number is 0.
CREATE TABLE fact_source (
  scope_id       INTEGER NOT NULL,
  fact_number    INTEGER NOT NULL,
  message_seq    INTEGER NOT NULL,
  message_id     BLOB NOT NULL,
  PRIMARY KEY (scope_id, fact_number, message_seq)
) STRICT, WITHOUT ROWID;
CREATE INDEX fact_source_by_message ON fact_source (message_id);

-- Keyed hashes of values that were rejected: they tell nothing of them.
CREATE TABLE rejection (
  scope_id       INTEGER NOT NULL,
  key            BLOB NOT NULL,
  PRIMARY KEY (scope_id, key)
) STRICT, WITHOUT ROWID;

CREATE TABLE entity (
  rowid          INTEGER PRIMARY KEY,
  scope_id       INTEGER NOT NULL,
  session_number INTEGER NOT NULL,
  kind           TEXT NOT NULL,
  value          TEXT NOT NULL,
  id             BLOB NOT NULL,
  last_at        INTEGER NOT NULL,
  UNIQUE (scope_id, session_number, kind, value)
) STRICT;
CREATE INDEX entity_recent ON entity (scope_id, session_number, last_at DESC, kind, value);

CREATE TABLE entity_source (
  entity_rowid   INTEGER NOT NULL REFERENCES entity(rowid),
  message_seq    INTEGER NOT NULL,
  message_id     BLOB NOT NULL,
  PRIMARY KEY (entity_rowid, message_seq)
) STRICT, WITHOUT ROWID;
CREATE INDEX entity_source_by_message ON entity_source (message_id);

CREATE TABLE summary (
  scope_id       INTEGER NOT NULL,
  session_number INTEGER NOT NULL,
  version        INTEGER NOT NULL,
  id             BLOB NOT NULL,
  previous       BLOB,
  covered        INTEGER NOT NULL,
  to_position    INTEGER NOT NULL,
  from_at        INTEGER NOT NULL,
  to_at          INTEGER NOT NULL,
  tokens         INTEGER NOT NULL,
  PRIMARY KEY (scope_id, session_number, version)
) STRICT, WITHOUT ROWID;

CREATE TABLE summary_line (
  scope_id       INTEGER NOT NULL,
  session_number INTEGER NOT NULL,
  version        INTEGER NOT NULL,
  line           INTEGER NOT NULL,
  message_id     BLOB NOT NULL,
  text           TEXT NOT NULL,
  PRIMARY KEY (scope_id, session_number, version, line)
) STRICT, WITHOUT ROWID;
CREATE INDEX summary_line_by_message ON summary_line (message_id);

CREATE TABLE profile (
  scope_id       INTEGER PRIMARY KEY REFERENCES scope(id),
  rules          TEXT NOT NULL,
  card           TEXT NOT NULL,
  version        INTEGER NOT NULL,
  updated_at     INTEGER NOT NULL
) STRICT;

-- What sessions refer to; the files themselves are kept elsewhere.
CREATE TABLE file_ref (
  scope_id       INTEGER NOT NULL,
  id             BLOB NOT NULL,
  session_number INTEGER NOT NULL,
  created_at     INTEGER NOT NULL,
  message_id     BLOB,
  kind           TEXT NOT NULL,
  title          TEXT NOT NULL,
  reference      TEXT,
  metadata       TEXT,
  PRIMARY KEY (scope_id, id)
) STRICT, WITHOUT ROWID;
CREATE INDEX file_ref_recent ON file_ref (scope_id, session_number, created_at DESC, id DESC);
CREATE INDEX file_ref_by_message ON file_ref (scope_id, message_id) WHERE message_id IS NOT NULL;

-- The document of a memory. Its id is the number of its first snapshot; numbers are of the scope.
CREATE TABLE document (
  scope_id       INTEGER NOT NULL,
  id             INTEGER NOT NULL,
  latest         INTEGER NOT NULL,
  vault          TEXT NOT NULL,
  memory         TEXT NOT NULL,
  PRIMARY KEY (scope_id, id),
  UNIQUE (scope_id, vault, memory)
) STRICT, WITHOUT ROWID;

-- Every text as it was put.
CREATE TABLE document_snapshot (
  rowid          INTEGER PRIMARY KEY,
  scope_id       INTEGER NOT NULL,
  number         INTEGER NOT NULL,
  document_id    INTEGER NOT NULL,
  created_at     INTEGER NOT NULL,
  etag           BLOB NOT NULL,
  context        TEXT NOT NULL,
  actor          TEXT NOT NULL,
  text           TEXT NOT NULL,
  UNIQUE (scope_id, number),
  UNIQUE (scope_id, document_id, context)
) STRICT;
CREATE INDEX document_snapshot_recent ON document_snapshot (scope_id, document_id, number DESC);

-- Conversations with a fixed character; the conversation itself is a session.
CREATE TABLE persona (
  scope_id            INTEGER NOT NULL,
  id                  BLOB NOT NULL,
  session             TEXT NOT NULL,
  name                TEXT NOT NULL,
  system_prompt       TEXT NOT NULL,
  personality         TEXT NOT NULL,
  temperature         REAL NOT NULL,
  max_tokens          INTEGER NOT NULL,
  max_history_tokens  INTEGER NOT NULL,
  expiry_days         INTEGER NOT NULL,
  memory              INTEGER NOT NULL,
  -- One a line.
  tags                TEXT NOT NULL,
  preset              TEXT,
  created_at          INTEGER NOT NULL,
  updated_at          INTEGER NOT NULL,
  last_interaction_at INTEGER NOT NULL,
  expires_at          INTEGER NOT NULL,
  deleted_at          INTEGER,
  backed_up_at        INTEGER,
  turns               INTEGER NOT NULL,
  truncations         INTEGER NOT NULL,
  version             INTEGER NOT NULL,
  PRIMARY KEY (scope_id, id)
) STRICT, WITHOUT ROWID;
CREATE INDEX persona_by_session ON persona (scope_id, session);

CREATE TABLE preset (
  scope_id            INTEGER NOT NULL,
  id                  TEXT NOT NULL,
  name                TEXT NOT NULL,
  description         TEXT NOT NULL,
  system_prompt       TEXT NOT NULL,
  default_personality TEXT NOT NULL,
  temperature         REAL NOT NULL,
  max_tokens          INTEGER NOT NULL,
  max_history_tokens  INTEGER NOT NULL,
  expiry_days         INTEGER NOT NULL,
  created_at          INTEGER NOT NULL,
  updated_at          INTEGER NOT NULL,
  is_active           INTEGER NOT NULL,
  metadata            TEXT,
  version             INTEGER NOT NULL,
  PRIMARY KEY (scope_id, id)
) STRICT, WITHOUT ROWID;

-- Of built-in presets as well.
CREATE TABLE preset_use (
  scope_id       INTEGER NOT NULL,
  preset         TEXT NOT NULL,
  contexts       INTEGER NOT NULL,
  turns          INTEGER NOT NULL,
  truncations    INTEGER NOT NULL,
  PRIMARY KEY (scope_id, preset)
) STRICT, WITHOUT ROWID;

-- What a backup holds goes with the messages up to the sequence number `through`.
CREATE TABLE persona_backup (
  scope_id       INTEGER NOT NULL,
  id             BLOB NOT NULL,
  persona        BLOB NOT NULL,
  session        TEXT NOT NULL,
  through        INTEGER NOT NULL,
  taken_at       INTEGER NOT NULL,
  reason         TEXT NOT NULL,
  data           TEXT NOT NULL,
  PRIMARY KEY (scope_id, id)
) STRICT;
CREATE INDEX persona_backup_recent ON persona_backup (scope_id, persona, taken_at DESC, id DESC);
CREATE INDEX persona_backup_by_session ON persona_backup (scope_id, session, through);

CREATE TABLE message_tag (
  scope_id       INTEGER NOT NULL,
  message_id     BLOB NOT NULL,
  session_number INTEGER NOT NULL,
  -- One a line.
  tags           TEXT NOT NULL,
  PRIMARY KEY (scope_id, message_id)
) STRICT, WITHOUT ROWID;
CREATE INDEX message_tag_by_session ON message_tag (scope_id, session_number);

-- What was answered to batches with an idempotency key: hashes of key and request, and the identities
-- that messages were given.
CREATE TABLE idempotency (
  scope_id       INTEGER NOT NULL,
  key            BLOB NOT NULL,
  fingerprint    BLOB NOT NULL,
  at             INTEGER NOT NULL,
  applied        BLOB NOT NULL,
  PRIMARY KEY (scope_id, key)
) STRICT, WITHOUT ROWID;
CREATE INDEX idempotency_by_age ON idempotency (scope_id, at);

CREATE TABLE job (
  rowid          INTEGER PRIMARY KEY,
  scope_id       INTEGER NOT NULL REFERENCES scope(id),
  id             BLOB NOT NULL UNIQUE,
  kind           TEXT NOT NULL,
  subject        TEXT NOT NULL,
  priority       INTEGER NOT NULL,
  state          TEXT NOT NULL,
  attempts       INTEGER NOT NULL DEFAULT 0,
  due_at         INTEGER NOT NULL,
  error          TEXT
) STRICT;
CREATE INDEX job_due ON job (kind, priority DESC, due_at) WHERE state IN ('queued', 'running');
CREATE UNIQUE INDEX job_once ON job (scope_id, kind, subject) WHERE state IN ('queued', 'running');
CREATE INDEX job_by_scope ON job (scope_id, rowid);

CREATE TABLE usage_day (
  scope_id        INTEGER NOT NULL,
  day             INTEGER NOT NULL,
  messages        INTEGER NOT NULL,
  message_tokens  INTEGER NOT NULL,
  contexts        INTEGER NOT NULL,
  context_tokens  INTEGER NOT NULL,
  baseline_tokens INTEGER NOT NULL,
  PRIMARY KEY (scope_id, day)
) STRICT, WITHOUT ROWID;

-- The lexical index. A new unit is one row of lex_tail; every few hundred, the tail of a scope is
-- folded into lex_block: one posting list for each term, in blocks. Terms are hashes.
CREATE TABLE lex_stats (
  scope_id       INTEGER NOT NULL,
  namespace      INTEGER NOT NULL,
  units          INTEGER NOT NULL,
  length         INTEGER NOT NULL,
  tail           INTEGER NOT NULL,
  PRIMARY KEY (scope_id, namespace)
) STRICT, WITHOUT ROWID;

CREATE TABLE lex_tail (
  scope_id       INTEGER NOT NULL,
  namespace      INTEGER NOT NULL,
  key            INTEGER NOT NULL,
  length         INTEGER NOT NULL,
  terms          BLOB NOT NULL,
  PRIMARY KEY (scope_id, namespace, key)
) STRICT, WITHOUT ROWID;

CREATE TABLE lex_block (
  scope_id       INTEGER NOT NULL,
  namespace      INTEGER NOT NULL,
  term           INTEGER NOT NULL,
  block          INTEGER NOT NULL,
  -- Postings of the blocks before this one: a term's frequency is told by its last block.
  before         INTEGER NOT NULL,
  postings       INTEGER NOT NULL,
  data           BLOB NOT NULL,
  PRIMARY KEY (scope_id, namespace, term, block)
) STRICT, WITHOUT ROWID;

-- Vectors by scope, namespace and space (an embedding model), as bytes of one sign and seven bits. A
-- new vector is one row of vector_tail; every few hundred, the tail is folded into a block: keys and
-- signs in one row, the vectors themselves in chunks beside it. A block never changes: where a key
-- is taken out, another block takes its place.
CREATE TABLE vector_space (
  id             INTEGER PRIMARY KEY,
  name           TEXT NOT NULL,
  dimensions     INTEGER NOT NULL,
  UNIQUE (name, dimensions)
) STRICT;

CREATE TABLE vector_state (
  scope_id       INTEGER NOT NULL,
  space_id       INTEGER NOT NULL REFERENCES vector_space(id),
  namespace      INTEGER NOT NULL,
  through        INTEGER NOT NULL,
  tail           INTEGER NOT NULL,
  blocked        INTEGER NOT NULL,
  PRIMARY KEY (scope_id, space_id, namespace)
) STRICT, WITHOUT ROWID;

CREATE TABLE vector_tail (
  scope_id       INTEGER NOT NULL,
  space_id       INTEGER NOT NULL,
  namespace      INTEGER NOT NULL,
  key            INTEGER NOT NULL,
  vector         BLOB NOT NULL,
  PRIMARY KEY (scope_id, space_id, namespace, key)
) STRICT, WITHOUT ROWID;

-- Ids are never used again, so that a block may be kept in memory by its id.
CREATE TABLE vector_block (
  id             INTEGER PRIMARY KEY AUTOINCREMENT,
  scope_id       INTEGER NOT NULL,
  space_id       INTEGER NOT NULL,
  namespace      INTEGER NOT NULL,
  first_key      INTEGER NOT NULL,
  last_key       INTEGER NOT NULL,
  keys           BLOB NOT NULL,
  signs          BLOB NOT NULL
) STRICT;
CREATE INDEX vector_block_by_scope
  ON vector_block (scope_id, space_id, namespace, first_key, last_key);

-- Chunk n of a block has the id 64 × block + n: rows of this size lie in their page only in a table
-- with row ids.
CREATE TABLE vector_chunk (
  id             INTEGER PRIMARY KEY,
  vectors        BLOB NOT NULL
) STRICT;

-- What belongs to a tenant as a whole. Of a key its secret's hash is kept. Numbers are never used again,
-- so that a cursor stays where it is.
CREATE TABLE api_key (
  number         INTEGER PRIMARY KEY AUTOINCREMENT,
  id             INTEGER NOT NULL UNIQUE,
  tenant         TEXT NOT NULL,
  version        INTEGER NOT NULL,
  created_at     INTEGER NOT NULL,
  expires_at     INTEGER,
  revoked_at     INTEGER,
  last_used_at   INTEGER,
  previous_until INTEGER,
  rate_most      INTEGER,
  rate_per       INTEGER,
  hash           BLOB NOT NULL,
  previous_hash  BLOB,
  -- NULL is any user, and any workspace.
  user_id        TEXT,
  workspace      TEXT,
  permissions    TEXT NOT NULL,
  name           TEXT NOT NULL
) STRICT;
CREATE INDEX api_key_by_tenant ON api_key (tenant, number);
CREATE INDEX api_key_by_user ON api_key (tenant, user_id) WHERE user_id IS NOT NULL;

CREATE TABLE tenant_settings (
  tenant         TEXT PRIMARY KEY,
  version        INTEGER NOT NULL,
  updated_at     INTEGER NOT NULL,
  token_budget   INTEGER,
  tier           TEXT,
  flags          TEXT NOT NULL,
  models         TEXT NOT NULL,
  client_config  TEXT NOT NULL
) STRICT, WITHOUT ROWID;

CREATE TABLE share (
  number         INTEGER PRIMARY KEY AUTOINCREMENT,
  id             BLOB NOT NULL UNIQUE,
  tenant         TEXT NOT NULL,
  created_at     INTEGER NOT NULL,
  writable       INTEGER NOT NULL,
  user_id        TEXT NOT NULL,
  workspace      TEXT NOT NULL,
  session        TEXT NOT NULL,
  UNIQUE (tenant, user_id, workspace, session)
) STRICT;

CREATE TABLE share_member (
  tenant         TEXT NOT NULL,
  user_id        TEXT NOT NULL,
  share_id       BLOB NOT NULL,
  PRIMARY KEY (tenant, user_id, share_id)
) STRICT, WITHOUT ROWID;
CREATE INDEX share_member_by_share ON share_member (share_id);

CREATE TABLE audit (
  number         INTEGER PRIMARY KEY,
  tenant         TEXT NOT NULL,
  at             INTEGER NOT NULL,
  key_id         INTEGER,
  action         TEXT NOT NULL,
  target         TEXT,
  outcome        TEXT NOT NULL
) STRICT;
CREATE INDEX audit_by_tenant ON audit (tenant, number);

-- Which entries of the ledger of erasures were applied here, and which ledger that is. The ledger itself
-- lies beside the store and is in no backup of it.
CREATE TABLE erasure_ledger (
  id             BLOB NOT NULL
) STRICT;

CREATE TABLE erasure_applied (
  number         INTEGER PRIMARY KEY
) STRICT;
