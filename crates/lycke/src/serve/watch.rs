//! The inventory file is read again when it changes.

use std::{os::unix::fs::MetadataExt as _, path::Path, time::Duration};

use tokio::{sync::Notify, time::sleep};

use crate::control::{Control, read_file};

/// The time between two looks at the file.
const LOOK: Duration = Duration::from_millis(400);
/// A file that is still being written is read after so many looks all the same.
const PATIENCE: u32 = 3;

/// What tells one version of a file from another: a new file over the old one has another inode, one that is written in
/// place has another time or length. `None` if it cannot be seen.
type Signature = Option<(u64, u64, i64, i64, u64)>;

fn signature(file: &Path) -> Signature {
    let seen = std::fs::metadata(file).ok()?;
    Some((seen.dev(), seen.ino(), seen.mtime(), seen.mtime_nsec(), seen.len()))
}

/// When a file that changes is read.
#[derive(Debug)]
struct Watch {
    /// The version that was read last.
    read: Signature,
    /// The version at the last look, and for how many looks it has been changing.
    changing: Option<(Signature, u32)>,
}

impl Watch {
    /// Whether the file is to be read now: it is another one than before, and nobody is writing it.
    fn is_due(&mut self, seen: Signature) -> bool {
        if seen == self.read {
            self.changing = None;
            return false;
        }
        let due = match self.changing {
            None => false,
            Some((before, looks)) => before == seen || looks >= PATIENCE,
        };
        if due {
            self.changing = None;
            self.read = seen;
        } else {
            self.changing = Some((seen, self.changing.map_or(1, |(_, looks)| looks + 1)));
        }
        due
    }
}

/// Reads the file again whenever it has changed, and whenever `asked` is notified; never ends.
pub(super) async fn follow_file(control: &Control, asked: &Notify) {
    let file = control.with_state(|state, _| state.file().to_owned());
    let mut watch = Watch { read: signature(&file), changing: None };
    // It may have changed between the start and now.
    let now = read_file(&file);
    if now.as_ref().ok() != Some(&control.with_state(|state, _| state.inventory.clone())) {
        let _ = control.take_inventory(now).await;
    }
    loop {
        let due = tokio::select! {
            biased;
            () = asked.notified() => {
                watch = Watch { read: signature(&file), changing: None };
                true
            }
            () = sleep(LOOK) => watch.is_due(signature(&file)),
        };
        if due {
            // Whoever reloads has told the log what is wrong.
            let _ = control.reload().await;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_file_is_read_once_it_is_complete() {
        let version = |number: u64| Some((1, number, 0, 0, 0));
        let mut watch = Watch { read: version(1), changing: None };
        let mut looks =
            |versions: &[Signature]| versions.iter().map(|seen| watch.is_due(*seen)).collect::<Vec<_>>();
        assert_eq!(looks(&[version(1), version(1)]), [false, false], "nothing has changed");
        assert_eq!(looks(&[version(2), version(2), version(2)]), [false, true, false], "CL-92 once");
        assert_eq!(
            looks(&[version(3), version(4), version(4)]),
            [false, false, true],
            "CL-92 it was being written"
        );
        assert_eq!(looks(&[version(5), version(4)]), [false, false], "CL-92 and back");
        let busy: Vec<_> = (6..12).map(version).collect();
        assert_eq!(looks(&busy), [false, false, false, true, false, false], "CL-92 it never rests");
        assert_eq!(looks(&[None, None]), [false, true], "CL-92 it is gone");
    }

    #[test]
    fn every_way_to_write_shows() {
        let directory = tempfile::tempdir().unwrap();
        let (file, other) = (directory.path().join("a"), directory.path().join("b"));
        assert_eq!(signature(&file), None);
        std::fs::write(&file, "1").unwrap();
        let first = signature(&file);
        std::fs::write(&file, "12").unwrap();
        let second = signature(&file);
        assert_ne!(first, second, "CL-92 written in place");
        std::fs::write(&other, "12").unwrap();
        std::fs::rename(&other, &file).unwrap();
        assert_ne!(second, signature(&file), "CL-92 renamed over it");
    }
}
