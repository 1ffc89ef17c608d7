//! `throughline demo`.

use std::path::PathBuf;

use serde::Serialize;
use throughline_core::context::{AssembledContext, Item, Section};
use throughline_core::ids::{ExternalId, SessionId};
use throughline_core::services::contexts::AssembleRequest;
use throughline_core::session::Role;
use throughline_core::text::clip;
use throughline_core::time::Timestamp;
use throughline_core::{Error, Result, Scope};
use throughline_engine::compose::Engine;
use throughline_engine::config::Config;
use throughline_engine::import::{
    ImportFile, ImportOptions, ImportSession, Reading, Sample, import, read_bytes, read_file, shows,
};
use throughline_engine::terminal::{Output, grouped, saved, table};

/// The sample that ships with the program: nine weeks of one person and her assistant.
const SAMPLE: &[u8] = include_bytes!("../../assets/demo-conversation.json");
/// Turns shown.
const TURNS: usize = 8;

#[derive(Debug, clap::Args)]
pub(super) struct Args {
    /// Your own conversation, in any format that `import` reads [default: a sample]
    file: Option<PathBuf>,
    /// Token budget of each context
    #[arg(long, default_value_t = 3_000)]
    budget: u32,
}

/// A turn to show: from a new session, or going on in the last one.
struct Turn {
    text: String,
    session: SessionId,
    evidence: Vec<ExternalId>,
}

#[derive(Serialize)]
struct ShownTurn {
    sample: Option<String>,
    turn: String,
    session: String,
    whole_history: u64,
    sent: u32,
    by_section: std::collections::BTreeMap<&'static str, u32>,
    evidence_shown: Option<String>,
    /// What the context quotes of the messages that contain the answer.
    answered_by: Vec<String>,
    milliseconds: f64,
}

pub(super) async fn run(args: &Args, output: &Output) -> Result<()> {
    let (file, name) = match &args.file {
        Some(path) => (read_file(path, &Reading::default())?, path.display().to_string()),
        None => (read_bytes(SAMPLE, "the sample conversation")?, "the sample conversation".into()),
    };
    let folder = tempfile::tempdir().map_err(|error| {
        Error::internal("the temporary folder for the store cannot be created").with_source(error)
    })?;
    let config = Config { data_dir: folder.path().to_owned(), ..Config::default() };
    let engine = Engine::open(&config).await?;
    let mut shown = Vec::new();
    let mut example = None;
    let mut counts = (0, 0);
    let conversations = conversations(&file);
    let each = TURNS.div_ceil(conversations.len().max(1)).max(2);
    for (index, (user, sessions, turns)) in conversations.into_iter().enumerate() {
        let scope = Scope::new("demo", &user, None)?;
        let total = sessions.iter().map(|session| session.messages.len() as u64).sum();
        let bar = output.progress(total, "importing");
        import(&engine, &scope, sessions, ImportOptions::default(), |done| bar.set_position(done))
            .await?;
        bar.finish_and_clear();
        counts.0 += total;
        counts.1 += sessions.len();
        for turn in pick(turns, each) {
            let (line, context) =
                show(&engine, &scope, file.samples.get(index), turn, args.budget).await?;
            shown.push(line);
            example.get_or_insert(context);
        }
    }
    output.result(&shown, || human(&name, counts, &shown, example.as_ref(), args.budget))
}

/// Each sample is a user of their own; a file without samples is one user.
fn conversations(file: &ImportFile) -> Vec<(String, &[ImportSession], Vec<Turn>)> {
    if file.samples.is_empty() {
        return vec![("me".to_owned(), &file.sessions, own_turns(&file.sessions))];
    }
    let samples = file.samples.iter().map(|sample| {
        let last = sample.sessions.last().map(|session| session.id.clone());
        let new = SessionId::new("a new session").ok();
        let turns = sample.questions.iter().enumerate().filter_map(|(index, question)| {
            // Every third question goes on in the last session, so that history is seen, too.
            let session = if index % 3 == 2 { last.clone() } else { new.clone() };
            Some(Turn {
                text: question.question.clone(),
                session: session?,
                evidence: question.evidence.clone(),
            })
        });
        (sample.id.clone(), sample.sessions.as_slice(), turns.collect())
    });
    samples.collect()
}

/// Without questions, users' own last words of each session are asked again, in that session.
fn own_turns(sessions: &[ImportSession]) -> Vec<Turn> {
    sessions
        .iter()
        .filter_map(|session| {
            let last = session.messages.iter().rfind(|message| message.role == Role::User)?;
            Some(Turn {
                text: last.content.clone(),
                session: session.id.clone(),
                evidence: Vec::new(),
            })
        })
        .collect()
}

/// `count` turns spread over all of them.
fn pick(turns: Vec<Turn>, count: usize) -> Vec<Turn> {
    let total = turns.len();
    let wanted: Vec<usize> = (0..count).map(|n| n * total / count.max(1)).collect();
    turns.into_iter().enumerate().filter(|(at, _)| wanted.contains(at)).map(|(_, t)| t).collect()
}

