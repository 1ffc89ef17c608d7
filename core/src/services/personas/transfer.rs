//! Taking personas out and in again: exports, imports, and the backups that are kept of them.

use std::ops::ControlFlow;

use super::{Checked, PersonaService};
use crate::access::Actor;
use crate::erase::ErasedBefore;
use crate::error::{Error, Result};
use crate::ids::{BackupId, PersonaId, PresetId, SessionId};
use crate::persona::{
    Backup, BackupHead, BackupReason, Export, ExportFormat, ExportMessage, ExportRating,
    NewPersona, NewRating, Overrides, Persona, Rating, built_in, tags as checked_tags,
};
use crate::ports::{Idempotency, Precondition, RecordKey, Write};
use crate::scope::Scope;
use crate::secret::masks;
use crate::services::sessions::AppendOptions;
use crate::session::{Message, NewMessage, Role};
use crate::time::Timestamp;

/// A persona that was made of an export or a backup.
#[derive(Debug, Clone, PartialEq)]
pub struct TakenIn {
    /// The persona, with the problems of its prompt.
    pub made: Checked<Persona>,
    /// Messages that were left out, because they were erased since.
    pub held_back: u64,
}

impl PersonaService {
    /// A persona with its conversation, as text: the whole, for its owner.
    ///
    /// # Errors
    /// `NotFound`; those of the store.
    pub async fn export(
        &self,
        scope: &Scope,
        id: PersonaId,
        format: ExportFormat,
    ) -> Result<String> {
        let persona = self.get(scope, id).await?;
        self.collect(scope, &persona).await?.0.write(format)
    }

    /// The same for a model: its secrets are masked as in its turns. Beside the text: how many are.
    ///
    /// # Errors
    /// As [`Self::export`].
    pub async fn export_for_model(
        &self,
        scope: &Scope,
        id: PersonaId,
        format: ExportFormat,
    ) -> Result<(String, usize)> {
        let persona = self.get(scope, id).await?.for_model(self.ports.secrets);
        let (mut export, ..) = self.collect(scope, &persona).await?;
        let secrets = self.ports.secrets;
        for message in &mut export.messages {
            message.content = secrets.shown(&message.content).into_owned();
            for note in message.ratings.iter_mut().filter_map(|rating| rating.note.as_mut()) {
                *note = secrets.shown(note).into_owned();
            }
        }
        let text = export.write(format)?;
        let masked = masks(&text);
        Ok((text, masked))
    }

    /// A persona with its whole conversation, the sequence number of its last message and the version of its
    /// session.
    async fn collect(
        &self,
        scope: &Scope,
        persona: &Persona,
    ) -> Result<(Export, u64, Option<u64>)> {
        let store = &self.ports.store;
        // The version is read before the messages, so that a change while they are read is seen.
        let session = store.session(scope, &persona.session).await?;
        let mut export = Export::of(persona, self.now());
        let mut messages = Vec::new();
        self.walk(scope, persona, |message| {
            messages.push(Message { parts: None, attachments: None, ..message });
            ControlFlow::Continue(())
        })
        .await?;
        let through = messages.last().map_or(0, |message| message.seq);
        let tags = self.tags_of(scope, persona).await?;
        let mut ratings = self.ratings_of(scope, persona).await?;
        export.messages = messages
            .into_iter()
            .map(|message| {
                let tags = tags.get(&message.id).cloned().unwrap_or_default();
                let ratings = ratings.remove(&message.id).unwrap_or_default();
                let ratings = ratings.into_iter().map(|rating| exported(scope, rating)).collect();
                let said = message.said().to_owned();
                let Message { id, role, actor, name, created_at, .. } = message;
                let (id, content) = (Some(id), said);
                let actor = actor.of_export();
                ExportMessage { id, role, actor, name, content, created_at, tags, ratings }
            })
            .collect();
        Ok((export, through, session.map(|session| session.version)))
    }

    /// Makes a persona of an export, with its conversation: all of it or nothing. It is another one, which
    /// begins now.
    ///
    /// # Errors
    /// `InvalidInput` that says what is wrong and where; `Conflict` past a limit, and when the idempotency key
    /// stands for another request; those of the store.
    pub async fn import(
        &self,
        scope: &Scope,
        text: &str,
        idempotency: Option<Idempotency>,
    ) -> Result<TakenIn> {
        let limits = self.limits();
        if text.len() > limits.context_bytes.saturating_mul(2) {
            return Err(Error::invalid(format!(
                "the export has {} bytes, but at most {} are allowed",
                text.len(),
                limits.context_bytes.saturating_mul(2)
            )));
        }
        let export = Export::read(text)?;
        if export.messages.len() as u64 > limits.conversations {
            return Err(Error::conflict(format!(
                "the export has {} messages, but at most {} are allowed in a conversation",
                export.messages.len(),
                limits.conversations
            )));
        }
        let bytes: usize = export.messages.iter().map(|message| message.content.len()).sum();
        if bytes > limits.context_bytes {
            return Err(Error::conflict(format!(
                "the messages of the export have {bytes} bytes, but at most {} are allowed",
                limits.context_bytes
            )));
        }
        let erased = self.ports.erase.erased_before().await?;
        self.take_in(scope, export, Some(&erased), self.new_id(idempotency), idempotency).await
    }

