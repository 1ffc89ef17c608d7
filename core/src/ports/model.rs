//! Models. The request path waits for none but the one that answers.

use std::sync::Arc;

use async_trait::async_trait;
use futures_util::StreamExt as _;
use futures_util::stream::{self, BoxStream};

use crate::chat::{ChatAnswer, ChatEvent, ChatModelRequest, ModelInfo, TokenUsage};
use crate::error::Result;
use crate::fact::Find;
use crate::ports::VectorSpace;
use crate::summary::Draft;

/// Turns texts into vectors.
#[async_trait]
pub trait Embedder: Send + Sync {
    /// The space of its vectors; it changes when the model does. It has 0 dimensions while the size is not known, which
    /// [`Self::ready`] and [`Self::embed`] change; then it stays.
    fn space(&self) -> &VectorSpace;

    /// Makes sure that the size of the vectors is known. An embedder on a server may have to ask for it once; after an
    /// error, the next call asks again.
    async fn ready(&self) -> Result<()> {
        Ok(())
    }

    /// Whether a text takes microseconds and nothing that can be late: then texts are embedded with
    /// the write that brings them, else by jobs in the background.
    fn is_instant(&self) -> bool;

    /// One vector of `space().dimensions` values for each text, in order. A text that means nothing
    /// to the model (no word that it knows) has the vector of zeros, which is near nothing.
    async fn embed(&self, texts: &[&str]) -> Result<Vec<Vec<f32>>>;
}

/// An answer while it is written.
pub type ChatStream = BoxStream<'static, Result<ChatEvent>>;

/// A model that answers.
#[async_trait]
pub trait ChatModel: Send + Sync {
    /// Answers once. An adapter may send a request again only before the first byte of an answer, and only after a lost
    /// connection or a failure that may pass. `Declined` where the model, or who decides for it, refuses or says nothing,
    /// with [`Unanswered`](crate::chat::Unanswered) as its source where the provider reports the usage; `Unavailable`
    /// where it cannot be reached or is too late; `RateLimited` where the provider says so. A call that is given up
    /// leaves nothing behind.
    async fn complete(&self, request: &ChatModelRequest) -> Result<ChatAnswer>;

    /// The same, piece by piece: the texts of its events together are the text of the answer at the end. Errors before
    /// the first event are of the call, later ones of the stream, which ends with them. Dropping it ends the request. A
    /// model that cannot do so gives the whole answer as one piece.
    async fn stream(&self, request: &ChatModelRequest) -> Result<ChatStream> {
        let answer = self.complete(request).await?;
        let text = Some(answer.text.clone()).filter(|text| !text.is_empty()).map(ChatEvent::Text);
        Ok(stream::iter(text.into_iter().chain([ChatEvent::Done(answer)]).map(Ok)).boxed())
    }
}

/// A service that has chat models.
#[async_trait]
pub trait ChatProvider: Send + Sync {
    /// What it is called in the configuration, such as `openai`.
    fn name(&self) -> &'static str;

    /// Its catalogue: the built-in models and those that the configuration adds.
    fn models(&self) -> &[ModelInfo];

    /// What is known of a model: one of the catalogue, or another that [`Self::model`] accepts, such as a dated snapshot.
    fn info(&self, id: &str) -> Option<ModelInfo> {
        self.models().iter().find(|model| model.id == id).cloned()
    }

    /// One of those that [`Self::info`] knows.
    fn model(&self, id: &str) -> Option<Arc<dyn ChatModel>>;

    /// Asks it for something that costs nothing, such as its list of models. `Unauthenticated` where it has no key or
    /// refuses the one it has, naming the variable to set; `Unavailable` where it cannot be reached.
    async fn check(&self) -> Result<()>;
}

/// What a model did for background work.
#[derive(Debug)]
pub struct Work<T> {
    /// What it gave: `Declined` where its answers are not in the form that was asked for, also when asked again;
    /// otherwise the errors of [`ChatModel::complete`].
    pub result: Result<T>,
    /// Answers that it gave.
    pub calls: u64,
    /// Their tokens, also where the result is an error; counted here where the provider does not tell them.
    pub used: TokenUsage,
    /// Millionths of a US dollar; 0 where the price is not known.
    pub micro_usd: u64,
}

/// Reads facts in messages by a model, in the background.
#[async_trait]
pub trait FactReader: Send + Sync {
    /// The model, as `provider:model`.
    fn model(&self) -> &str;

    /// Stored as `extracted_by` of every fact that it finds: of the model and of how it is asked, such as
    /// `model:openai:gpt-4.1-mini/1`. It changes whenever the same message may give other facts.
    fn name(&self) -> &str;

    /// Most tokens that reading these texts takes.
    fn most_tokens(&self, texts: &[String]) -> u64;

    /// What the model finds in these texts, which are of one conversation and in its order. What it finds is checked
    /// by [`OwnWords`](crate::fact::OwnWords), and nothing of it is believed before.
    async fn read(&self, texts: &[String]) -> Work<Vec<Find>>;
}

/// Writes summaries by a model, in the background.
#[async_trait]
pub trait Summarizer: Send + Sync {
    /// The model, as `provider:model`.
    fn model(&self) -> &str;

    /// Stored as the writer of every summary: of the model and of how it is asked, such as
    /// `model:openai:gpt-4.1-mini/1`. It changes whenever the same texts may give another summary.
    fn name(&self) -> &str;

    /// Most tokens that summarizing these texts takes.
    fn most_tokens(&self, texts: &[String]) -> u64;

    /// The lines of a summary of these texts, those that matter most first. They are checked by
    /// [`Rewriting`](crate::summary::Rewriting), and nothing of them is believed before.
    async fn summarize(&self, texts: &[String]) -> Work<Vec<Draft>>;
}
