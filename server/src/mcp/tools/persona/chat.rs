//! `context-chat`: a turn of a persona, answered by the client's own model, or by the configured one where it has none.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use throughline_core::Result;
use throughline_core::access::Permission;
use throughline_core::ids::UserId;
use throughline_core::persona::{ChatRequest, Status};
use throughline_core::services::personas::ChatResult;
use throughline_engine::app::{KeptAnswer, PersonaThread};
use throughline_engine::config::ToolSet;

use super::forms::ConversationForm;
use super::in_camel_case;
use crate::mcp::sampling::{self, Answered, Sampled};
use crate::mcp::tool::{Call, Effect, Outcome, Tool};

/// The stop reason of a client whose model was cut off.
const CUT: &str = "maxTokens";

pub(super) fn tool() -> Tool {
    Tool::new::<Args, Answer, _>(
        ToolSet::Persona,
        "context-chat",
        "Send a message to a context and get its answer, with its personality and history. Your \
         client's model answers, or the configured one.",
        Effect::Adds,
        chat,
    )
    .needs(Permission::Chat)
    .asks()
}

#[derive(Debug, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
struct Args {
    context_id: String,
    message: String,
    /// Default true.
    maintain_personality: Option<bool>,
    /// Overrides the context's maxHistoryTokens.
    token_budget: Option<u32>,
}

#[derive(Debug, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
struct Answer {
    response: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    context_name: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    personality: Option<String>,
    user_message: ConversationForm,
    assistant_response: ConversationForm,
    metadata: Metadata,
}

#[derive(Debug, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
struct Metadata {
    tokens_used: u64,
    history_tokens: u32,
    history_truncated: bool,
    context_expiry: String,
    is_expired: bool,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    warnings: Vec<String>,
}

async fn chat(call: Call, asked: Args) -> Result<Outcome> {
    let app = &call.server.app;
    let thread = PersonaThread::to_chat(&app.engine, &call.who, &asked.context_id).await?;
    let request = ChatRequest {
        maintain_personality: asked.maintain_personality.unwrap_or(true),
        token_budget: asked.token_budget,
        ..ChatRequest::new(asked.message)
    };
    let answered = match sampling::brought(&call, thread.id, &request.message)? {
        Some(answered) => answered,
        None => {
            call.progress(0, 3, "reading").await;
            let configured = sampling::configured(&call).await?;
            let turn = app.prepare_turn(&call.who, &thread, request, configured.as_ref());
            let turn = call.server.bounded(call.who.client(), turn).await.map_err(in_camel_case)?;
            call.progress(1, 3, "asking the model").await;
            match sampling::sample(&call, turn, configured).await? {
                Sampled::Answered(answered) => *answered,
                Sampled::Asks(question) => return Ok(Outcome::Asks(question)),
            }
        }
    };
    call.progress(2, 3, "keeping the answer").await;
    let Answered { receipt, answer, model, mut warnings } = answered;
    let (keeps, who) = (app.clone(), call.who.clone());
    let answered = KeptAnswer { receipt, answer: answer.clone(), model, idempotency: None };
    let named = asked.context_id.clone();
    let written_by = (call.who.client(), Some(thread.scope.clone()));
    let kept = call.server.written(written_by, async move {
        keeps.keep_answer(&who, &asked.context_id, answered).await
    });
    let kept = kept.await.map_err(in_camel_case)?;
    if answer.stop_reason.as_deref() == Some(CUT) {
        warnings.push("the answer was cut at maxTokens".to_owned());
    }
    call.progress(3, 3, "done").await;
    Outcome::done(answer.text.clone(), &form(kept, warnings, &call, (&named, &call.scope()?.user)))
}

fn form(
    kept: ChatResult,
    warnings: Vec<String>,
    call: &Call,
    (named, user): (&str, &UserId),
) -> Answer {
    let engine = &call.server.app.engine;
    let (now, reads) = (engine.personas.now(), call.who.may_read());
    let form = |one| ConversationForm::of(one, named, (user, engine.masking));
    Answer {
        response: kept.answer.message.content.clone(),
        context_name: reads.then(|| kept.persona.name.clone()),
        personality: reads.then(|| engine.masking.shown(&kept.persona.personality).into_owned()),
        user_message: form(kept.question),
        assistant_response: form(kept.answer),
        metadata: Metadata {
            tokens_used: kept.tokens_used,
            history_tokens: kept.history_tokens,
            history_truncated: kept.history_truncated,
            context_expiry: kept.persona.expires_at.to_rfc3339(),
            is_expired: kept.persona.status(now) == Status::Expired,
            warnings,
        },
    }
}
