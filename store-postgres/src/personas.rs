//! Personas, presets, backups, tags of messages and ratings of answers.

use async_trait::async_trait;
use sqlx::Row;
use sqlx::postgres::PgRow;
use throughline_core::ids::{BackupId, MessageId, PersonaId, PresetId, SessionId, UserId};
use throughline_core::persona::{
    Backup, BackupHead, Persona, PersonaSession, Preset, PresetUse, Rating, RatingCount, Settings,
    parse_tags, tags_text,
};
use throughline_core::ports::PersonaRepo;
use throughline_core::session::Role;
use throughline_core::time::Timestamp;
use throughline_core::{Result, Scope};
use uuid::Uuid;

use crate::connection::mapped;
use crate::records::{at, bounded, number, parsed, stored_wrongly};
use crate::sessions::session_number;
use crate::store::PostgresStore;
use crate::timed::Timed;

/// The columns of a persona, in the order in which [`read`] reads them.
macro_rules! columns {
    () => {
        "id, session, name, system_prompt, personality, temperature, max_tokens, max_history_tokens,
         expiry_days, memory, tags, preset, created_at, updated_at, last_interaction_at, expires_at,
         deleted_at, backed_up_at, turns, truncations, version, preset_version"
    };
}

/// The columns of a preset, in the order in which [`read_preset`] reads them.
macro_rules! preset_columns {
    () => {
        "id, name, description, system_prompt, default_personality, temperature, max_tokens,
         max_history_tokens, expiry_days, created_at, updated_at, is_active, metadata, version"
    };
}

/// The columns of a backup, in the order in which [`read_head`] reads them.
macro_rules! head_columns {
    () => {
        "id, persona, session, through, taken_at, reason, octet_length(data)::bigint"
    };
}

pub(crate) async fn put(
    connection: &mut Timed,
    scope: Uuid,
    persona: &Persona,
) -> sqlx::Result<()> {
    sqlx::query(concat!(
        "INSERT INTO persona (scope, ",
        columns!(),
        ") VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11, $12, $13, $14, $15, $16, $17, $18,
           $19, $20, $21, $22, $23)
         ON CONFLICT (scope, id) DO UPDATE SET session = $3, name = $4, system_prompt = $5,
           personality = $6, temperature = $7, max_tokens = $8, max_history_tokens = $9,
           expiry_days = $10, memory = $11, tags = $12, preset = $13, created_at = $14,
           updated_at = $15, last_interaction_at = $16, expires_at = $17, deleted_at = $18,
           backed_up_at = $19, turns = $20, truncations = $21, version = $22, preset_version = $23"
    ))
    .bind(scope)
    .bind(persona.id.as_uuid())
    .bind(persona.session.as_str())
    .bind(&persona.name)
    .bind(&persona.system_prompt)
    .bind(&persona.personality)
    .bind(persona.settings.temperature)
    .bind(i64::from(persona.settings.max_tokens))
    .bind(i64::from(persona.settings.max_history_tokens))
    .bind(i64::from(persona.settings.expiry_days))
    .bind(i64::from(persona.memory))
    .bind(tags_text(&persona.tags))
    .bind(persona.preset.as_ref().map(PresetId::as_str))
    .bind(persona.created_at.as_micros())
    .bind(persona.updated_at.as_micros())
    .bind(persona.last_interaction_at.as_micros())
    .bind(persona.expires_at.as_micros())
    .bind(persona.deleted_at.map(Timestamp::as_micros))
    .bind(persona.backed_up_at.map(Timestamp::as_micros))
    .bind(bounded(persona.turns))
    .bind(bounded(persona.truncations))
    .bind(bounded(persona.version))
    .bind(persona.preset_version.map(bounded))
    .execute(connection)
    .await
    .map(|_| ())
}

