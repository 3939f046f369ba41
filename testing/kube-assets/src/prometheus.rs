//! Prometheus and promtool: found, or unpacked once from Debian's package, without any rights.

use std::path::{Path, PathBuf};

use crate::Error;
use crate::debian::{DebianSurroundings, Wanted};

/// The programs, all in one package.
const PROGRAMS: [&str; 2] = ["prometheus", "promtool"];
/// Names a directory that has both.
const GIVEN: &str = "CLOUDBERTH_PROMETHEUS";

const WANTED: Wanted = Wanted {
    title: "Prometheus",
    folder: "prometheus",
    packages: &["prometheus"],
    // Go programs need nothing else.
    with_dependencies: false,
    keep: "usr/bin",
    must_have: &PROGRAMS,
    error: |why| Error::NoPrometheus { why },
};

/// Where the programs are.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PrometheusAssets {
    /// The server.
    pub prometheus: PathBuf,
    /// What checks rules, runs their tests and reads pages of metrics.
    pub promtool: PathBuf,
}

impl PrometheusAssets {
    fn within(dir: &Path) -> Self {
        Self { prometheus: dir.join("prometheus"), promtool: dir.join("promtool") }
    }
}

/// Prometheus and promtool: those of `CLOUDBERTH_PROMETHEUS`, else of `PATH`, else unpacked once from Debian's package
/// into the cache.
pub fn prometheus(progress: &mut dyn FnMut(&str)) -> Result<PrometheusAssets, Error> {
    prometheus_in(&DebianSurroundings::from_env(GIVEN), progress)
}

/// [`prometheus`] in this environment.
pub fn prometheus_in(
    around: &DebianSurroundings,
    progress: &mut dyn FnMut(&str),
) -> Result<PrometheusAssets, Error> {
    let complete = |dir: &Path| PROGRAMS.iter().all(|program| dir.join(program).is_file());
    if let Some(dir) = &around.given {
        return if complete(dir) {
            Ok(PrometheusAssets::within(dir))
        } else {
            Err(Error::NoPrometheus { why: format!("{GIVEN}={} lacks one of them", dir.display()) })
        };
    }
    if let Some(dir) = std::env::split_paths(&around.path).find(|dir| complete(dir)) {
        return Ok(PrometheusAssets::within(&dir));
    }
    Ok(PrometheusAssets::within(&WANTED.provide(around, progress)?))
}
