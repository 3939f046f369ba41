//! Private directories for Helm, and none left behind.
//!
//! They hold kubeconfigs, so nobody else may enter them, and they go when their run ends, however it ends. What a program
//! that was killed has left is removed by the next one: a directory whose lock can be taken belongs to nobody any more.

use std::{
    fs::{self, DirBuilder, File, OpenOptions},
    io::{self, Write as _},
    os::unix::fs::{DirBuilderExt as _, OpenOptionsExt as _},
    path::{Path, PathBuf},
    sync::atomic::{AtomicU32, Ordering},
};

const PREFIX: &str = "cloudberth-helm-";
const LOCK: &str = "lock";

/// The directory of this process. It is removed when this is dropped.
#[derive(Debug)]
pub(super) struct Scratch {
    dir: PathBuf,
    _lock: File,
    runs: AtomicU32,
}

impl Scratch {
    /// Makes one within `base`, and removes what dead processes left there.
    pub(super) fn open(base: &Path) -> io::Result<Self> {
        sweep(base);
        let mut number = 0_u32;
        loop {
            let dir = base.join(format!("{PREFIX}{}-{number}", std::process::id()));
            match DirBuilder::new().mode(0o700).create(&dir) {
                Ok(()) => {
                    // Somebody who sweeps at this very moment may have taken it for one that was left.
                    let lock = private_file(&dir.join(LOCK));
                    if let Ok(lock) = lock
                        && lock.try_lock().is_ok()
                    {
                        return Ok(Self { dir, _lock: lock, runs: AtomicU32::new(0) });
                    }
                }
                Err(why) if why.kind() == io::ErrorKind::AlreadyExists => {}
                Err(why) => return Err(why),
            }
            number = number.checked_add(1).ok_or_else(|| io::Error::other("no name is left"))?;
        }
    }

    /// A place for one run.
    pub(super) fn place(&self) -> io::Result<Place> {
        let number = self.runs.fetch_add(1, Ordering::Relaxed);
        let place = Place { dir: self.dir.join(number.to_string()) };
        for dir in [place.dir.clone(), place.work(), place.home()] {
            DirBuilder::new().mode(0o700).create(dir)?;
        }
        Ok(place)
    }
}

impl Drop for Scratch {
    fn drop(&mut self) {
        let _ = fs::remove_dir_all(&self.dir);
    }
}

fn sweep(base: &Path) {
    for entry in fs::read_dir(base).into_iter().flatten().map_while(Result::ok) {
        let ours = entry.file_name().to_str().is_some_and(|name| name.starts_with(PREFIX));
        let Ok(lock) = File::open(entry.path().join(LOCK)) else { continue };
        if ours && lock.try_lock().is_ok() {
            tracing::info!(directory = %entry.path().display(), "removing what a dead process left");
            let _ = fs::remove_dir_all(entry.path());
        }
    }
}

/// The private directory of one run of Helm. It is removed, with everything in it, when this is dropped.
#[derive(Debug)]
pub(super) struct Place {
    dir: PathBuf,
}

impl Place {
    /// Where Helm runs: empty, because Helm takes a directory named like the chart before it asks a repository.
    pub(super) fn work(&self) -> PathBuf {
        self.dir.join("work")
    }

    /// Helm's own files.
    pub(super) fn home(&self) -> PathBuf {
        self.dir.join("helm")
    }

    /// Writes a file that only this user can read, and says where it is.
    pub(super) fn write(&self, name: &str, content: &[u8]) -> io::Result<PathBuf> {
        let path = self.dir.join(name);
        private_file(&path)?.write_all(content)?;
        Ok(path)
    }
}

impl Drop for Place {
    fn drop(&mut self) {
        if let Err(why) = fs::remove_dir_all(&self.dir) {
            tracing::warn!(directory = %self.dir.display(), %why, "private files could not be removed");
        }
    }
}

fn private_file(path: &Path) -> io::Result<File> {
    OpenOptions::new().write(true).create_new(true).mode(0o600).open(path)
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::PermissionsExt as _;

    use super::*;

    fn names(base: &Path) -> Vec<String> {
        let entries = fs::read_dir(base).unwrap();
        let mut names: Vec<_> =
            entries.map(|entry| entry.unwrap().file_name().into_string().unwrap()).collect();
        names.sort();
        names
    }

    #[test]
    fn files_are_private_and_go_with_their_run() {
        let base = tempfile::tempdir().unwrap();
        let scratch = Scratch::open(base.path()).unwrap();
        let (a, b) = (scratch.place().unwrap(), scratch.place().unwrap());
        let file = a.write("kubeconfig", b"token").unwrap();
        let mode = |path: &Path| fs::metadata(path).unwrap().permissions().mode() & 0o777;
        assert_eq!(mode(&file), 0o600, "RF-78");
        for dir in [file.parent().unwrap(), &a.work(), &b.home()] {
            assert_eq!(mode(dir), 0o700, "RF-78 {}", dir.display());
        }
        drop(a);
        assert!(!file.exists() && b.work().exists(), "RF-78");
        drop((b, scratch));
        assert_eq!(names(base.path()), Vec::<String>::new(), "RF-78");
    }

    #[test]
    fn what_the_dead_left_is_removed_and_what_the_living_use_is_not() {
        let base = tempfile::tempdir().unwrap();
        let living = Scratch::open(base.path()).unwrap();
        let place = living.place().unwrap();
        // A killed process: its files are there, its lock is not held.
        let dead = base.path().join(format!("{PREFIX}1-0"));
        fs::create_dir_all(dead.join("0")).unwrap();
        fs::write(dead.join(LOCK), "").unwrap();
        fs::write(dead.join("0/kubeconfig"), "token").unwrap();
        // Things that only look alike.
        fs::create_dir(base.path().join(format!("{PREFIX}2-0"))).unwrap();
        fs::create_dir(base.path().join("other")).unwrap();
        fs::write(base.path().join("other").join(LOCK), "").unwrap();
        let second = Scratch::open(base.path()).unwrap();
        assert!(!dead.exists(), "RF-78 after a kill");
        assert!(place.work().exists() && second.dir.exists() && second.dir != living.dir);
        assert!(base.path().join(format!("{PREFIX}2-0")).exists() && base.path().join("other/lock").exists());
    }
}
