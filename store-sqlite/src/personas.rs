//! Personas, presets, backups, tags of messages and ratings of answers.

use async_trait::async_trait;
use rusqlite::{Connection, OptionalExtension, Params, Row, params};
use throughline_core::ids::{BackupId, MessageId, PersonaId, PresetId, SessionId, UserId};
use throughline_core::persona::{
    Backup, BackupHead, Persona, PersonaSession, Preset, PresetUse, Rating, RatingCount, Settings,
    parse_tags, tags_text,
};
use throughline_core::ports::PersonaRepo;
use throughline_core::session::Role;
use throughline_core::time::Timestamp;
use throughline_core::{Result, Scope};

use crate::records::{At, Id, bounded, parsed, stored_wrongly};
use crate::sessions;
use crate::store::SqliteStore;

pub(crate) fn put(
    connection: &Connection,
    scope_id: i64,
    persona: &Persona,
) -> rusqlite::Result<()> {
    connection
        .prepare_cached(
            "INSERT OR REPLACE INTO persona (scope_id, id, session, name, system_prompt, personality,
               temperature, max_tokens, max_history_tokens, expiry_days, memory, tags, preset,
               created_at, updated_at, last_interaction_at, expires_at, deleted_at, backed_up_at,
               turns, truncations, version, preset_version)
             VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10, ?11, ?12, ?13, ?14, ?15, ?16, ?17, ?18,
               ?19, ?20, ?21, ?22, ?23)",
        )?
        .execute(params![
            scope_id,
            Id(persona.id.as_uuid()),
            persona.session.as_str(),
            persona.name,
            persona.system_prompt,
            persona.personality,
            persona.settings.temperature,
            persona.settings.max_tokens,
            persona.settings.max_history_tokens,
            persona.settings.expiry_days,
            persona.memory,
            tags_text(&persona.tags),
            persona.preset.as_ref().map(PresetId::as_str),
            At(persona.created_at),
            At(persona.updated_at),
            At(persona.last_interaction_at),
            At(persona.expires_at),
            persona.deleted_at.map(At),
            persona.backed_up_at.map(At),
            persona.turns,
            persona.truncations,
            persona.version,
            persona.preset_version
        ])
        .map(|_| ())
}

const COLUMNS: &str = "id, session, name, system_prompt, personality, temperature, max_tokens, \
    max_history_tokens, expiry_days, memory, tags, preset, created_at, updated_at, \
    last_interaction_at, expires_at, deleted_at, backed_up_at, turns, truncations, version, \
    preset_version";

fn read(row: &Row<'_>) -> rusqlite::Result<Persona> {
    let at = |column: usize| row.get::<_, At>(column).map(|at| at.0);
    let at_times = |column: usize| row.get::<_, Option<At>>(column).map(|at| at.map(|at| at.0));
    Ok(Persona {
        id: PersonaId::from_uuid(row.get::<_, Id>(0)?.0),
        session: session_id(row, 1)?,
        name: row.get(2)?,
        system_prompt: row.get(3)?,
        personality: row.get(4)?,
        settings: read_settings(row, 5)?,
        memory: row.get(9)?,
        tags: parse_tags(row.get_ref(10)?.as_str()?),
        preset: row.get_ref(11)?.as_str_or_null()?.map(parsed).transpose()?,
        created_at: at(12)?,
        updated_at: at(13)?,
        last_interaction_at: at(14)?,
        expires_at: at(15)?,
        deleted_at: at_times(16)?,
        backed_up_at: at_times(17)?,
        turns: row.get(18)?,
        truncations: row.get(19)?,
        version: row.get(20)?,
        preset_version: row.get(21)?,
    })
}

fn read_settings(row: &Row<'_>, at: usize) -> rusqlite::Result<Settings> {
    Ok(Settings {
        temperature: row.get(at)?,
        max_tokens: row.get(at + 1)?,
        max_history_tokens: row.get(at + 2)?,
        expiry_days: row.get(at + 3)?,
    })
}

fn session_id(row: &Row<'_>, at: usize) -> rusqlite::Result<SessionId> {
    SessionId::new(row.get::<_, String>(at)?).map_err(stored_wrongly)
}

fn select(
    connection: &Connection,
    rest: &str,
    params: impl Params,
) -> rusqlite::Result<Vec<Persona>> {
    connection
        .prepare_cached(&format!("SELECT {COLUMNS} FROM persona WHERE scope_id = ?1 {rest}"))?
        .query_map(params, read)?
        .collect()
}

