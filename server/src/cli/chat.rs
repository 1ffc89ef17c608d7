//! `throughline chat` and `throughline models`.

use std::io::{IsTerminal as _, Read as _, Write as _};
use std::path::PathBuf;

use futures_util::{StreamExt as _, pin_mut};
use serde::Serialize;
use throughline_core::persona::ChatRequest;
use throughline_core::{Error, Result};
use throughline_engine::app::{
    App, ChatPiece, ChatTurn, PersonaPiece, PersonaTurn, Turn, TurnFiles,
};
use throughline_engine::config::Config;
use throughline_engine::identity::Identity;
use throughline_engine::terminal::{Output, grouped, table};

use super::files;
use super::open::open;
use crate::wire::{FilePlanJson, ModelJson};

#[derive(Debug, clap::Args)]
pub(super) struct Args {
    /// What to say; read from standard input if not given
    turn: Option<String>,
    /// The session
    #[arg(long, default_value = "chat")]
    session: String,
    /// The context that answers, in place of a session; `throughline contexts list` shows their ids
    #[arg(long, value_name = "ID", conflicts_with_all = ["session", "specialist", "max_tokens"])]
    context: Option<String>,
    /// The model, as provider:model [default: the setting `chat.model`]
    #[arg(long)]
    model: Option<String>,
    /// The specialist that answers instead, from the window of the session
    #[arg(long, value_name = "NAME")]
    specialist: Option<String>,
    /// Token budget of the context
    #[arg(long, value_name = "TOKENS")]
    budget: Option<u32>,
    /// Maximum number of tokens of the answer
    #[arg(long, value_name = "TOKENS")]
    max_tokens: Option<u32>,
    /// A file or folder of the conversation; may be given several times
    #[arg(long = "file", value_name = "PATH", conflicts_with_all = ["context", "specialist"])]
    files: Vec<PathBuf>,
    /// A file or folder to send in any case; may be given several times
    #[arg(long, value_name = "PATH", conflicts_with_all = ["context", "specialist"])]
    priority: Vec<PathBuf>,
    /// A file or folder that the model only searches, in this turn; may be given several times
    #[arg(long = "attach", value_name = "PATH", conflicts_with_all = ["context", "specialist"])]
    attachments: Vec<PathBuf>,
}

#[derive(Serialize)]
struct Answered {
    model: String,
    text: String,
    stop_reason: Option<String>,
    input_tokens: Option<u64>,
    output_tokens: Option<u64>,
    cost_usd: Option<f64>,
    messages: Vec<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    files: Option<FilePlanJson>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    warnings: Vec<String>,
}

impl Answered {
    /// People have read the text; its line ends here.
    fn print(&self, output: &Output) -> Result<()> {
        output.result(self, String::new)?;
        self.warnings.iter().for_each(|warning| output.warning(warning));
        Ok(())
    }
}

/// Answers one turn; the text is printed while it comes.
pub(super) async fn run(args: &Args, config: &Config, output: &Output) -> Result<()> {
    let user_turn = match &args.turn {
        Some(turn) => turn.clone(),
        None => said()?,
    };
    let app = open(config).await?;
    let caller = Identity::local(config.scope()?);
    if let Some(context) = &args.context {
        return answered_by(&app, caller, context.clone(), args, user_turn, output).await;
    }
    let turn = ChatTurn {
        turn: Turn { user_turn, token_budget: args.budget, ..Turn::default() },
        model: args.model.clone(),
        specialist: args.specialist.clone(),
        max_tokens: args.max_tokens,
        files: turn_files(args, config)?,
        ..ChatTurn::default()
    };
    let pieces = app.chat(caller, args.session.clone(), turn);
    pin_mut!(pieces);
    let mut reply = None;
    while let Some(piece) = pieces.next().await {
        match piece? {
            ChatPiece::Context(_) | ChatPiece::Window(_) | ChatPiece::ToolCall(_) => {}
            ChatPiece::Text(text) => show(&text, output),
            ChatPiece::Done(done) => reply = Some(*done),
        }
    }
    app.meter.write().await;
    let reply = reply.ok_or_else(|| Error::internal("the chat ended without an answer"))?;
    let usage = reply.answer.usage;
    let warnings = reply.remarks();
    let answered = Answered {
        model: reply.model,
        text: reply.answer.text,
        stop_reason: reply.answer.stop_reason,
        input_tokens: usage.map(|used| used.input),
        output_tokens: usage.map(|used| used.output),
        cost_usd: reply.cost,
        messages: reply.stored.iter().map(ToString::to_string).collect(),
        files: reply.files.as_ref().map(FilePlanJson::from),
        warnings,
    };
    answered.print(output)
}

