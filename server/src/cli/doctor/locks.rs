//! Who has an SQLite file open, as Linux tells it.
//!
//! In WAL mode every connection holds a shared lock on one byte of the file with the ending `-shm`, and who
//! writes an exclusive one on another: the format of SQLite's shared memory, which does not change.

/// The byte that every connection holds.
const OPEN: &str = "128";
/// The byte that a writer holds.
const WRITE: &str = "120";

/// What processes do with a file, by their ids.
#[derive(Debug, PartialEq, Eq, Default)]
pub(super) struct Holders {
    pub(super) open: Vec<u32>,
    pub(super) writing: Vec<u32>,
}

/// Reads the text of `/proc/locks` for the file of this inode.
pub(super) fn holders(locks: &str, inode: u64) -> Holders {
    let mut holders = Holders::default();
    for line in locks.lines() {
        // `7: POSIX ADVISORY READ 4242 08:01:131090 128 128`; who waits has `->` behind the number.
        let fields: Vec<&str> = line.split_whitespace().collect();
        let [_, _, _, mode, process, file, first, ..] = fields.as_slice() else { continue };
        let of_file = file.rsplit(':').next().and_then(|text| text.parse().ok()) == Some(inode);
        let Some(process) = process.parse().ok().filter(|_| of_file) else { continue };
        match (*first, *mode) {
            (OPEN, _) => holders.open.push(process),
            (WRITE, "WRITE") => holders.writing.push(process),
            _ => {}
        }
    }
    holders.open.sort_unstable();
    holders.open.dedup();
    holders
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn holders_are_those_of_the_file() {
        let locks = "1: POSIX  ADVISORY  READ 42 08:01:7 128 128\n\
                     1: -> POSIX  ADVISORY  WRITE 43 08:01:7 120 120\n\
                     2: POSIX  ADVISORY  WRITE 44 08:01:7 120 120\n\
                     3: POSIX  ADVISORY  READ 44 08:01:7 128 128\n\
                     4: POSIX  ADVISORY  READ 45 08:01:8 128 128\n\
                     5: POSIX  ADVISORY  READ 46 08:01:7 124 124\n\
                     6: FLOCK  ADVISORY  WRITE -1 08:01:7 0 EOF\n\nnot a lock";
        let expected = Holders { open: vec![42, 44], writing: vec![44] };
        assert_eq!(holders(locks, 7), expected);
        assert_eq!(holders("", 7), Holders::default());
    }
}