fn get(connection: &Connection, scope_id: i64, id: PersonaId) -> rusqlite::Result<Option<Persona>> {
    Ok(select(connection, "AND id = ?2", params![scope_id, Id(id.as_uuid())])?.pop())
}

pub(crate) fn version(
    connection: &Connection,
    scope_id: i64,
    id: PersonaId,
) -> rusqlite::Result<Option<u64>> {
    connection
        .prepare_cached("SELECT version FROM persona WHERE scope_id = ?1 AND id = ?2")?
        .query_row(params![scope_id, Id(id.as_uuid())], |row| row.get(0))
        .optional()
}

pub(crate) fn put_preset(
    connection: &Connection,
    scope_id: i64,
    preset: &Preset,
) -> rusqlite::Result<()> {
    connection
        .prepare_cached(
            "INSERT OR REPLACE INTO preset (scope_id, id, name, description, system_prompt,
               default_personality, temperature, max_tokens, max_history_tokens, expiry_days,
               created_at, updated_at, is_active, metadata, version)
             VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10, ?11, ?12, ?13, ?14, ?15)",
        )?
        .execute(params![
            scope_id,
            preset.id.as_str(),
            preset.name,
            preset.description,
            preset.system_prompt,
            preset.default_personality,
            preset.settings.temperature,
            preset.settings.max_tokens,
            preset.settings.max_history_tokens,
            preset.settings.expiry_days,
            At(preset.created_at),
            At(preset.updated_at),
            preset.is_active,
            preset.metadata,
            preset.version
        ])
        .map(|_| ())
}

fn read_preset(row: &Row<'_>) -> rusqlite::Result<Preset> {
    Ok(Preset {
        id: parsed(row.get_ref(0)?.as_str()?)?,
        name: row.get(1)?,
        description: row.get(2)?,
        system_prompt: row.get(3)?,
        default_personality: row.get(4)?,
        settings: read_settings(row, 5)?,
        created_at: row.get::<_, At>(9)?.0,
        updated_at: row.get::<_, At>(10)?.0,
        is_active: row.get(11)?,
        metadata: row.get(12)?,
        version: row.get(13)?,
    })
}

fn select_presets(
    connection: &Connection,
    rest: &str,
    params: impl Params,
) -> rusqlite::Result<Vec<Preset>> {
    connection
        .prepare_cached(&format!(
            "SELECT id, name, description, system_prompt, default_personality, temperature, max_tokens,
               max_history_tokens, expiry_days, created_at, updated_at, is_active, metadata, version
             FROM preset WHERE scope_id = ?1 {rest}"
        ))?
        .query_map(params, read_preset)?
        .collect()
}

pub(crate) fn preset_version(
    connection: &Connection,
    scope_id: i64,
    id: &PresetId,
) -> rusqlite::Result<Option<u64>> {
    connection
        .prepare_cached("SELECT version FROM preset WHERE scope_id = ?1 AND id = ?2")?
        .query_row(params![scope_id, id.as_str()], |row| row.get(0))
        .optional()
}

pub(crate) fn remove_preset(
    connection: &Connection,
    scope_id: i64,
    id: &PresetId,
) -> rusqlite::Result<()> {
    connection
        .prepare_cached("DELETE FROM preset WHERE scope_id = ?1 AND id = ?2")?
        .execute(params![scope_id, id.as_str()])
        .map(|_| ())
}

pub(crate) fn count_preset(
    connection: &Connection,
    scope_id: i64,
    id: &PresetId,
    used: &PresetUse,
) -> rusqlite::Result<()> {
    connection
        .prepare_cached(
            "INSERT INTO preset_use (scope_id, preset, contexts, turns, truncations)
             VALUES (?1, ?2, ?3, ?4, ?5)
             ON CONFLICT DO UPDATE SET contexts = contexts + ?3, turns = turns + ?4,
               truncations = truncations + ?5",
        )?
        .execute(params![scope_id, id.as_str(), used.contexts, used.turns, used.truncations])
        .map(|_| ())
}

pub(crate) fn put_backup(
    connection: &Connection,
    scope_id: i64,
    Backup { head, data }: &Backup,
    keep: u32,
) -> rusqlite::Result<()> {
    let (persona, reason) = (Id(head.persona.as_uuid()), head.reason.as_str());
    connection
        .prepare_cached(
            "INSERT OR REPLACE INTO persona_backup (scope_id, id, persona, session, through, taken_at,
               reason, data)
             VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8)",
        )?
        .execute(params![
            scope_id,
            Id(head.id.as_uuid()),
            persona,
            head.session.as_str(),
            bounded(head.through),
            At(head.taken_at),
            reason,
            data
        ])?;
    connection
        .prepare_cached(
            "DELETE FROM persona_backup WHERE scope_id = ?1 AND id IN (SELECT id FROM persona_backup
               WHERE scope_id = ?1 AND persona = ?2 AND reason = ?3
               ORDER BY taken_at DESC, id DESC LIMIT -1 OFFSET ?4)",
        )?
        .execute(params![scope_id, persona, reason, keep])
        .map(|_| ())
}

