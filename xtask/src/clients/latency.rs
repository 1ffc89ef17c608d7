//! What the endpoint for OpenAI's clients costs beside the call of the model.

use std::path::PathBuf;

use xshell::cmd;

use super::provider::{KEY, Mock};
use super::{Served, folder, programs};
use crate::Result;
use crate::proc::{root, shell, target_dir};
use crate::tools;

/// Measures a binary, which is built if none is given; the JSON goes to `out`.
pub(crate) fn bench(binary: Option<PathBuf>, requests: u32, out: Option<PathBuf>) -> Result<()> {
    let folder = folder()?;
    let npm = tools::e2e_npm()?;
    let sh = shell()?;
    let binary = match binary {
        Some(binary) => std::path::absolute(binary)?,
        None => {
            crate::ci::release_build(&sh).run()?;
            crate::proc::binary("release")?
        }
    };
    let mock = Mock::start(&npm, &folder)?;
    let served = Served::start(&binary, &folder, &mock.base, KEY)?;
    let (program, requests) = (programs().join("latency.py"), requests.to_string());
    let texts = root().join("eval").join("extraction-tune.jsonl");
    let command = cmd!(sh, "python3 {program} --texts {texts} --requests {requests}");
    let command = command.args(served.arguments(&mock.base, KEY));
    // Not shown: it has keys.
    let measured = command.secret().quiet().read()?;
    println!("{measured}");
    let out = match out {
        Some(out) => std::path::absolute(out)?,
        None => target_dir()?.join("bench").join("openai.json"),
    };
    if let Some(parent) = out.parent() {
        std::fs::create_dir_all(parent)?;
    }
    std::fs::write(&out, measured + "\n")?;
    println!("Numbers as JSON: {}", out.display());
    Ok(())
}
