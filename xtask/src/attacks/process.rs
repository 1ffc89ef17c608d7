//! What the system tells of a process.

use std::path::PathBuf;
use std::time::Duration;

use crate::Result;

/// Ticks of the processor's time in a second, as Linux tells it to programs.
const TICKS: u64 = 100;

/// A process on Linux.
pub(super) struct Process(PathBuf);

impl Process {
    pub(super) fn of(id: u32) -> Result<Self> {
        let folder = PathBuf::from(format!("/proc/{id}"));
        match folder.is_dir() {
            true => Ok(Self(folder)),
            false => Err("attacks are measured on Linux only: /proc tells nothing here".into()),
        }
    }

    /// From now on, the peak is that of what follows.
    pub(super) fn forget_peak(&self) -> Result<()> {
        Ok(std::fs::write(self.0.join("clear_refs"), "5")?)
    }

    /// The most memory that it held, in MiB.
    pub(super) fn peak_mib(&self) -> Result<u64> {
        self.memory("VmHWM:")
    }

    /// The memory that it holds, in MiB.
    pub(super) fn held_mib(&self) -> Result<u64> {
        self.memory("VmRSS:")
    }

    fn memory(&self, field: &str) -> Result<u64> {
        let status = std::fs::read_to_string(self.0.join("status"))?;
        let line = status.lines().find_map(|line| line.strip_prefix(field));
        let kib: u64 = line
            .and_then(|line| line.trim().strip_suffix(" kB"))
            .ok_or_else(|| format!("the process has no {field}"))?
            .parse()?;
        Ok(kib / 1_024)
    }

    /// The time that its threads had on the processor.
    pub(super) fn cpu(&self) -> Result<Duration> {
        let stat = std::fs::read_to_string(self.0.join("stat"))?;
        // Its name, in parentheses, may have spaces; the eleventh and twelfth field after it are the times.
        let fields = stat.rsplit_once(") ").ok_or("the process has no times")?.1;
        let ticks: u64 =
            fields.split(' ').skip(11).take(2).filter_map(|ticks| ticks.parse::<u64>().ok()).sum();
        Ok(Duration::from_millis(ticks * 1_000 / TICKS))
    }
}