fn read(row: &PgRow) -> sqlx::Result<Persona> {
    let instant = |column: usize| row.try_get(column).map(at);
    let may_be = |column: usize| row.try_get::<Option<i64>, _>(column).map(|time| time.map(at));
    Ok(Persona {
        id: PersonaId::from_uuid(row.try_get(0)?),
        session: session_id(row, 1)?,
        name: row.try_get(2)?,
        system_prompt: row.try_get(3)?,
        personality: row.try_get(4)?,
        settings: read_settings(row, 5)?,
        memory: row.try_get::<i64, _>(9)? != 0,
        tags: parse_tags(row.try_get(10)?),
        preset: row.try_get::<Option<&str>, _>(11)?.map(parsed).transpose()?,
        created_at: instant(12)?,
        updated_at: instant(13)?,
        last_interaction_at: instant(14)?,
        expires_at: instant(15)?,
        deleted_at: may_be(16)?,
        backed_up_at: may_be(17)?,
        turns: number(row.try_get(18)?)?,
        truncations: number(row.try_get(19)?)?,
        version: number(row.try_get(20)?)?,
        preset_version: optional(row, 21)?,
    })
}

fn optional(row: &PgRow, at: usize) -> sqlx::Result<Option<u64>> {
    row.try_get::<Option<i64>, _>(at)?.map(number).transpose()
}

fn read_settings(row: &PgRow, at: usize) -> sqlx::Result<Settings> {
    Ok(Settings {
        temperature: row.try_get(at)?,
        max_tokens: number(row.try_get(at + 1)?)?,
        max_history_tokens: number(row.try_get(at + 2)?)?,
        expiry_days: number(row.try_get(at + 3)?)?,
    })
}

fn session_id(row: &PgRow, at: usize) -> sqlx::Result<SessionId> {
    SessionId::new(row.try_get::<String, _>(at)?).map_err(stored_wrongly)
}

pub(crate) async fn version(
    connection: &mut Timed,
    scope: Uuid,
    id: PersonaId,
) -> sqlx::Result<Option<u64>> {
    let found = sqlx::query_scalar("SELECT version FROM persona WHERE scope = $1 AND id = $2")
        .bind(scope)
        .bind(id.as_uuid())
        .fetch_optional(connection)
        .await?;
    found.map(number).transpose()
}

pub(crate) async fn put_preset(
    connection: &mut Timed,
    scope: Uuid,
    preset: &Preset,
) -> sqlx::Result<()> {
    sqlx::query(concat!(
        "INSERT INTO preset (scope, ",
        preset_columns!(),
        ") VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11, $12, $13, $14, $15)
         ON CONFLICT (scope, id) DO UPDATE SET name = $3, description = $4, system_prompt = $5,
           default_personality = $6, temperature = $7, max_tokens = $8, max_history_tokens = $9,
           expiry_days = $10, created_at = $11, updated_at = $12, is_active = $13, metadata = $14,
           version = $15"
    ))
    .bind(scope)
    .bind(preset.id.as_str())
    .bind(&preset.name)
    .bind(&preset.description)
    .bind(&preset.system_prompt)
    .bind(&preset.default_personality)
    .bind(preset.settings.temperature)
    .bind(i64::from(preset.settings.max_tokens))
    .bind(i64::from(preset.settings.max_history_tokens))
    .bind(i64::from(preset.settings.expiry_days))
    .bind(preset.created_at.as_micros())
    .bind(preset.updated_at.as_micros())
    .bind(i64::from(preset.is_active))
    .bind(&preset.metadata)
    .bind(bounded(preset.version))
    .execute(connection)
    .await
    .map(|_| ())
}

fn read_preset(row: &PgRow) -> sqlx::Result<Preset> {
    Ok(Preset {
        id: parsed(row.try_get(0)?)?,
        name: row.try_get(1)?,
        description: row.try_get(2)?,
        system_prompt: row.try_get(3)?,
        default_personality: row.try_get(4)?,
        settings: read_settings(row, 5)?,
        created_at: at(row.try_get(9)?),
        updated_at: at(row.try_get(10)?),
        is_active: row.try_get::<i64, _>(11)? != 0,
        metadata: row.try_get(12)?,
        version: number(row.try_get(13)?)?,
    })
}

pub(crate) async fn preset_version(
    connection: &mut Timed,
    scope: Uuid,
    id: &PresetId,
) -> sqlx::Result<Option<u64>> {
    let found = sqlx::query_scalar("SELECT version FROM preset WHERE scope = $1 AND id = $2")
        .bind(scope)
        .bind(id.as_str())
        .fetch_optional(connection)
        .await?;
    found.map(number).transpose()
}

