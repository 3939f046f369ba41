//! Where a sandbox keeps its one file: a directory that only its owner may look into, and that the next sandbox clears
//! away if this one is killed.

use std::{
    fs::{self, DirBuilder, File, OpenOptions},
    io::{self, Write as _},
    os::unix::fs::{DirBuilderExt as _, OpenOptionsExt as _},
    path::{Path, PathBuf},
};

const PREFIX: &str = "cloudberth-sandbox-";
const LOCK: &str = "lock";

/// A directory of this process. Dropped, it is removed.
#[derive(Debug)]
pub(super) struct Place {
    directory: PathBuf,
    /// Held as long as the process lives, however it ends.
    _lock: File,
}

impl Place {
    /// Makes the directory below `base`. Also says which directories of sandboxes that were killed it removed.
    pub(super) fn take(base: &Path, name: &str) -> io::Result<(Self, Vec<PathBuf>)> {
        let cleared = clear(base);
        let directory = base.join(format!("{PREFIX}{name}"));
        // It gets its name when it is locked: another sandbox that begins just now would take it for a dead one's.
        let unnamed = base.join(format!(".{PREFIX}{name}"));
        DirBuilder::new().mode(0o700).create(&unnamed)?;
        let locked = new_file(&unnamed.join(LOCK)).and_then(|lock| {
            lock.try_lock()?;
            fs::rename(&unnamed, &directory)?;
            Ok(lock)
        });
        match locked {
            Ok(lock) => Ok((Self { directory, _lock: lock }, cleared)),
            Err(why) => {
                let _ = fs::remove_dir_all(&unnamed);
                Err(why)
            }
        }
    }

    /// Writes a file that nobody else may read.
    pub(super) fn write(&self, name: &str, content: &str) -> io::Result<PathBuf> {
        let path = self.directory.join(name);
        new_file(&path)?.write_all(content.as_bytes())?;
        Ok(path)
    }
}

impl Drop for Place {
    fn drop(&mut self) {
        // What cannot be removed now is cleared away by the next sandbox.
        let _ = fs::remove_dir_all(&self.directory);
    }
}

fn new_file(path: &Path) -> io::Result<File> {
    OpenOptions::new().write(true).create_new(true).mode(0o600).open(path)
}

/// Removes the directories of sandboxes that do not live any more: nobody holds their locks.
fn clear(base: &Path) -> Vec<PathBuf> {
    let Ok(entries) = fs::read_dir(base) else { return Vec::new() };
    let directories = entries.flatten().filter(|entry| {
        let ours = entry.file_name().to_string_lossy().starts_with(PREFIX);
        // A link could lead anywhere.
        ours && entry.file_type().is_ok_and(|kind| kind.is_dir())
    });
    let dead = directories.map(|entry| entry.path()).filter(|directory| {
        OpenOptions::new().write(true).open(directory.join(LOCK)).is_ok_and(|lock| lock.try_lock().is_ok())
    });
    dead.filter(|directory| fs::remove_dir_all(directory).is_ok()).collect()
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::PermissionsExt as _;

    use super::*;

    #[test]
    fn those_that_begin_at_the_same_time_leave_each_other_alone() {
        let base = tempfile::tempdir().unwrap();
        let path = base.path();
        for round in 0..50 {
            let begin = |number: usize| move || Place::take(path, &format!("{round}-{number}")).unwrap().0;
            let places = std::thread::scope(|scope| {
                let started: Vec<_> = (0..4).map(|number| scope.spawn(begin(number))).collect();
                started.into_iter().map(|one| one.join().unwrap()).collect::<Vec<_>>()
            });
            assert!(places.iter().all(|place| place.write("kubeconfig", "").is_ok()), "round {round}");
        }
    }

    #[test]
    fn two_live_side_by_side_and_a_dead_one_is_cleared_away() {
        let base = tempfile::tempdir().unwrap();
        let (one, cleared) = Place::take(base.path(), "1").unwrap();
        assert!(cleared.is_empty());
        let file = one.write("kubeconfig", "secret").unwrap();
        let mode = |path: &Path| fs::metadata(path).unwrap().permissions().mode() & 0o777;
        assert_eq!((mode(&file), mode(file.parent().unwrap())), (0o600, 0o700), "it holds a token");

        // What is left of a process that was killed: the directory, and a lock that nobody holds.
        let dead = base.path().join("cloudberth-sandbox-2");
        fs::create_dir(&dead).unwrap();
        fs::write(dead.join(LOCK), "").unwrap();
        let strange = base.path().join("cloudberth-sandbox-note");
        fs::create_dir(&strange).unwrap();

        let (two, cleared) = Place::take(base.path(), "3").unwrap();
        assert_eq!(cleared, [dead], "neither one that lives nor one without a lock");
        assert!(file.exists() && strange.exists());
        assert!(Place::take(base.path(), "3").is_err(), "nobody's directory is taken");
        drop((one, two));
        assert!(!file.exists(), "nothing is left behind");
    }
}