    /// As [`Self::import`], unless the context is here or was imported here before: then there is no answer. Messages
    /// that were erased are held back by `erased`; without it, none is.
    ///
    /// # Errors
    /// As [`Self::import`], but for limits of what grows: the context may have come from here.
    pub async fn import_once(
        &self,
        scope: &Scope,
        text: &str,
        erased: Option<&ErasedBefore>,
    ) -> Result<Option<TakenIn>> {
        let export = Export::read(text)?;
        let original = export.session.as_ref().and_then(Persona::of_session);
        // A copy has an id that follows from the original's, so that a repeat finds it.
        let whole = || format!("{}\n{}", export.created_at, export.name);
        let origin = export.session.as_ref().map_or_else(whole, SessionId::to_string);
        let workspace = scope.workspace.as_ref().map_or("", |workspace| workspace.as_str());
        let mut hasher = blake3::Hasher::new();
        for part in [scope.tenant.as_str(), scope.user.as_str(), workspace, &origin] {
            hasher.update(&(part.len() as u64).to_le_bytes()).update(part.as_bytes());
        }
        let mut bytes = [0; 16];
        hasher.finalize_xof().fill(&mut bytes);
        let copy = PersonaId::from_uuid(uuid::Builder::from_random_bytes(bytes).into_uuid());
        for id in [original, Some(copy)].into_iter().flatten() {
            if self.ports.store.persona(scope, id).await?.is_some() {
                return Ok(None);
            }
        }
        self.take_in(scope, export, erased, copy, None).await.map(Some)
    }

    /// Makes a persona of an export, however long its conversation is.
    async fn take_in(
        &self,
        scope: &Scope,
        mut export: Export,
        erased: Option<&ErasedBefore>,
        id: PersonaId,
        idempotency: Option<Idempotency>,
    ) -> Result<TakenIn> {
        let tool = export.messages.iter().position(|message| message.role == Role::Tool);
        if let Some(at) = tool {
            return Err(Error::invalid(format!(
                "conversations[{at}].role: `tool` is not allowed in a context: use user, \
                 assistant or system"
            )));
        }
        let held_back = match erased {
            Some(erased) => hold_back(scope, &mut export, erased)?,
            None => 0,
        };
        let preset = self.known_preset(scope, export.preset.clone()).await?;
        let preset = preset.map(|preset| (preset, export.preset_version));
        let settings = export.settings;
        let new = NewPersona {
            name: export.name,
            system_prompt: export.system_prompt,
            personality: export.personality,
            settings: Overrides::default(),
            memory: export.memory,
            tags: export.tags,
        };
        let persona = Persona::begin(id, new, preset, settings, self.limits(), self.now())?;
        let findings = self.checked(&persona)?;
        if export.messages.is_empty() {
            let made = self.begin(scope, persona, Vec::new(), idempotency).await?;
            return Ok(TakenIn { made, held_back });
        }
        if idempotency.is_none() || self.ports.store.persona(scope, id).await?.is_none() {
            self.check_room(scope).await?;
        }
        let mut tags = Vec::with_capacity(export.messages.len());
        let mut ratings = Vec::with_capacity(export.messages.len());
        let mut messages = Vec::with_capacity(export.messages.len());
        for message in export.messages {
            tags.push(checked_tags(&message.tags)?);
            ratings.push(match message.role {
                Role::Assistant => message.ratings,
                _ => Vec::new(),
            });
            messages.push(NewMessage {
                name: message.name,
                created_at: Some(message.created_at),
                actor: message.actor,
                ..NewMessage::new(message.role, message.content)
            });
        }
        let options = AppendOptions {
            idempotency,
            without_facts: !persona.memory,
            actor: Actor::Import,
            ..AppendOptions::default()
        };
        let ready = self.ports.sessions.ready(scope, &persona.session, messages, options).await?;
        let mut batch = self.ports.sessions.batch_of(scope, &persona.session, &ready, true).await?;
        let tagged = ready.derived.messages.iter().zip(tags).filter(|(_, tags)| !tags.is_empty());
        batch.writes.extend(tagged.map(|(message, tags)| Write::TagMessage {
            session: persona.session.clone(),
            message: message.id,
            tags,
        }));
        for (message, ratings) in ready.derived.messages.iter().zip(ratings) {
            for ExportRating { user, helpful, note, rated_at } in ratings {
                let NewRating { helpful, note } = NewRating { helpful, note }.checked()?;
                let rating = Rating {
                    message: message.id,
                    user: user.unwrap_or_else(|| scope.user.clone()),
                    helpful,
                    note,
                    rated_at,
                    preset: persona.preset.clone(),
                    preset_version: persona.preset_version,
                };
                let (session, rating) = (persona.session.clone(), Box::new(rating));
                batch.writes.push(Write::RateAnswer { session, rating });
            }
        }
        let (now, key) = (persona.created_at, RecordKey::Persona(id));
        batch.preconditions.push(Precondition::IfAbsent(key));
        batch.writes.push(Write::PutPersona(Box::new(persona)));
        batch.writes.push(self.upkeep_later(now));
        self.ports.store.apply(batch).await?;
        let made = Checked { value: self.get(scope, id).await?, findings };
        Ok(TakenIn { made, held_back })
    }

