//! Users and permissions, which are Unix' own.
//!
//! xtask compiles everywhere, the servers run on Linux: elsewhere `up` has refused before it gets here.

use std::path::Path;
use std::process::Command;

use crate::Result;

/// As whom a server runs that refuses to be root's.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum User {
    Caller,
    Nobody,
}

#[cfg(unix)]
mod system {
    use std::fs::{Permissions, metadata, set_permissions};
    use std::os::unix::fs::{MetadataExt, PermissionsExt, chown};
    use std::os::unix::process::CommandExt;

    use super::{Command, Path, Result, User};

    /// User and group `nobody` of every Linux.
    const NOBODY: u32 = 65534;

    impl User {
        pub(in super::super) fn unprivileged() -> Result<Self> {
            let root = metadata("/proc/self")?.uid() == 0;
            Ok(if root { Self::Nobody } else { Self::Caller })
        }

        /// Makes the file or folder the user's.
        pub(in super::super) fn own(self, path: &Path) -> Result<()> {
            if self == Self::Nobody {
                chown(path, Some(NOBODY), Some(NOBODY))?;
            }
            Ok(())
        }

        /// Root's other groups go with the change of the user.
        pub(in super::super) fn run(self, command: &mut Command) -> &mut Command {
            match self {
                Self::Caller => command,
                Self::Nobody => command.uid(NOBODY).gid(NOBODY),
            }
        }
    }

    /// Sets who may read, write and run the file.
    pub(in super::super) fn set_mode(path: &Path, mode: u32) -> Result<()> {
        Ok(set_permissions(path, Permissions::from_mode(mode))?)
    }

    /// Whether every user can pass through the folder and all above it.
    pub(in super::super) fn open_to_all(folder: &Path) -> bool {
        let open = |folder: &Path| metadata(folder).is_ok_and(|found| found.mode() & 0o001 != 0);
        folder.ancestors().all(open)
    }
}

#[cfg(not(unix))]
mod system {
    use super::{Command, Path, Result, User};

    impl User {
        pub(in super::super) fn unprivileged() -> Result<Self> {
            Ok(Self::Caller)
        }

        pub(in super::super) fn own(self, _: &Path) -> Result<()> {
            Ok(())
        }

        pub(in super::super) fn run(self, command: &mut Command) -> &mut Command {
            command
        }
    }

    pub(in super::super) fn set_mode(_: &Path, _: u32) -> Result<()> {
        Ok(())
    }

    pub(in super::super) fn open_to_all(_: &Path) -> bool {
        true
    }
}

pub(super) use system::{open_to_all, set_mode};

#[cfg(all(test, unix))]
mod tests {
    use super::*;

    #[test]
    fn a_closed_folder_anywhere_above_is_seen() {
        let outer = std::env::temp_dir().join(format!("xtask-users-{}", std::process::id()));
        let inner = outer.join("inner");
        std::fs::create_dir_all(&inner).unwrap();
        set_mode(&inner, 0o755).unwrap();
        set_mode(&outer, 0o700).unwrap();
        assert!(!open_to_all(&inner));
        set_mode(&outer, 0o755).unwrap();
        assert_eq!(open_to_all(&inner), open_to_all(&std::env::temp_dir()));
        std::fs::remove_dir_all(outer).unwrap();
    }
}
