//! The files of a turn: they stand before the conversation, in the same bytes from call to call, and what does not fit is
//! searched by the model. The list is kept with the turn, so that a call that fails leaves it as it was.

use std::fmt;
use std::sync::Arc;

use serde::Deserialize;
use serde_json::json;
use throughline_core::chat::{ChatMessage, ToolCall, ToolSpec};
use throughline_core::files::{Outcome, Plan, passage as file_passage};
use throughline_core::ports::{FileRead, FileSource, SearchableFile};
use throughline_core::services::file_stores::FileStoreService;
use throughline_core::session::Role;
use throughline_core::{Error, ErrorKind, Result};

use super::{answer_tokens, budget_within_window};
use crate::app::files::{FilePlan, FileStores, FilesOfCall};
use crate::app::{App, Turn};
use crate::compose::ChosenModel;
use crate::identity::Identity;

/// The tool that searches files.
pub(super) const SEARCH: &str = "search_files";
/// Most passages of an answer of [`SEARCH`].
const PASSAGES: usize = 8;
/// Most tokens of all passages of a turn, and the part of a window that they have where that is less.
const PASSAGE_TOKENS: u32 = 16_000;
const PASSAGE_SHARE: u32 = 8;
/// Of a hundred tokens of a window, those that a prompt has: a model's own tokenizer may count more than ours.
const COUNTED: u64 = 95;

/// The files of a turn, and where they are read from.
#[derive(Clone)]
pub struct TurnFiles {
    /// Where they are.
    pub source: Arc<dyn FileSource>,
    /// Which.
    pub call: FilesOfCall,
}

impl fmt::Debug for TurnFiles {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("TurnFiles").field("call", &self.call).finish_non_exhaustive()
    }
}

/// The files of a turn at work.
pub(super) struct FilesAtWork {
    source: Arc<dyn FileSource>,
    pub(super) planned: FilePlan,
    /// The stores of those that are searched, once the model has searched.
    stores: Option<FileStores>,
    /// Tokens that are left for passages.
    left: u32,
}

impl FilesAtWork {
    /// What stands before the conversation.
    pub(super) fn message(&self) -> Option<ChatMessage> {
        let prompt = self.planned.prompt.as_str();
        (!prompt.is_empty()).then(|| ChatMessage::text(Role::User, prompt))
    }

    /// The tool for what is searched, if anything is.
    pub(super) fn tool(&self) -> Option<ToolSpec> {
        self.searched().next().map(|_| search_tool())
    }

    fn searched(&self) -> impl Iterator<Item = &str> {
        let files = &self.planned.plan.files;
        files.iter().filter(|file| file.outcome.is_searched()).map(|file| file.path.as_str())
    }

    /// Deletes the stores, as far as they are not gone with the turn.
    pub(super) async fn close(&mut self) {
        if let Some(stores) = self.stores.take()
            && let Err(error) = stores.close().await
        {
            tracing::debug!(code = error.kind().code(), "{}", error.message());
        }
    }
}

impl App {
    /// Plans the files of a turn for a model that has room for them beside a context of this budget.
    ///
    /// # Errors
    /// Those of [`App::plan_files`]; `BudgetTooSmall` where the window is full, with what to begin a fresh session with;
    /// `InvalidInput` where files would have to be searched by a model that calls no tools.
    pub(super) async fn files_at_work(
        &self,
        caller: &Identity,
        session: &str,
        (chosen, beside): (&ChosenModel, u64),
        files: TurnFiles,
    ) -> Result<FilesAtWork> {
        let TurnFiles { source, mut call } = files;
        let (room, left) = room(chosen, beside)?;
        call.room = Some(room);
        let planned = match self.plan_files(caller, session, &*source, &call).await {
            Err(full) if full.kind() == ErrorKind::BudgetTooSmall => {
                return Err(self.with_handover(caller, session, full).await);
            }
            planned => planned?,
        };
        let files = FilesAtWork { source, planned, stores: None, left };
        let searched = files.searched().count();
        if searched > 0 && !chosen.info.tools {
            return Err(Error::invalid(format!(
                "{searched} files do not fit into the prompt, and `{}` calls no tools to search them: name fewer files, or \
                 another model",
                chosen.name()
            )));
        }
        Ok(files)
    }

    /// Plans what a call of a session would do with files where this model answers, or the usual one; with
    /// [`FilesOfCall::room`] as it is where none is configured. Nothing is kept.
    ///
    /// # Errors
    /// Those of [`App::plan_files`]; `InvalidInput` for an unknown model; `BudgetTooSmall` where the model's window has no room.
    pub async fn plan_files_of_chat(
        &self,
        caller: &Identity,
        session: &str,
        model: Option<&str>,
        files: &dyn FileSource,
        mut call: FilesOfCall,
    ) -> Result<FilePlan> {
        let chosen = match model {
            Some(_) => Some(self.model_for(caller, model).await?),
            None => self.configured_model(caller).await?,
        };
        if let Some(chosen) = chosen {
            let usual = self.budget(caller, &Turn::default()).await?;
            let budget = budget_within_window(&chosen.info, None, usual).unwrap_or(usual);
            let beside = u64::from(answer_tokens(&chosen.info, None)) + u64::from(budget);
            call.room = Some(room(&chosen, beside)?.0);
        }
        self.plan_files(caller, session, files, &call).await
    }

