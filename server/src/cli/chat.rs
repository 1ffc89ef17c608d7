//! `throughline chat` and `throughline models`.

use std::io::{IsTerminal as _, Read as _, Write as _};

use futures_util::{StreamExt as _, pin_mut};
use serde::Serialize;
use throughline_core::{Error, Result};
use throughline_engine::app::{ChatPiece, ChatTurn, Turn};
use throughline_engine::config::Config;
use throughline_engine::identity::Identity;
use throughline_engine::terminal::{Output, grouped, table};

use super::open::open;

#[derive(Debug, clap::Args)]
pub(super) struct Args {
    /// What to say; read from standard input if not given
    turn: Option<String>,
    /// The session
    #[arg(long, default_value = "chat")]
    session: String,
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
}

/// Answers one turn; the text is printed while it comes.
pub(super) async fn run(args: &Args, config: &Config, output: &Output) -> Result<()> {
    let user_turn = match &args.turn {
        Some(turn) => turn.clone(),
        None => said()?,
    };
    let app = open(config).await?;
    let caller = Identity::local(config.scope()?);
    let turn = ChatTurn {
        turn: Turn { user_turn, token_budget: args.budget, ..Turn::default() },
        model: args.model.clone(),
        specialist: args.specialist.clone(),
        max_tokens: args.max_tokens,
        ..ChatTurn::default()
    };
    let pieces = app.chat(caller, args.session.clone(), turn);
    pin_mut!(pieces);
    let mut reply = None;
    while let Some(piece) = pieces.next().await {
        match piece? {
            ChatPiece::Context(_) | ChatPiece::Window(_) | ChatPiece::ToolCall(_) => {}
            ChatPiece::Text(text) if output.is_json() => drop(text),
            ChatPiece::Text(text) => {
                let mut stdout = std::io::stdout();
                // A closed pipe is the reader's choice.
                let _ = stdout.write_all(text.as_bytes()).and_then(|()| stdout.flush());
            }
            ChatPiece::Done(done) => reply = Some(*done),
        }
    }
    app.meter.write().await;
    let reply = reply.ok_or_else(|| Error::internal("the chat ended without an answer"))?;
    let usage = reply.answer.usage;
    let answered = Answered {
        model: reply.model,
        text: reply.answer.text,
        stop_reason: reply.answer.stop_reason,
        input_tokens: usage.map(|used| used.input),
        output_tokens: usage.map(|used| used.output),
        cost_usd: reply.cost,
        messages: reply.stored.iter().map(ToString::to_string).collect(),
    };
    // People have read the text; the line ends here.
    output.result(&answered, String::new)
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
    items: Vec<ModelLine>,
    /// What has to be set for the providers that are not configured.
    missing: Vec<String>,
}

#[derive(Serialize)]
struct ModelLine {
    model: String,
    window: u32,
    max_output: u32,
    tools: bool,
    input_price: Option<f64>,
    output_price: Option<f64>,
}

/// Lists the models that can answer, and says which key is missing.
pub(super) fn models(config: &Config, output: &Output) -> Result<()> {
    let models = throughline_engine::compose::chat_models(config)?;
    let items = models.providers.iter().flat_map(|provider| {
        provider.models().iter().map(|model| ModelLine {
            model: format!("{}:{}", provider.name(), model.id),
            window: model.window,
            max_output: model.max_output,
            tools: model.tools,
            input_price: model.price.map(|price| price.input),
            output_price: model.price.map(|price| price.output),
        })
    });
    let mut missing = Vec::new();
    if models.provider("openai").is_none() {
        missing.push(
            "openai: set OPENAI_API_KEY or `providers.openai.api_key`, or `providers.openai.base_url` for a server \
             that needs no key"
                .to_owned(),
        );
    }
    let listed = Models { default: models.default.clone(), items: items.collect(), missing };
    output.result(&listed, || {
        let price = |price: Option<f64>| price.map_or("-".to_owned(), |price| format!("{price}"));
        let lines = listed.items.iter().map(|model| {
            vec![
                model.model.clone(),
                grouped(model.window.into()),
                grouped(model.max_output.into()),
                price(model.input_price),
                price(model.output_price),
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