/// `length` counts characters of texts: bytes are those of the text as a blob.
const HEAD_COLUMNS: &str =
    "id, persona, session, through, taken_at, reason, length(CAST(data AS BLOB))";

fn read_head(row: &Row<'_>) -> rusqlite::Result<BackupHead> {
    Ok(BackupHead {
        id: BackupId::from_uuid(row.get::<_, Id>(0)?.0),
        persona: PersonaId::from_uuid(row.get::<_, Id>(1)?.0),
        session: session_id(row, 2)?,
        through: row.get(3)?,
        taken_at: row.get::<_, At>(4)?.0,
        reason: parsed(row.get_ref(5)?.as_str()?)?,
        bytes: row.get(6)?,
    })
}

/// Gives a message its tags; whether it is a message of the session.
pub(crate) fn tag(
    connection: &Connection,
    scope_id: i64,
    (session_number, message): (u32, MessageId),
    tags: &[String],
) -> rusqlite::Result<bool> {
    let id = Id(message.as_uuid());
    let held = connection
        .prepare_cached(
            "SELECT 1 FROM message WHERE id = ?2 AND scope_id = ?1 AND session_number = ?3",
        )?
        .exists(params![scope_id, id, session_number])?;
    if !held {
        return Ok(false);
    }
    if tags.is_empty() {
        forget_tags(connection, scope_id, message)?;
        return Ok(true);
    }
    connection
        .prepare_cached(
            "INSERT INTO message_tag (scope_id, message_id, session_number, tags)
             VALUES (?1, ?2, ?3, ?4) ON CONFLICT DO UPDATE SET session_number = ?3, tags = ?4",
        )?
        .execute(params![scope_id, id, session_number, tags_text(tags)])?;
    Ok(true)
}

fn forget_tags(connection: &Connection, scope_id: i64, message: MessageId) -> rusqlite::Result<()> {
    connection
        .prepare_cached("DELETE FROM message_tag WHERE scope_id = ?1 AND message_id = ?2")?
        .execute(params![scope_id, Id(message.as_uuid())])
        .map(|_| ())
}

/// Keeps a rating; whether its answer is one of the session.
pub(crate) fn rate(
    connection: &Connection,
    scope_id: i64,
    session_number: u32,
    rating: &Rating,
) -> rusqlite::Result<bool> {
    let id = Id(rating.message.as_uuid());
    let held = connection
        .prepare_cached(
            "SELECT 1 FROM message WHERE id = ?2 AND scope_id = ?1 AND session_number = ?3 AND role = ?4",
        )?
        .exists(params![scope_id, id, session_number, Role::Assistant.as_str()])?;
    if !held {
        return Ok(false);
    }
    connection
        .prepare_cached(
            "INSERT OR REPLACE INTO answer_rating (scope_id, message_id, user_id, session_number, rated_at,
               helpful, preset_version, preset, note)
             VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9)",
        )?
        .execute(params![
            scope_id,
            id,
            rating.user.as_str(),
            session_number,
            At(rating.rated_at),
            rating.helpful,
            rating.preset_version,
            rating.preset.as_ref().map(PresetId::as_str),
            rating.note
        ])?;
    Ok(true)
}

pub(crate) fn remove_rating(
    connection: &Connection,
    scope_id: i64,
    message: MessageId,
    user: &UserId,
) -> rusqlite::Result<()> {
    connection
        .prepare_cached(
            "DELETE FROM answer_rating WHERE scope_id = ?1 AND message_id = ?2 AND user_id = ?3",
        )?
        .execute(params![scope_id, Id(message.as_uuid()), user.as_str()])
        .map(|_| ())
}

fn read_rating(row: &Row<'_>) -> rusqlite::Result<Rating> {
    Ok(Rating {
        message: row.get::<_, Id>(0)?.into(),
        user: UserId::new(row.get::<_, String>(1)?).map_err(stored_wrongly)?,
        rated_at: row.get::<_, At>(2)?.0,
        helpful: row.get(3)?,
        preset_version: row.get(4)?,
        preset: row.get_ref(5)?.as_str_or_null()?.map(parsed).transpose()?,
        note: row.get(6)?,
    })
}

