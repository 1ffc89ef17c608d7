//! Files from an address. The hash is ours or the caller's: whoever answers cannot give another file.
//!
//! Plain HTTP by the client that is in the tree: the hub's own crate brings a second TLS stack and a cache of its
//! own, and checks no hash.

use std::path::Path;
use std::time::Duration;

use reqwest::Response;
use tempfile::NamedTempFile;
use throughline_core::{Error, ErrorKind, Result};

use super::super::files::{Check, io_error};
use super::{FetchProgress, FetchStep, Progress, advise, blocking, part_in};

const CONNECT: Duration = Duration::from_secs(20);
/// Without a byte.
const SILENCE: Duration = Duration::from_secs(60);
/// Of a file whose size is not known.
const MAX_BYTES: u64 = 1 << 30;
/// Bytes that are written at once.
const STEP: usize = 4 << 20;

/// What else there is to do.
const ELSEWHERE: &str = "or copy tokenizer.json and model.safetensors of sentence-transformers/all-MiniLM-L6-v2 from \
                         a machine that has them, and run `throughline model fetch --from FOLDER`";

/// What a file has to be.
#[derive(Debug, Clone, Copy)]
pub(super) struct Wanted<'a> {
    /// Its size, where it is known.
    pub(super) bytes: Option<u64>,
    pub(super) sha256: &'a str,
}

#[derive(Debug)]
pub(super) struct Client(reqwest::Client);

impl Client {
    pub(super) fn new() -> Result<Self> {
        // One that is there already is as good.
        let _ = rustls::crypto::ring::default_provider().install_default();
        let client = reqwest::Client::builder()
            .user_agent(concat!("throughline/", env!("CARGO_PKG_VERSION")))
            .connect_timeout(CONNECT)
            .read_timeout(SILENCE)
            .build();
        client.map(Self).map_err(|error| {
            let message = format!(
                "the HTTP client for the download cannot be set up ({}): check the system's \
                 certificates, {ELSEWHERE}",
                causes(&error)
            );
            Error::new(ErrorKind::Unavailable, message).with_source(error)
        })
    }

    /// Downloads and checks a file, to one in the folder that is removed unless it is given a name.
    pub(super) async fn download(
        &self,
        url: &str,
        wanted: Wanted<'_>,
        folder: &Path,
        progress: &Progress,
    ) -> Result<NamedTempFile> {
        let answer = self.0.get(url).send().await.map_err(|error| match error.is_builder() {
            true => Error::invalid(format!("`{url}` is not an address ({})", causes(&error))),
            false => unreachable(url, &error),
        })?;
        let status = answer.status();
        if !status.is_success() {
            let message = format!("{url} answers {status}: check the address, {ELSEWHERE}");
            return Err(Error::new(ErrorKind::Unavailable, message));
        }
        save(answer, url, wanted, folder, progress).await
    }
}

async fn save(
    mut answer: Response,
    url: &str,
    wanted: Wanted<'_>,
    folder: &Path,
    progress: &Progress,
) -> Result<NamedTempFile> {
    let total = wanted.bytes.or(answer.content_length()).unwrap_or_default();
    let most = wanted.bytes.unwrap_or(MAX_BYTES);
    let mut part = part_in(folder)?;
    let (mut check, mut done, mut waiting) = (Check::default(), 0, Vec::new());
    loop {
        let bytes = answer.chunk().await.map_err(|error| unreachable(url, &error))?;
        let ended = bytes.is_none();
        waiting.extend_from_slice(&bytes.unwrap_or_default());
        if ended || waiting.len() >= STEP {
            done += waiting.len() as u64;
            let bytes = std::mem::take(&mut waiting);
            (part, check) = blocking(move || {
                check.add(&bytes);
                std::io::Write::write_all(part.as_file_mut(), &bytes)
                    .map_err(|error| io_error(error, part.path()))?;
                Ok((part, check))
            })
            .await?;
            progress(FetchProgress { step: FetchStep::Download, done, total });
        }
        // What is longer is another file: there is no use in waiting for its end.
        if ended || done > most {
            break;
        }
    }
    check
        .compare(wanted.bytes, wanted.sha256, Path::new(url))
        .map_err(|error| advise(error, &format!("try again, {ELSEWHERE}")))?;
    Ok(part)
}

fn unreachable(address: &str, error: &reqwest::Error) -> Error {
    // The address is in the message already, and what went wrong in the causes only.
    let message = format!(
        "{address} cannot be reached ({}): check the network, a proxy (HTTPS_PROXY) and the \
         system's certificates (SSL_CERT_FILE), {ELSEWHERE}",
        causes(error)
    );
    Error::new(ErrorKind::Unavailable, message)
}

/// What an error says at the bottom.
fn causes(error: &dyn std::error::Error) -> String {
    let mut last = error;
    while let Some(source) = last.source() {
        last = source;
    }
    last.to_string()
}