pub(crate) async fn remove_preset(
    connection: &mut Timed,
    scope: Uuid,
    id: &PresetId,
) -> sqlx::Result<()> {
    sqlx::query("DELETE FROM preset WHERE scope = $1 AND id = $2")
        .bind(scope)
        .bind(id.as_str())
        .execute(connection)
        .await
        .map(|_| ())
}

pub(crate) async fn count_preset(
    connection: &mut Timed,
    scope: Uuid,
    id: &PresetId,
    used: &PresetUse,
) -> sqlx::Result<()> {
    sqlx::query(
        "INSERT INTO preset_use AS held (scope, preset, contexts, turns, truncations)
         VALUES ($1, $2, $3, $4, $5)
         ON CONFLICT (scope, preset) DO UPDATE SET contexts = held.contexts + $3,
           turns = held.turns + $4, truncations = held.truncations + $5",
    )
    .bind(scope)
    .bind(id.as_str())
    .bind(bounded(used.contexts))
    .bind(bounded(used.turns))
    .bind(bounded(used.truncations))
    .execute(connection)
    .await
    .map(|_| ())
}

pub(crate) async fn put_backup(
    connection: &mut Timed,
    scope: Uuid,
    Backup { head, data }: &Backup,
    keep: u32,
) -> sqlx::Result<()> {
    sqlx::query(
        "INSERT INTO persona_backup (scope, id, persona, session, through, taken_at, reason, data)
         VALUES ($1, $2, $3, $4, $5, $6, $7, $8)
         ON CONFLICT (scope, id) DO UPDATE SET persona = $3, session = $4, through = $5,
           taken_at = $6, reason = $7, data = $8",
    )
    .bind(scope)
    .bind(head.id.as_uuid())
    .bind(head.persona.as_uuid())
    .bind(head.session.as_str())
    .bind(bounded(head.through))
    .bind(head.taken_at.as_micros())
    .bind(head.reason.as_str())
    .bind(data)
    .execute(&mut *connection)
    .await?;
    sqlx::query(
        "DELETE FROM persona_backup WHERE scope = $1 AND id IN (SELECT id FROM persona_backup
           WHERE scope = $1 AND persona = $2 AND reason = $3
           ORDER BY taken_at DESC, id DESC OFFSET $4)",
    )
    .bind(scope)
    .bind(head.persona.as_uuid())
    .bind(head.reason.as_str())
    .bind(i64::from(keep))
    .execute(connection)
    .await
    .map(|_| ())
}

fn read_head(row: &PgRow) -> sqlx::Result<BackupHead> {
    Ok(BackupHead {
        id: BackupId::from_uuid(row.try_get(0)?),
        persona: PersonaId::from_uuid(row.try_get(1)?),
        session: session_id(row, 2)?,
        through: number(row.try_get(3)?)?,
        taken_at: at(row.try_get(4)?),
        reason: parsed(row.try_get(5)?)?,
        bytes: number(row.try_get(6)?)?,
    })
}

/// Whether a message, of a role if one is given, is stored as one of a session.
pub(crate) async fn holds(
    connection: &mut Timed,
    scope: Uuid,
    (session_number, message): (u32, MessageId),
    role: Option<Role>,
) -> sqlx::Result<bool> {
    sqlx::query_scalar(
        "SELECT EXISTS (SELECT 1 FROM message WHERE scope = $1 AND session_number = $2 AND id = $3
           AND ($4::text IS NULL OR role = $4))",
    )
    .bind(scope)
    .bind(i64::from(session_number))
    .bind(message.as_uuid())
    .bind(role.map(Role::as_str))
    .fetch_one(connection)
    .await
}

/// Gives a message its tags.
pub(crate) async fn tag(
    connection: &mut Timed,
    scope: Uuid,
    (session_number, message): (u32, MessageId),
    tags: &[String],
) -> sqlx::Result<()> {
    if tags.is_empty() {
        return forget_tags(connection, scope, &[message.as_uuid()]).await;
    }
    sqlx::query(
        "INSERT INTO message_tag (scope, message_id, session_number, tags) VALUES ($1, $2, $3, $4)
         ON CONFLICT (scope, message_id) DO UPDATE SET session_number = $3, tags = $4",
    )
    .bind(scope)
    .bind(message.as_uuid())
    .bind(i64::from(session_number))
    .bind(tags_text(tags))
    .execute(connection)
    .await
    .map(|_| ())
}