/// The files that the command names, if any.
fn turn_files(args: &Args, config: &Config) -> Result<Option<TurnFiles>> {
    let Args { files, priority, attachments, .. } = args;
    if [files, priority, attachments].iter().all(|paths| paths.is_empty()) {
        return Ok(None);
    }
    let (source, call) = files::named(config, files, priority, attachments, None)?;
    Ok(Some(TurnFiles { source, call }))
}

/// A context answers.
async fn answered_by(
    app: &App,
    caller: Identity,
    context: String,
    args: &Args,
    message: String,
    output: &Output,
) -> Result<()> {
    let request = ChatRequest { token_budget: args.budget, ..ChatRequest::new(message) };
    let turn = PersonaTurn { request, model: args.model.clone(), idempotency: None };
    let pieces = app.chat_with_persona(caller, context, turn);
    pin_mut!(pieces);
    let mut reply = None;
    while let Some(piece) = pieces.next().await {
        match piece? {
            PersonaPiece::Prepared => {}
            PersonaPiece::Text(text) => show(&text, output),
            PersonaPiece::Done(done) => reply = Some(*done),
        }
    }
    let reply = reply.ok_or_else(|| Error::internal("the chat ended without an answer"))?;
    let usage = reply.answer.usage;
    let kept = [&reply.kept.question, &reply.kept.answer];
    let answered = Answered {
        model: reply.model,
        text: reply.kept.answer.message.content.clone(),
        stop_reason: reply.answer.stop_reason,
        input_tokens: usage.map(|used| used.input),
        output_tokens: usage.map(|used| used.output),
        cost_usd: reply.cost,
        messages: kept.map(|one| one.message.id.to_string()).into(),
        files: None,
        warnings: reply.warnings,
    };
    answered.print(output)
}

/// Prints a piece of the text while it comes.
fn show(text: &str, output: &Output) {
    if output.is_json() {
        return;
    }
    let mut stdout = std::io::stdout();
    // A closed pipe is the reader's choice.
    let _ = stdout.write_all(text.as_bytes()).and_then(|()| stdout.flush());
}

fn said() -> Result<String> {
    if std::io::stdin().is_terminal() {
        return Err(Error::invalid("give something to say, as an argument or on standard input"));
    }
    let mut text = String::new();
    let unread = |error| Error::invalid("standard input is not UTF-8 text").with_source(error);
    std::io::stdin().read_to_string(&mut text).map_err(unread)?;
    Ok(text.trim_end().to_owned())
}

#[derive(Serialize)]
struct Models {
    default: Option<String>,
    items: Vec<ModelJson>,
    /// What has to be set for the providers that are not configured.
    missing: Vec<&'static str>,
}

/// Lists the models that can answer, and says which key is missing.
pub(super) fn models(config: &Config, output: &Output) -> Result<()> {
    let models = throughline_engine::compose::chat_models(config)?;
    let items = models.providers.iter().flat_map(|provider| ModelJson::all_of(&**provider));
    let items = items.collect();
    let listed = Models { default: models.default.clone(), items, missing: models.missing.clone() };
    output.result(&listed, || {
        let price = |price: Option<f64>| price.map_or("-".to_owned(), |price| format!("{price}"));
        let lines = listed.items.iter().map(|model| {
            vec![
                model.model.clone(),
                grouped(model.window.into()),
                grouped(model.max_output.into()),
                price(model.price.as_ref().map(|price| price.input)),
                price(model.price.as_ref().map(|price| price.output)),
            ]
        });
        let mut text = String::new();
        if !listed.items.is_empty() {
            text = table(&["model", "window", "answer", "$/M in", "$/M out"], lines);
        }
        for missing in &listed.missing {
            text.push_str(&format!("\nnot configured: {missing}"));
        }
        text.trim().to_owned()
    })
}
