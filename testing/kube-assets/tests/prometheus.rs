//! Prometheus and promtool with stand-ins for `apt-get` and `dpkg-deb`: shell scripts that note how they were called.
#![cfg(unix)]
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, clippy::indexing_slicing, missing_docs)]

mod scratch;

use std::fs;

use kube_assets::{DebianSurroundings, Error, prometheus_in};
use scratch::Scratch;

const UNPACK: &str =
    "[ -f \"$2\" ] && mkdir -p \"$3/usr/bin\" && touch \"$3/usr/bin/prometheus\" \"$3/usr/bin/promtool\"";

/// Surroundings without Prometheus, in which `apt-get` does this.
fn around(scratch: &Scratch, apt_get: &str) -> DebianSurroundings {
    scratch.around(apt_get, UNPACK)
}

#[test]
fn what_is_given_or_installed_is_taken_as_it_is() {
    let scratch = Scratch::new("prometheus-given");
    let mut around = around(&scratch, "false");
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
    let scratch = Scratch::new("prometheus-once");
    let around = around(&scratch, "touch prometheus_1.deb");
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
    let scratch = Scratch::new("prometheus-lists");
    let around =
        around(&scratch, "case \"$*\" in *Dir::State=*download*) touch a.deb;; *update) ;; *) exit 1;; esac");
    prometheus_in(&around, &mut |_| ()).unwrap();
    assert_eq!(scratch.calls(), ["apt-get download", "apt-get -o", "apt-get -o", "dpkg-deb -x"]);
}

#[test]
fn a_machine_that_cannot_have_it_is_told_what_to_do() {
    let scratch = Scratch::new("prometheus-none");
    let table = [
        ("no network", "echo 'E: no network' >&2; exit 100", None, "E: no network"),
        ("nothing downloaded", "true", None, "no package"),
        ("no apt-get", "true", Some("/nonexistent"), "/nonexistent: "),
    ];
    for (case, apt_get, instead, want) in table {
        let mut around = around(&scratch, apt_get);
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
