//! One process for one state directory.

use std::{
    fs::{File, OpenOptions},
    io::{self, Read as _, Seek as _, Write as _},
    os::unix::fs::OpenOptionsExt as _,
    path::Path,
};

use rustix::fs::{FlockOperation, flock};

/// The lock. The system lets go of it when the process ends, however it ends.
#[derive(Debug)]
pub(super) struct Lock(#[expect(dead_code, reason = "the open file is the lock")] File);

/// Why there is no lock.
pub(super) enum NoLock {
    /// Another process has it; its id, where it was written.
    Held(Option<String>),
    Failed(io::Error),
}

impl Lock {
    pub(super) fn take(path: &Path) -> Result<Self, NoLock> {
        let file =
            OpenOptions::new().read(true).write(true).create(true).truncate(false).mode(0o600).open(path);
        let mut file = file.map_err(NoLock::Failed)?;
        match flock(&file, FlockOperation::NonBlockingLockExclusive) {
            Ok(()) => {}
            Err(rustix::io::Errno::WOULDBLOCK) => {
                let mut holder = String::new();
                let _ = file.read_to_string(&mut holder);
                return Err(NoLock::Held(Some(holder.trim().to_owned()).filter(|id| !id.is_empty())));
            }
            Err(why) => return Err(NoLock::Failed(why.into())),
        }
        let written = file
            .set_len(0)
            .and_then(|()| file.rewind())
            .and_then(|()| writeln!(file, "{}", std::process::id()));
        written.map_err(NoLock::Failed)?;
        Ok(Self(file))
    }
}