    /// A preset that is there; that of another installation is not.
    async fn known_preset(
        &self,
        scope: &Scope,
        preset: Option<PresetId>,
    ) -> Result<Option<PresetId>> {
        let Some(preset) = preset else { return Ok(None) };
        let is_built_in = built_in().iter().any(|held| held.id == preset);
        let known = is_built_in || self.ports.store.preset(scope, &preset).await?.is_some();
        Ok(known.then_some(preset))
    }

    /// The write that keeps a backup, and what must hold for it: that nothing of the conversation was erased
    /// since it was read.
    pub(super) async fn backed_up(
        &self,
        scope: &Scope,
        persona: &Persona,
        reason: BackupReason,
        now: Timestamp,
    ) -> Result<(Write, Option<Precondition>)> {
        let (export, through, version) = self.collect(scope, persona).await?;
        let data = export.write(ExportFormat::Json)?;
        let head = BackupHead {
            id: BackupId::from_uuid(self.ports.ids.next()),
            persona: persona.id,
            session: persona.session.clone(),
            through,
            taken_at: now,
            reason,
            bytes: data.len() as u64,
        };
        let keep = match reason {
            BackupReason::Daily => self.limits().daily_backups,
            BackupReason::Deletion | BackupReason::Expiry => 1,
        };
        let key = RecordKey::Session(persona.session.clone());
        let unchanged = version.map(|version| Precondition::IfVersion(key, version));
        Ok((Write::PutBackup { backup: Box::new(Backup { head, data }), keep }, unchanged))
    }

    /// The backups of a persona, deleted or not, the newest first.
    ///
    /// # Errors
    /// `NotFound`; those of the store.
    pub async fn backups(&self, scope: &Scope, id: PersonaId) -> Result<Vec<BackupHead>> {
        if self.ports.store.persona(scope, id).await?.is_none() {
            self.get(scope, id).await?;
        }
        self.ports.store.persona_backups(scope, id).await
    }

    /// Makes a persona of a backup, as [`Self::import`] does of an export. Its conversation was ours: it comes
    /// back whole, even over the limits of one that grows.
    ///
    /// # Errors
    /// `NotFound` for the persona or the backup; as [`Self::import`].
    pub async fn restore_backup(
        &self,
        scope: &Scope,
        id: PersonaId,
        backup: BackupId,
        idempotency: Option<Idempotency>,
    ) -> Result<TakenIn> {
        let held = self.ports.store.persona_backup(scope, backup).await?;
        let held = held.filter(|held| held.head.persona == id);
        let none = || Error::not_found("this context has no backup with this id");
        let export = Export::read(&held.ok_or_else(none)?.data)?;
        let erased = self.ports.erase.erased_before().await?;
        self.take_in(scope, export, Some(&erased), self.new_id(idempotency), idempotency).await
    }
}

/// A rating as it leaves its scope: whose it is, where that is not the owner.
fn exported(scope: &Scope, rating: Rating) -> ExportRating {
    let Rating { user, helpful, note, rated_at, .. } = rating;
    ExportRating { user: (user != scope.user).then_some(user), helpful, note, rated_at }
}

/// Takes out of an export what was erased here since; returns how many messages.
fn hold_back(scope: &Scope, export: &mut Export, erased: &ErasedBefore) -> Result<u64> {
    let before = export.messages.len();
    let none = SessionId::new("-")?;
    let session = export.session.as_ref().unwrap_or(&none);
    export.messages.retain(|message| {
        let copy = NewMessage {
            origin: message.id,
            created_at: Some(message.created_at),
            ..NewMessage::new(message.role, "")
        };
        !erased.holds(scope, session, &copy)
    });
    Ok((before - export.messages.len()) as u64)
}