async fn forget_tags(connection: &mut Timed, scope: Uuid, messages: &[Uuid]) -> sqlx::Result<()> {
    sqlx::query("DELETE FROM message_tag WHERE scope = $1 AND message_id = ANY($2)")
        .bind(scope)
        .bind(messages)
        .execute(connection)
        .await
        .map(|_| ())
}

/// Keeps a rating.
pub(crate) async fn rate(
    connection: &mut Timed,
    scope: Uuid,
    session_number: u32,
    rating: &Rating,
) -> sqlx::Result<()> {
    sqlx::query(
        "INSERT INTO answer_rating (scope, message_id, user_id, session_number, rated_at, helpful,
           preset_version, preset, note)
         VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9)
         ON CONFLICT (scope, message_id, user_id) DO UPDATE SET session_number = $4, rated_at = $5,
           helpful = $6, preset_version = $7, preset = $8, note = $9",
    )
    .bind(scope)
    .bind(rating.message.as_uuid())
    .bind(rating.user.as_str())
    .bind(i64::from(session_number))
    .bind(rating.rated_at.as_micros())
    .bind(i64::from(rating.helpful))
    .bind(rating.preset_version.map(bounded))
    .bind(rating.preset.as_ref().map(PresetId::as_str))
    .bind(&rating.note)
    .execute(connection)
    .await
    .map(|_| ())
}

pub(crate) async fn remove_rating(
    connection: &mut Timed,
    scope: Uuid,
    message: MessageId,
    user: &UserId,
) -> sqlx::Result<()> {
    sqlx::query("DELETE FROM answer_rating WHERE scope = $1 AND message_id = $2 AND user_id = $3")
        .bind(scope)
        .bind(message.as_uuid())
        .bind(user.as_str())
        .execute(connection)
        .await
        .map(|_| ())
}

fn read_rating(row: &PgRow) -> sqlx::Result<Rating> {
    Ok(Rating {
        message: MessageId::from_uuid(row.try_get(0)?),
        user: UserId::new(row.try_get::<String, _>(1)?).map_err(stored_wrongly)?,
        rated_at: at(row.try_get(2)?),
        helpful: row.try_get::<i64, _>(3)? != 0,
        preset_version: optional(row, 4)?,
        preset: row.try_get::<Option<&str>, _>(5)?.map(parsed).transpose()?,
        note: row.try_get(6)?,
    })
}

fn read_count(row: &PgRow) -> sqlx::Result<RatingCount> {
    Ok(RatingCount {
        preset: row.try_get::<Option<&str>, _>(0)?.map(parsed).transpose()?,
        preset_version: optional(row, 1)?,
        rated: number(row.try_get(2)?)?,
        helpful: number(row.try_get(3)?)?,
        first_at: at(row.try_get(4)?),
        last_at: at(row.try_get(5)?),
    })
}

/// Removes what messages that go take along: their tags and ratings, and backups that hold any of them. Each message
/// comes with the number of its session and its own.
pub(crate) async fn forget_messages(
    connection: &mut Timed,
    scope: Uuid,
    messages: &[Uuid],
    (sessions, seqs): (&[i64], &[i64]),
) -> sqlx::Result<()> {
    forget_tags(connection, scope, messages).await?;
    sqlx::query("DELETE FROM answer_rating WHERE scope = $1 AND message_id = ANY($2)")
        .bind(scope)
        .bind(messages)
        .execute(&mut *connection)
        .await?;
    sqlx::query(
        "DELETE FROM persona_backup b USING (
           SELECT s.id, min(gone.seq) AS first
           FROM unnest($2::bigint[], $3::bigint[]) AS gone (number, seq)
           JOIN session s ON s.scope = $1 AND s.number = gone.number GROUP BY s.id) AS of
         WHERE b.scope = $1 AND b.session = of.id AND b.through >= of.first",
    )
    .bind(scope)
    .bind(sessions)
    .bind(seqs)
    .execute(connection)
    .await
    .map(|_| ())
}

