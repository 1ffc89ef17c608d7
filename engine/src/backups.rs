//! A copy of the embedded store for each day, in `backups/` of the data directory.

use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use throughline_core::ports::Clock;
use throughline_core::usage::UsageDay;
use throughline_core::{Error, ErrorKind, Result};
use tokio::sync::watch;

use crate::compose::{self, Engine};
use crate::config::{Config, StoreKind};

/// The folder of the copies.
const FOLDER: &str = "backups";
/// How often it is looked whether a new day has begun.
const LOOK_AGAIN: Duration = Duration::from_secs(60);
/// How long a copy that failed waits.
const RETRY: Duration = Duration::from_secs(3_600);
/// Around the day in a file's name.
const PREFIX: &str = "throughline-";
const SUFFIX: &str = ".db";
/// A part of a copy that a process was killed over has this suffix.
const PART: &str = ".part";

/// Makes the copies.
pub struct DailyBackups {
    config: Config,
    clock: Arc<dyn Clock>,
    folder: PathBuf,
}

impl DailyBackups {
    /// Those of a configuration; `None` where they are turned off, and of a store on a server, which has tools of its own.
    #[must_use]
    pub fn of(config: &Config, engine: &Engine) -> Option<Self> {
        let wanted = config.store == StoreKind::Sqlite && config.backup.days > 0;
        wanted.then(|| Self {
            folder: config.data_dir.join(FOLDER),
            config: config.clone(),
            clock: Arc::clone(&engine.clock),
        })
    }

    /// Makes a copy of every day until it is stopped. One that fails is logged and tried again.
    pub async fn run(self, mut stopped: watch::Receiver<bool>) {
        loop {
            let wait = match self.make().await {
                Ok(made) => {
                    if let Some(file) = made {
                        tracing::info!("backed up the store to {}", file.display());
                    }
                    LOOK_AGAIN
                }
                Err(error) => {
                    tracing::warn!(
                        code = error.kind().code(),
                        "the daily backup failed and will be retried in an hour: {}",
                        error.message()
                    );
                    RETRY
                }
            };
            tokio::select! {
                () = tokio::time::sleep(wait) => {}
                _ = stopped.wait_for(|stopped| *stopped) => return,
            }
        }
    }

    /// Makes the copy of today, where there is none, and then removes those that are too old. Returns its file.
    ///
    /// # Errors
    /// Those of the disk and of the store; older copies stay then.
    pub async fn make(&self) -> Result<Option<PathBuf>> {
        let now = self.clock.now();
        let today = now.to_rfc3339();
        let today = today.split('T').next().unwrap_or_default();
        let file = self.folder.join(format!("{PREFIX}{today}{SUFFIX}"));
        if file.exists() {
            return Ok(None);
        }
        compose::create_private(&self.folder)?;
        compose::backup(&self.config, &file, |_, _| {}).await?;
        let days = i64::from(self.config.backup.days);
        let first = UsageDay::from_days(UsageDay::of(now).days() + 1 - days).start().to_rfc3339();
        self.remove_before(first.split('T').next().unwrap_or_default())?;
        Ok(Some(file))
    }

    /// Removes the copies of days before this one, and parts that were left.
    fn remove_before(&self, first: &str) -> Result<()> {
        let failed = |error| cannot(&self.folder, "read", &error);
        for entry in std::fs::read_dir(&self.folder).map_err(failed)? {
            let path = entry.map_err(failed)?.path();
            let name = path.file_name().and_then(|name| name.to_str()).unwrap_or_default();
            let day = name.strip_prefix(PREFIX).and_then(|name| name.strip_suffix(SUFFIX));
            // Days in this form sort as text; a file of any other name is somebody's own.
            let is_old = day.is_some_and(|day| is_day(day) && day < first);
            if is_old || name.starts_with('.') && name.ends_with(PART) {
                std::fs::remove_file(&path).map_err(|error| cannot(&path, "removed", &error))?;
            }
        }
        Ok(())
    }
}

/// Whether a text has the form `2026-03-02`.
fn is_day(text: &str) -> bool {
    text.len() == 10
        && text.bytes().enumerate().all(|(at, byte)| match at {
            4 | 7 => byte == b'-',
            _ => byte.is_ascii_digit(),
        })
}

fn cannot(path: &Path, what: &str, error: &std::io::Error) -> Error {
    Error::new(ErrorKind::Unavailable, format!("{} cannot be {what}: {error}", path.display()))
}
