//! A directory for a test, with stand-ins for commands.

use std::ffi::OsString;
use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};

use kube_assets::DebianSurroundings;

/// A directory of this test's own, removed at the end.
pub(crate) struct Scratch(pub(crate) PathBuf);

impl Scratch {
    pub(crate) fn new(name: &str) -> Self {
        let dir = Path::new(env!("CARGO_TARGET_TMPDIR")).join(format!("{name}-{}", std::process::id()));
        fs::create_dir_all(&dir).unwrap();
        Self(dir)
    }

    fn script(&self, name: &str, body: &str) -> OsString {
        let path = self.0.join(name);
        let text = format!("#!/bin/sh\necho \"{name} $*\" >> '{}/calls'\n{body}\n", self.0.display());
        fs::write(&path, text).unwrap();
        fs::set_permissions(&path, fs::Permissions::from_mode(0o755)).unwrap();
        path.into()
    }

    /// Surroundings without any program, in which the two commands do this.
    pub(crate) fn around(&self, apt_get: &str, dpkg_deb: &str) -> DebianSurroundings {
        DebianSurroundings {
            given: None,
            path: self.0.join("path").into(),
            cache: Some(self.0.join("cache")),
            apt_get: self.script("apt-get", apt_get),
            dpkg_deb: self.script("dpkg-deb", dpkg_deb),
        }
    }

    pub(crate) fn calls(&self) -> Vec<String> {
        let text = fs::read_to_string(self.0.join("calls")).unwrap_or_default();
        let words = |line: &str| line.split(' ').take(2).collect::<Vec<_>>().join(" ");
        text.lines().map(words).collect()
    }
}

impl Drop for Scratch {
    fn drop(&mut self) {
        fs::remove_dir_all(&self.0).unwrap();
    }
}
