//! Chat and the endpoint for OpenAI's clients, as programs of others see them: the official clients and a program on
//! LangChain use the binary, and a mock server of others is its provider. `ci full` puts LiteLLM's proxy between the
//! two, and lets a small model answer.

pub(crate) mod latency;
mod provider;

use std::path::{Path, PathBuf};
use std::process::Command;

use self::provider::{KEY, LiteLlm, Mock, SmallModel};
use crate::Result;
use crate::proc::{all_succeed, binary, recreate, root, shell, target_dir, throughline};
use crate::service::{Service, make_key};
use crate::tools;

const PROFILE: &str = "debug";
const MODEL: &str = "gpt-4.1";
/// What LiteLLM passes on as it came; it has errors of its own.
const THROUGH_LITELLM: &str = "chat,memory,streaming,tools,pictures,not_stored,unknown_fields,embeddings,models,\
    langchain,own_api";
/// A question that the smallest of models can answer.
const QUESTION: &str = "What is the capital of France? Answer in one sentence.";

/// Runs every client; true when all that they tried did what it should.
pub(crate) fn check() -> Result<bool> {
    let folder = folder()?;
    let (npm, python) = fetch()?;
    crate::test::build()?;
    let mock = Mock::start(&npm, &folder)?;
    let served = Served::start(&binary(PROFILE)?, &folder, &mock.base, KEY)?;
    let javascript = programs().join("client.mjs");
    // Modules are looked for from where a program is.
    let there = npm.join("openai-client.mjs");
    std::fs::copy(javascript, &there)?;
    let mut in_javascript = Command::new(npm.join("node_modules").join(".bin").join("node"));
    in_javascript.arg(there).args(served.arguments(&mock.base, KEY));
    let in_python = served.python(&python, &mock, &mock.base, KEY)?;
    // One after the other: the first asks the mock what it was sent last.
    let python_is_good = all_succeed(vec![("python".to_owned(), in_python)])?;
    let good = all_succeed(vec![("javascript".to_owned(), in_javascript)])? && python_is_good;
    Ok(good && !served.service.panicked()?)
}

/// The same programs, where LiteLLM's proxy is the provider and has the mock behind it.
pub(crate) fn litellm() -> Result<bool> {
    let folder = folder()?;
    let (npm, python) = fetch()?;
    crate::test::build()?;
    let mock = Mock::start(&npm, &folder)?;
    let proxy = LiteLlm::start(&folder, &mock.base)?;
    let served = Served::start(&binary(PROFILE)?, &folder, &proxy.base, provider::LITELLM_KEY)?;
    let mut program = served.python(&python, &mock, &proxy.base, provider::LITELLM_KEY)?;
    program.args(["--parts", THROUGH_LITELLM]);
    Ok(all_succeed(vec![("through LiteLLM".to_owned(), program)])? && !served.service.panicked()?)
}

/// One turn that a model answers on this machine.
pub(crate) fn small_model() -> Result<bool> {
    let folder = folder()?;
    crate::test::build()?;
    let model = SmallModel::start(&folder)?;
    let data = folder.join("small-model-data");
    recreate(&data)?;
    let sh = shell()?;
    sh.change_dir(&data);
    let chat = throughline(&sh, PROFILE)?.args(["chat", QUESTION, "--model", "openai:smollm2"]);
    let chat = chat.args(["--set", "providers.openai.models=[\"smollm2\"]", "--max-tokens", "64"]);
    let chat = chat.args(["--json", "--data-dir"]).arg(&data);
    let url = format!("{}/v1", model.base);
    let told = chat.env("OPENAI_BASE_URL", url).env("OPENAI_API_KEY", "none").read()?;
    println!("{told}");
    let told: serde_json::Value = serde_json::from_str(&told)?;
    let is_answer = told["text"].as_str().is_some_and(|text| text.contains("Paris"));
    let counted = told["output_tokens"].as_u64().is_some_and(|count| count > 0);
    let stored = told["messages"].as_array().map_or(0, Vec::len);
    Ok(is_answer && counted && stored == 2)
}

/// Fetches the packages of npm and of Python at once.
fn fetch() -> Result<(PathBuf, PathBuf)> {
    let (npm, python) = std::thread::scope(|scope| {
        let python = scope.spawn(tools::e2e_python);
        (tools::e2e_npm(), python.join())
    });
    Ok((npm?, python.map_err(|_| "a thread panicked")??))
}

fn folder() -> Result<PathBuf> {
    let folder = target_dir()?.join("clients");
    std::fs::create_dir_all(&folder)?;
    Ok(folder)
}

fn programs() -> PathBuf {
    root().join("e2e").join("clients")
}

/// A service with a provider, and a key to it.
struct Served {
    service: Service,
    key: String,
}

impl Served {
    fn start(binary: &Path, folder: &Path, provider: &str, provider_key: &str) -> Result<Self> {
        let data = folder.join("data");
        recreate(&data)?;
        let key = make_key(binary, &data, "acme", Some("ana"))?;
        let settings = [
            format!("providers.openai.base_url={provider}/v1"),
            format!("providers.openai.api_key={provider_key}"),
            "providers.openai.max_retries=0".to_owned(),
            format!("providers.gemini.base_url={provider}/v1beta"),
            format!("providers.gemini.api_key={provider_key}"),
            "providers.gemini.max_retries=0".to_owned(),
            format!("chat.model=openai:{MODEL}"),
        ];
        let flags: Vec<_> = settings.iter().flat_map(|setting| ["--set", setting]).collect();
        Ok(Self { service: Service::start(binary, &data, &flags)?, key })
    }

    fn arguments(&self, provider: &str, provider_key: &str) -> [String; 8] {
        let flags = [
            ("--url", self.service.base.as_str()),
            ("--key", &self.key),
            ("--provider", provider),
            ("--provider-key", provider_key),
        ];
        let mut words = flags.into_iter().flat_map(|(flag, value)| [flag, value]);
        std::array::from_fn(|_| words.next().unwrap_or_default().to_owned())
    }

    fn python(
        &self,
        python: &Path,
        mock: &Mock,
        provider: &str,
        provider_key: &str,
    ) -> Result<Command> {
        let mut command = Command::new(python.join("python"));
        command.arg(programs().join("client.py")).args(self.arguments(provider, provider_key));
        command.args(["--mock", &mock.base, "--mock-key", KEY, "--program"]).arg(binary(PROFILE)?);
        Ok(command)
    }
}