/// Removes what sessions that go take along: their personas, with all backups.
pub(crate) async fn forget_sessions(
    connection: &mut Timed,
    scope: Uuid,
    sessions: &[String],
) -> sqlx::Result<()> {
    for delete in [
        "DELETE FROM persona WHERE scope = $1 AND session = ANY($2)",
        "DELETE FROM persona_backup WHERE scope = $1 AND session = ANY($2)",
    ] {
        sqlx::query(delete).bind(scope).bind(sessions).execute(&mut *connection).await?;
    }
    Ok(())
}

#[async_trait]
impl PersonaRepo for PostgresStore {
    async fn persona(&self, scope: &Scope, id: PersonaId) -> Result<Option<Persona>> {
        let mut bound = self.read(scope).await?;
        let row = sqlx::query(concat!(
            "SELECT ",
            columns!(),
            " FROM persona WHERE scope = $1 AND id = $2"
        ))
        .bind(bound.key)
        .bind(id.as_uuid())
        .fetch_optional(bound.connection())
        .await;
        mapped(row.and_then(|row| row.as_ref().map(read).transpose()), "persona")
    }

    async fn personas(&self, scope: &Scope) -> Result<Vec<Persona>> {
        let mut bound = self.read(scope).await?;
        let rows = sqlx::query(concat!(
            "SELECT ",
            columns!(),
            " FROM persona WHERE scope = $1 ORDER BY created_at, id"
        ))
        .bind(bound.key)
        .fetch_all(bound.connection())
        .await;
        mapped(rows.and_then(|rows| rows.iter().map(read).collect()), "personas")
    }

    async fn persona_sessions(&self, scope: &Scope) -> Result<Vec<PersonaSession>> {
        let mut bound = self.read(scope).await?;
        let rows = sqlx::query(
            "SELECT p.id, p.memory, s.number FROM persona p
             JOIN session s ON s.scope = p.scope AND s.id = p.session
             WHERE p.scope = $1 ORDER BY s.number",
        )
        .bind(bound.key)
        .fetch_all(bound.connection())
        .await;
        let read = |row: &PgRow| {
            let persona = PersonaId::from_uuid(row.try_get(0)?);
            Ok(PersonaSession {
                persona,
                memory: row.try_get::<i64, _>(1)? != 0,
                number: number(row.try_get(2)?)?,
            })
        };
        mapped(rows.and_then(|rows| rows.iter().map(read).collect()), "persona_sessions")
    }

    async fn preset(&self, scope: &Scope, id: &PresetId) -> Result<Option<Preset>> {
        let mut bound = self.read(scope).await?;
        let row = sqlx::query(concat!(
            "SELECT ",
            preset_columns!(),
            " FROM preset WHERE scope = $1 AND id = $2"
        ))
        .bind(bound.key)
        .bind(id.as_str())
        .fetch_optional(bound.connection())
        .await;
        mapped(row.and_then(|row| row.as_ref().map(read_preset).transpose()), "preset")
    }

    async fn presets(&self, scope: &Scope) -> Result<Vec<Preset>> {
        let mut bound = self.read(scope).await?;
        let rows = sqlx::query(concat!(
            "SELECT ",
            preset_columns!(),
            " FROM preset WHERE scope = $1 ORDER BY created_at, id"
        ))
        .bind(bound.key)
        .fetch_all(bound.connection())
        .await;
        mapped(rows.and_then(|rows| rows.iter().map(read_preset).collect()), "presets")
    }

    async fn preset_uses(&self, scope: &Scope) -> Result<Vec<(PresetId, PresetUse)>> {
        let mut bound = self.read(scope).await?;
        let rows = sqlx::query(
            "SELECT preset, contexts, turns, truncations FROM preset_use WHERE scope = $1
             ORDER BY preset",
        )
        .bind(bound.key)
        .fetch_all(bound.connection())
        .await;
        let used = |row: &PgRow| {
            let used = PresetUse {
                contexts: number(row.try_get(1)?)?,
                turns: number(row.try_get(2)?)?,
                truncations: number(row.try_get(3)?)?,
            };
            Ok((parsed(row.try_get(0)?)?, used))
        };
        mapped(rows.and_then(|rows| rows.iter().map(used).collect()), "preset_uses")
    }

