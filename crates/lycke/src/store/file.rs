//! The state file: replaced as a whole, so that a crash leaves either the old one or the new one.

use std::{
    fs::{self, File, OpenOptions},
    io::{self, Write as _},
    os::unix::fs::OpenOptionsExt as _,
    path::{Path, PathBuf},
    sync::mpsc,
    thread,
};

use tokio::sync::oneshot;

use super::{Store, lock::Lock};
use crate::plane::Answer;

type Job = (String, oneshot::Sender<io::Result<()>>);

/// A file that a thread of its own writes: syncing a disk takes long, and nobody else should wait meanwhile.
#[derive(Debug)]
pub(super) struct FileStore {
    jobs: mpsc::Sender<Job>,
    _lock: Lock,
}

impl FileStore {
    pub(super) fn start(directory: PathBuf, lock: Lock) -> io::Result<Self> {
        let (jobs, queue) = mpsc::channel::<Job>();
        thread::Builder::new().name("lycke-state".to_owned()).spawn(move || {
            while let Ok((text, answer)) = queue.recv() {
                // Whoever asked may have gone away, which changes nothing.
                let _ = answer.send(replace(&directory, &text));
            }
        })?;
        Ok(Self { jobs, _lock: lock })
    }
}

impl Store for FileStore {
    fn save(&self, text: String) -> Answer<io::Result<()>> {
        let (answer, answered) = oneshot::channel();
        let sent = self.jobs.send((text, answer));
        Box::pin(async move {
            let gone = || io::Error::other("the thread that writes the state has ended");
            sent.map_err(|_| gone())?;
            answered.await.map_err(|_| gone())?
        })
    }
}

pub(super) const FILE: &str = "state.json";

fn replace(directory: &Path, text: &str) -> io::Result<()> {
    let new = directory.join("state.json.new");
    let mut file = OpenOptions::new().write(true).create(true).truncate(true).mode(0o600).open(&new)?;
    file.write_all(text.as_bytes())?;
    file.sync_all()?;
    fs::rename(&new, directory.join(FILE))?;
    // The new name is on the disk only when the directory is.
    File::open(directory)?.sync_all()
}