async fn show(
    engine: &Engine,
    scope: &Scope,
    sample: Option<&Sample>,
    turn: Turn,
    budget: u32,
) -> Result<(ShownTurn, AssembledContext)> {
    let request = AssembleRequest {
        token_budget: Some(budget),
        ..AssembleRequest::new(turn.session.clone(), &turn.text)
    };
    let started = std::time::Instant::now();
    let context = engine.contexts.assemble(scope, &request).await?;
    let milliseconds = started.elapsed().as_secs_f64() * 1e3;
    let shown = |id: &&ExternalId| sample.is_some_and(|sample| shows(&context, sample, id));
    let found = turn.evidence.iter().filter(shown).count();
    let is_evidence =
        |item: &Item| item.external_id.as_ref().is_some_and(|id| turn.evidence.contains(id));
    let quoted = context.recalled().into_iter().filter(|(item, _)| is_evidence(item));
    let answered_by = quoted.map(|(item, text)| {
        let day = item.at.map(Timestamp::day_in_words).unwrap_or_default();
        format!("{day}  {}", clip(&text.split_whitespace().collect::<Vec<_>>().join(" "), 300))
    });
    let answered_by = answered_by.collect();
    let line = ShownTurn {
        sample: sample.map(|sample| sample.id.clone()),
        turn: turn.text,
        session: turn.session.to_string(),
        whole_history: context.baseline_tokens,
        sent: context.budget.used,
        by_section: context
            .budget
            .by_section
            .iter()
            .map(|(section, tokens)| (section.as_str(), *tokens))
            .collect(),
        evidence_shown: (!turn.evidence.is_empty())
            .then(|| format!("{found} of {}", turn.evidence.len())),
        answered_by,
        milliseconds,
    };
    Ok((line, context))
}

fn human(
    name: &str,
    (messages, sessions): (u64, usize),
    shown: &[ShownTurn],
    example: Option<&AssembledContext>,
    budget: u32,
) -> String {
    let mut text = format!(
        "Imported {name}: {} messages in {sessions} sessions, into a temporary store.\n\n",
        grouped(messages),
    );
    if shown.is_empty() {
        text.push_str("There is no turn to show: the conversation has no message of a user.");
        return text;
    }
    if let Some(first) = shown.iter().find(|line| !line.answered_by.is_empty()) {
        text.push_str(&format!("The user asks: {}\nThe context has the answer:\n", first.turn));
        for line in &first.answered_by {
            text.push_str(&format!("  {line}\n"));
        }
        text.push_str(&format!(
            "It takes {} tokens; the whole history takes {} ({} saved).\n\n",
            grouped(first.sent.into()),
            grouped(first.whole_history),
            saved(first.sent.into(), first.whole_history)
        ));
    }
    text.push_str(&format!(
        "Tokens sent for some of the turns, with Throughline (at most {}) and with the whole \
         history:\n\n",
        grouped(budget.into())
    ));
    let heading = [
        "the user asks", "whole history", "sent", "saved", "summary", "history", "recalled",
        "evidence", "ms",
    ];
    let rows = shown.iter().map(|line| {
        let section = |section: Section| line.by_section[section.as_str()].to_string();
        vec![
            clip(&line.turn, 44),
            grouped(line.whole_history),
            grouped(line.sent.into()),
            saved(line.sent.into(), line.whole_history),
            section(Section::Summaries),
            section(Section::History),
            section(Section::Recall),
            line.evidence_shown.clone().unwrap_or_default(),
            format!("{:.1}", line.milliseconds),
        ]
    });
    text.push_str(&table(&heading, rows));
    text.push_str(
        "\n\nAll numbers are tokens. Summary, history and recalled are parts of the context. \
         Evidence is how many of\nthe messages that contain the answer are in the context, if the \
         file names them.",
    );
    if let Some(context) = example {
        text.push_str("\n\nThe context of the first of these turns, shortened:\n");
        for message in context.payload() {
            text.push_str(&format!("\n── {} ──\n{}\n", message.role, shortened(&message.content)));
        }
        let dropped = context.items.iter().filter(|item| item.span.is_none()).count();
        text.push_str(&format!(
            "\nThe account names {} candidates; {dropped} of them were left out or are part of the \
             header, each with its reason.\n\
             Next: `throughline import FILE`, then `throughline assemble \"…\"`; --json shows the \
             whole account.",
            context.items.len(),
        ));
    }
    text
}

/// The first and last lines of a long text.
fn shortened(content: &str) -> String {
    let lines: Vec<String> = content.lines().map(|line| clip(line, 110)).collect();
    match lines.len() {
        0..=12 => lines.join("\n"),
        count => format!(
            "{}\n  … {} more lines …\n{}",
            lines[..8].join("\n"),
            count - 11,
            lines[count - 3..].join("\n")
        ),
    }
}