    async fn persona_backups(&self, scope: &Scope, id: PersonaId) -> Result<Vec<BackupHead>> {
        let mut bound = self.read(scope).await?;
        let rows = sqlx::query(concat!(
            "SELECT ",
            head_columns!(),
            " FROM persona_backup WHERE scope = $1 AND persona = $2
             ORDER BY taken_at DESC, id DESC"
        ))
        .bind(bound.key)
        .bind(id.as_uuid())
        .fetch_all(bound.connection())
        .await;
        mapped(rows.and_then(|rows| rows.iter().map(read_head).collect()), "persona_backups")
    }

    async fn persona_backup(&self, scope: &Scope, id: BackupId) -> Result<Option<Backup>> {
        let mut bound = self.read(scope).await?;
        let row = sqlx::query(concat!(
            "SELECT ",
            head_columns!(),
            ", data FROM persona_backup WHERE scope = $1 AND id = $2"
        ))
        .bind(bound.key)
        .bind(id.as_uuid())
        .fetch_optional(bound.connection())
        .await;
        let backup = |row: &PgRow| Ok(Backup { head: read_head(row)?, data: row.try_get(7)? });
        mapped(row.and_then(|row| row.as_ref().map(backup).transpose()), "persona_backup")
    }

    async fn conversation_bytes(&self, scope: &Scope, session: &SessionId) -> Result<u64> {
        let mut bound = self.read(scope).await?;
        let bytes = sqlx::query_scalar(concat!(
            "SELECT coalesce(sum(octet_length(m.content)), 0)::bigint FROM message m
             WHERE m.scope = $1 AND m.session_number = ",
            session_number!()
        ))
        .bind(bound.key)
        .bind(session.as_str())
        .fetch_one(bound.connection())
        .await;
        mapped(bytes.and_then(number), "conversation_bytes")
    }

    async fn message_tags(
        &self,
        scope: &Scope,
        session: &SessionId,
    ) -> Result<Vec<(MessageId, Vec<String>)>> {
        let mut bound = self.read(scope).await?;
        let rows = sqlx::query(concat!(
            "SELECT t.message_id, t.tags FROM message_tag t
             JOIN message m ON m.scope = $1 AND m.id = t.message_id
             WHERE t.scope = $1 AND t.session_number = ",
            session_number!(),
            " ORDER BY m.position"
        ))
        .bind(bound.key)
        .bind(session.as_str())
        .fetch_all(bound.connection())
        .await;
        let tagged =
            |row: &PgRow| Ok((MessageId::from_uuid(row.try_get(0)?), parse_tags(row.try_get(1)?)));
        mapped(rows.and_then(|rows| rows.iter().map(tagged).collect()), "message_tags")
    }

    async fn ratings(&self, scope: &Scope, session: &SessionId) -> Result<Vec<Rating>> {
        let mut bound = self.read(scope).await?;
        let rows = sqlx::query(concat!(
            "SELECT r.message_id, r.user_id, r.rated_at, r.helpful, r.preset_version, r.preset, r.note
             FROM answer_rating r JOIN message m ON m.scope = $1 AND m.id = r.message_id
             WHERE r.scope = $1 AND r.session_number = ",
            session_number!(),
            " ORDER BY m.position, r.user_id"
        ))
        .bind(bound.key)
        .bind(session.as_str())
        .fetch_all(bound.connection())
        .await;
        mapped(rows.and_then(|rows| rows.iter().map(read_rating).collect()), "ratings")
    }

    async fn rating_counts(
        &self,
        scope: &Scope,
        since: Option<Timestamp>,
        until: Option<Timestamp>,
    ) -> Result<Vec<RatingCount>> {
        let mut bound = self.read(scope).await?;
        let rows = sqlx::query(
            "SELECT preset, preset_version, count(*), sum(helpful)::bigint, min(rated_at), max(rated_at)
             FROM answer_rating
             WHERE scope = $1 AND ($2::bigint IS NULL OR rated_at >= $2)
               AND ($3::bigint IS NULL OR rated_at < $3)
             GROUP BY preset, preset_version
             ORDER BY preset NULLS FIRST, preset_version NULLS FIRST",
        )
        .bind(bound.key)
        .bind(since.map(Timestamp::as_micros))
        .bind(until.map(Timestamp::as_micros))
        .fetch_all(bound.connection())
        .await;
        mapped(rows.and_then(|rows| rows.iter().map(read_count).collect()), "rating_counts")
    }
}