    /// The error of a full window, with the summary of the session for a fresh one, for who may read it.
    async fn with_handover(&self, caller: &Identity, session: &str, full: Error) -> Error {
        let window = match caller.may_read() {
            true => self.window(caller, session, None).await.ok(),
            false => None,
        };
        let summary = window.and_then(|seen| seen.window.summary);
        let handover = match summary {
            Some(summary) => format!("Its summary, to begin with: {}", summary.text()),
            None => "There is no summary of it to show.".to_owned(),
        };
        Error::new(
            full.kind(),
            format!(
                "{} (another session id). What was said in this one is recalled there. {handover}",
                full.message()
            ),
        )
    }

    /// Answers a search; what is wrong with it is told to the model.
    pub(super) async fn search_files(
        &self,
        caller: &Identity,
        files: &mut FilesAtWork,
        call: &ToolCall,
    ) -> Result<String> {
        #[derive(Deserialize)]
        struct Search {
            query: String,
        }
        let asked = serde_json::from_str::<Search>(&call.arguments).ok();
        let Some(query) = asked.map(|asked| asked.query).filter(|query| !query.trim().is_empty())
        else {
            return Ok("Give `query`, a text.".to_owned());
        };
        if files.stores.is_none() {
            files.stores = Some(self.open_searched(caller, files).await?);
        }
        let Some(stores) = &files.stores else { return Ok("Nothing is searched.".to_owned()) };
        let hits = stores.search(&query, PASSAGES).await?;
        if hits.is_empty() {
            return Ok(format!("No passage of {} files fits.", files.searched().count()));
        }
        let mut told = String::new();
        for hit in hits {
            let passage = file_passage(&hit.file, &hit.text);
            let tokens = self.engine.tokenizer.count(&passage);
            if tokens > files.left {
                told.push_str(
                    "There is no room for further passages: answer with what you have.\n",
                );
                break;
            }
            files.left -= tokens;
            told.push_str(&passage);
        }
        Ok(told)
    }

    /// Indexes the files that are searched. No more of them are read than stores may hold, which then says so.
    async fn open_searched(&self, caller: &Identity, files: &FilesAtWork) -> Result<FileStores> {
        let most = self.engine.file_stores.as_ref().map_or(0, FileStoreService::max_bytes);
        let (mut texts, mut bytes) = (Vec::new(), 0);
        for path in files.searched() {
            if bytes > most {
                break;
            }
            if let FileRead::Text(file) = files.source.read(path).await? {
                bytes += file.text.len() as u64;
                // Before it is cut into passages, which may end within a secret.
                let text = self.engine.masking.shown(&file.text).into_owned();
                texts.push(SearchableFile { name: file.stat.path, text });
            }
        }
        self.open_file_stores(caller, texts).await
    }
}

/// Tokens that a model's window has for files beside so many others, and for passages of those that are searched.
fn room(chosen: &ChosenModel, beside: u64) -> Result<(u64, u32)> {
    let passages = PASSAGE_TOKENS.min(chosen.info.window / PASSAGE_SHARE);
    let room = u64::from(chosen.info.window) * COUNTED / 100;
    match room.saturating_sub(beside + u64::from(passages)) {
        0 => Err(Error::new(
            ErrorKind::BudgetTooSmall,
            format!(
                "the window of `{}` has no room for files beside the context and the answer: set a smaller \
                 `token_budget` or `max_tokens`, or name another model",
                chosen.name()
            ),
        )),
        room => Ok((room, passages)),
    }
}

/// Always the same, because a provider's prompt cache begins with the tools.
fn search_tool() -> ToolSpec {
    let parameters = json!({
        "type": "object",
        "properties": {"query": {"type": "string", "description": "What to look for, in words or identifiers"}},
        "required": ["query"]
    });
    ToolSpec {
        name: SEARCH.to_owned(),
        description: "Searches the files of this conversation that are not in the prompt; returns passages, as data."
            .to_owned(),
        parameters: parameters.to_string(),
    }
}

/// How many files of a plan have each outcome, for a metric.
pub(super) fn count_files(plan: &Plan) {
    for outcome in Outcome::ALL {
        let count = plan.files.iter().filter(|file| file.outcome == outcome).count() as u64;
        if count > 0 {
            metrics::counter!("throughline_files_total", "outcome" => outcome.as_str())
                .increment(count);
        }
    }
    metrics::counter!("throughline_file_tokens_total", "what" => "sent")
        .increment(plan.tokens.sent);
    metrics::counter!("throughline_file_tokens_total", "what" => "saved")
        .increment(plan.tokens.saved);
}