/// Removes what a message of a session that goes takes along: its tags and ratings, and backups that hold it.
pub(crate) fn forget_message(
    connection: &Connection,
    scope_id: i64,
    message: MessageId,
    (session_number, seq): (u32, u64),
) -> rusqlite::Result<()> {
    forget_tags(connection, scope_id, message)?;
    connection
        .prepare_cached("DELETE FROM answer_rating WHERE scope_id = ?1 AND message_id = ?2")?
        .execute(params![scope_id, Id(message.as_uuid())])?;
    connection
        .prepare_cached(
            "DELETE FROM persona_backup WHERE scope_id = ?1 AND through >= ?3
               AND session = (SELECT id FROM session WHERE scope_id = ?1 AND number = ?2)",
        )?
        .execute(params![scope_id, session_number, bounded(seq)])
        .map(|_| ())
}

/// Removes what a session that goes takes along: its persona, with all backups.
pub(crate) fn forget_session(
    connection: &Connection,
    scope_id: i64,
    session: &str,
) -> rusqlite::Result<()> {
    for table in ["persona", "persona_backup"] {
        connection
            .prepare_cached(&format!("DELETE FROM {table} WHERE scope_id = ?1 AND session = ?2"))?
            .execute(params![scope_id, session])?;
    }
    Ok(())
}

#[async_trait]
impl PersonaRepo for SqliteStore {
    async fn persona(&self, scope: &Scope, id: PersonaId) -> Result<Option<Persona>> {
        let found = self.read_scope(scope, move |connection, scope| get(connection, scope, id));
        Ok(found.await?.flatten())
    }

    async fn personas(&self, scope: &Scope) -> Result<Vec<Persona>> {
        let all = self.read_scope(scope, |connection, scope_id| {
            select(connection, "ORDER BY created_at, id", [scope_id])
        });
        Ok(all.await?.unwrap_or_default())
    }

    async fn persona_sessions(&self, scope: &Scope) -> Result<Vec<PersonaSession>> {
        let all = self.read_scope(scope, |connection, scope_id| {
            connection
                .prepare_cached(
                    "SELECT p.id, p.memory, s.number FROM persona p
                     JOIN session s ON s.scope_id = p.scope_id AND s.id = p.session
                     WHERE p.scope_id = ?1 ORDER BY s.number",
                )?
                .query_map([scope_id], |row| {
                    let persona = PersonaId::from_uuid(row.get::<_, Id>(0)?.0);
                    Ok(PersonaSession { persona, memory: row.get(1)?, number: row.get(2)? })
                })?
                .collect::<rusqlite::Result<Vec<_>>>()
        });
        Ok(all.await?.unwrap_or_default())
    }

    async fn preset(&self, scope: &Scope, id: &PresetId) -> Result<Option<Preset>> {
        let id = id.clone();
        let found = self.read_scope(scope, move |connection, scope_id| {
            select_presets(connection, "AND id = ?2", params![scope_id, id.as_str()])
        });
        Ok(found.await?.and_then(|mut found| found.pop()))
    }

    async fn presets(&self, scope: &Scope) -> Result<Vec<Preset>> {
        let all = self.read_scope(scope, |connection, scope_id| {
            select_presets(connection, "ORDER BY created_at, id", [scope_id])
        });
        Ok(all.await?.unwrap_or_default())
    }

    async fn preset_uses(&self, scope: &Scope) -> Result<Vec<(PresetId, PresetUse)>> {
        let all = self.read_scope(scope, |connection, scope_id| {
            connection
                .prepare_cached(
                    "SELECT preset, contexts, turns, truncations FROM preset_use
                     WHERE scope_id = ?1 ORDER BY preset",
                )?
                .query_map([scope_id], |row| {
                    let used = PresetUse {
                        contexts: row.get(1)?,
                        turns: row.get(2)?,
                        truncations: row.get(3)?,
                    };
                    Ok((parsed(row.get_ref(0)?.as_str()?)?, used))
                })?
                .collect()
        });
        Ok(all.await?.unwrap_or_default())
    }

    async fn persona_backups(&self, scope: &Scope, id: PersonaId) -> Result<Vec<BackupHead>> {
        let all = self.read_scope(scope, move |connection, scope_id| {
            connection
                .prepare_cached(&format!(
                    "SELECT {HEAD_COLUMNS} FROM persona_backup WHERE scope_id = ?1 AND persona = ?2
                     ORDER BY taken_at DESC, id DESC"
                ))?
                .query_map(params![scope_id, Id(id.as_uuid())], read_head)?
                .collect()
        });
        Ok(all.await?.unwrap_or_default())
    }

