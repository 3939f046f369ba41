//! Prometheus and promtool with stand-ins for `apt-get` and `dpkg-deb`: shell scripts that note how they were called.
#![cfg(unix)]
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, clippy::indexing_slicing, missing_docs)]

use std::ffi::OsString;
use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};

use kube_assets::{Error, PrometheusSurroundings, prometheus_in};

/// A directory of this test's own, removed at the end.
struct Scratch(PathBuf);

impl Scratch {
    fn new(name: &str) -> Self {
        let dir =
            Path::new(env!("CARGO_TARGET_TMPDIR")).join(format!("prometheus-{name}-{}", std::process::id()));
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

    /// Surroundings without Prometheus, in which `apt-get` does this.
    fn around(&self, apt_get: &str) -> PrometheusSurroundings {
        PrometheusSurroundings {
            given: None,
            path: self.0.join("path").into(),
            cache: Some(self.0.join("cache")),
            apt_get: self.script("apt-get", apt_get),
            dpkg_deb: self.script(
                "dpkg-deb",
                "[ -f \"$2\" ] && mkdir -p \"$3/usr/bin\" && touch \"$3/usr/bin/prometheus\" \"$3/usr/bin/promtool\"",
            ),
        }
    }

    fn calls(&self) -> Vec<String> {
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

#[test]
fn what_is_given_or_installed_is_taken_as_it_is() {
    let scratch = Scratch::new("given");
    let mut around = scratch.around("false");
    let (given, path) = (scratch.0.join("given"), scratch.0.join("path"));
    for dir in [&given, &path] {
        fs::create_dir_all(dir).unwrap();
        fs::write(dir.join("prometheus"), "").unwrap();
    }
    around.given = Some(given.clone());
    let said = prometheus_in(&around, &mut |_| ()).unwrap_err().to_string();
    assert!(said.contains("CLOUDBERTH_PROMETHEUS=") && said.contains("lacks"), "{said}");
    fs::write(given.join("promtool"), "").unwrap();
    assert_eq!(prometheus_in(&around, &mut |_| ()).unwrap().promtool, given.join("promtool"));
    around.given = None;
    assert!(prometheus_in(&around, &mut |_| ()).is_err(), "one of two is not enough");
    fs::write(path.join("promtool"), "").unwrap();
    assert_eq!(prometheus_in(&around, &mut |_| ()).unwrap().prometheus, path.join("prometheus"));
}

#[test]
fn the_package_is_unpacked_once() {
    let scratch = Scratch::new("once");
    let around = scratch.around("touch prometheus_1.deb");
    let mut told = Vec::new();
    let found = prometheus_in(&around, &mut |line| told.push(line.to_owned())).unwrap();
    assert!(found.prometheus.is_file() && found.promtool.is_file());
    assert_eq!(prometheus_in(&around, &mut |_| ()).unwrap(), found);
    assert_eq!(scratch.calls(), ["apt-get download", "dpkg-deb -x"]);
    assert!(told.len() == 1 && told[0].starts_with("unpacking"), "{told:?}");
    let left: Vec<_> = fs::read_dir(scratch.0.join("cache/cloudberth/prometheus"))
        .unwrap()
        .map(|entry| entry.unwrap().file_name())
        .collect();
    assert_eq!(left.len(), 2, "the programs and a lock: {left:?}");
}

#[test]
fn lists_of_its_own_are_fetched_where_the_machine_has_none() {
    let scratch = Scratch::new("lists");
    let around =
        scratch.around("case \"$*\" in *Dir::State=*download*) touch a.deb;; *update) ;; *) exit 1;; esac");
    prometheus_in(&around, &mut |_| ()).unwrap();
    assert_eq!(scratch.calls(), ["apt-get download", "apt-get -o", "apt-get -o", "dpkg-deb -x"]);
}

#[test]
fn a_machine_that_cannot_have_it_is_told_what_to_do() {
    let scratch = Scratch::new("none");
    let table = [
        ("no network", "echo 'E: no network' >&2; exit 100", None, "E: no network"),
        ("nothing downloaded", "true", None, "no package"),
        ("no apt-get", "true", Some("/nonexistent"), "/nonexistent: "),
    ];
    for (case, apt_get, instead, want) in table {
        let mut around = scratch.around(apt_get);
        if let Some(instead) = instead {
            around.apt_get = instead.into();
        }
        let error = prometheus_in(&around, &mut |_| ()).unwrap_err();
        assert!(matches!(error, Error::NoPrometheus { .. }), "{case}");
        let said = error.to_string();
        assert!(said.contains(want) && said.contains("install prometheus"), "{case}: {said}");
        assert!(!scratch.0.join("cache/cloudberth/prometheus/bin").exists(), "{case}");
    }
}