    async fn persona_backup(&self, scope: &Scope, id: BackupId) -> Result<Option<Backup>> {
        let found = self.read_scope(scope, move |connection, scope_id| {
            connection
                .prepare_cached(&format!(
                    "SELECT {HEAD_COLUMNS}, data FROM persona_backup WHERE scope_id = ?1 AND id = ?2"
                ))?
                .query_row(params![scope_id, Id(id.as_uuid())], |row| {
                    Ok(Backup { head: read_head(row)?, data: row.get(7)? })
                })
                .optional()
        });
        Ok(found.await?.flatten())
    }

    async fn conversation_bytes(&self, scope: &Scope, session: &SessionId) -> Result<u64> {
        let session = session.clone();
        let bytes = self.read_scope(scope, move |connection, scope_id| {
            // Unlike the length of a text as a blob, it is told without reading the text.
            connection
                .prepare_cached(
                    "SELECT coalesce(sum(octet_length(m.content)), 0) FROM session s
                     JOIN message m ON m.scope_id = s.scope_id AND m.session_number = s.number
                     WHERE s.scope_id = ?1 AND s.id = ?2",
                )?
                .query_row(params![scope_id, session.as_str()], |row| row.get(0))
        });
        Ok(bytes.await?.unwrap_or_default())
    }

    async fn message_tags(
        &self,
        scope: &Scope,
        session: &SessionId,
    ) -> Result<Vec<(MessageId, Vec<String>)>> {
        let session = session.clone();
        let all = self.read_scope(scope, move |connection, scope_id| {
            let Some(number) = sessions::number(connection, scope_id, &session)? else {
                return Ok(Vec::new());
            };
            connection
                .prepare_cached(
                    "SELECT t.message_id, t.tags FROM message_tag t JOIN message m ON m.id = t.message_id
                     WHERE t.scope_id = ?1 AND t.session_number = ?2 AND m.scope_id = ?1
                     ORDER BY m.position",
                )?
                .query_map(params![scope_id, number], |row| {
                    Ok((row.get::<_, Id>(0)?.into(), parse_tags(row.get_ref(1)?.as_str()?)))
                })?
                .collect()
        });
        Ok(all.await?.unwrap_or_default())
    }

    async fn ratings(&self, scope: &Scope, session: &SessionId) -> Result<Vec<Rating>> {
        let session = session.clone();
        let all = self.read_scope(scope, move |connection, scope_id| {
            let Some(number) = sessions::number(connection, scope_id, &session)? else {
                return Ok(Vec::new());
            };
            connection
                .prepare_cached(
                    "SELECT r.message_id, r.user_id, r.rated_at, r.helpful, r.preset_version, r.preset,
                       r.note
                     FROM answer_rating r JOIN message m ON m.id = r.message_id
                     WHERE r.scope_id = ?1 AND r.session_number = ?2 AND m.scope_id = ?1
                     ORDER BY m.position, r.user_id",
                )?
                .query_map(params![scope_id, number], read_rating)?
                .collect()
        });
        Ok(all.await?.unwrap_or_default())
    }

    async fn rating_counts(
        &self,
        scope: &Scope,
        since: Option<Timestamp>,
        until: Option<Timestamp>,
    ) -> Result<Vec<RatingCount>> {
        let all = self.read_scope(scope, move |connection, scope_id| {
            connection
                .prepare_cached(
                    "SELECT preset, preset_version, count(*), sum(helpful), min(rated_at), max(rated_at)
                     FROM answer_rating
                     WHERE scope_id = ?1 AND (?2 IS NULL OR rated_at >= ?2)
                       AND (?3 IS NULL OR rated_at < ?3)
                     GROUP BY preset, preset_version ORDER BY preset, preset_version",
                )?
                .query_map(params![scope_id, since.map(At), until.map(At)], |row| {
                    Ok(RatingCount {
                        preset: row.get_ref(0)?.as_str_or_null()?.map(parsed).transpose()?,
                        preset_version: row.get(1)?,
                        rated: row.get(2)?,
                        helpful: row.get(3)?,
                        first_at: row.get::<_, At>(4)?.0,
                        last_at: row.get::<_, At>(5)?.0,
                    })
                })?
                .collect()
        });
        Ok(all.await?.unwrap_or_default())
    }
}
