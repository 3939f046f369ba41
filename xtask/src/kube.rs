//! The real Kubernetes programs: providing them, and the stage of the suite that runs against them.

use std::fs;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU32, Ordering};
use std::thread::sleep;
use std::time::Duration;

use kube_assets::{Assets, NEWEST};
use lexopt::prelude::*;

use crate::built::TestProgram;
use crate::stages::{NEEDS_KUBERNETES, Outcome, side_by_side};
use crate::workspace::Workspace;
use crate::{Result, Verdict};

/// What is taken down when a test ends is gone within this time, on a busy machine too.
const GRACE: Duration = Duration::from_secs(60);
const LOOK_EVERY: Duration = Duration::from_millis(100);

/// `cargo xtask kube`.
pub(crate) fn command(_: &Workspace, mut args: lexopt::Parser) -> Result<Verdict> {
    let version = asked(&mut args).map_err(|why| why.to_string())?;
    let assets = provide(version.as_deref().unwrap_or(NEWEST))?;
    println!("{}", assets.dir().display());
    Ok(Verdict::Good)
}

/// The version that `--kube` names, if there is one.
pub(crate) fn asked(args: &mut lexopt::Parser) -> std::result::Result<Option<String>, lexopt::Error> {
    let mut version = None;
    while let Some(arg) = args.next()? {
        match arg {
            Long("kube") => version = Some(args.value()?.string()?),
            other => return Err(other.unexpected()),
        }
    }
    Ok(version)
}

/// Everything that the tests need, built before they run so that a person sees how far it is.
pub(crate) fn provide(version: &str) -> Result<Assets> {
    let mut progress = |line: &str| eprintln!("   {line}");
    let assets = kube_assets::ensure(version, &mut progress).map_err(|why| why.to_string())?;
    kube_assets::pods(version, &mut progress).map_err(|why| why.to_string())?;
    kube_assets::informers(&mut progress).map_err(|why| why.to_string())?;
    kube_assets::elector(&mut progress).map_err(|why| why.to_string())?;
    kube_assets::helm(&mut progress).map_err(|why| why.to_string())?;
    Ok(assets)
}

pub(crate) fn stage(workspace: &Workspace) -> Result<Outcome> {
    let assets = provide(NEWEST)?;
    println!("   with the programs in {}", assets.dir().display());
    tests(workspace)
}

/// These take longest and mostly wait, each for programs of its own: they run at the same time, and all others one after
/// the other beside them.
const BESIDE: [&str; 3] = ["scenarios", "rancher", "conformance"];

fn tests(workspace: &Workspace) -> Result<Outcome> {
    let built = workspace.built()?;
    // The program as it was built with the tests; asked for by itself, it would be compiled again.
    let program = built.program("cloudberth").map(|path| path.to_string_lossy().into_owned());
    let chores = std::env::current_exe().map_err(|why| why.to_string())?.to_string_lossy().into_owned();
    let mut env: Vec<_> = program.iter().map(|path| ("CLOUDBERTH_PROGRAM", path.as_str())).collect();
    env.push(("CLOUDBERTH_XTASK", &chores));
    let part = |wanted: &dyn Fn(&TestProgram) -> bool| {
        guarded(&env, |env| {
            let mut outcome = Outcome::default();
            let ours = built.tests.iter().filter(|test| NEEDS_KUBERNETES.contains(&test.package.as_str()));
            for test in ours.filter(|test| wanted(test)) {
                // What the tests counted is for people to see, also when all is well.
                outcome.add(test.run(&["--show-output"], env)?);
            }
            Ok(outcome)
        })
    };
    let [first, second, third] = BESIDE;
    let mut outcome = side_by_side([
        &|| part(&|test| test.target == first),
        &|| part(&|test| test.target == second),
        &|| part(&|test| test.target == third),
        &|| part(&|test| !BESIDE.contains(&test.target.as_str())),
    ])?;
    outcome.problems.extend_from_slice(&built.warnings);
    Ok(outcome)
}

/// Runs tests that start programs. They get a temporary directory of their own. Whatever is still in it afterwards,
/// or still runs with its name on the command line, was left behind.
pub(crate) fn guarded(
    env: &[(&str, &str)],
    run: impl FnOnce(&[(&str, &str)]) -> Result<Outcome>,
) -> Result<Outcome> {
    static RUNS: AtomicU32 = AtomicU32::new(0);
    let number = RUNS.fetch_add(1, Ordering::Relaxed);
    let dir = std::env::temp_dir().join(format!("cloudberth-kube-{}-{number}", std::process::id()));
    fs::create_dir_all(&dir).map_err(|why| format!("{}: {why}", dir.display()))?;
    let place = dir.to_string_lossy();
    let outcome = run(&[env, &[("TMPDIR", &*place)]].concat());
    let left = left_behind(&dir, GRACE);
    println!("   left behind: {}", if left.is_empty() { "nothing".to_owned() } else { left.join(", ") });
    fs::remove_dir_all(&dir).map_err(|why| format!("{}: {why}", dir.display()))?;
    let mut outcome = outcome?;
    outcome.problems.extend(left.into_iter().map(|what| format!("left behind: {what}")));
    Ok(outcome)
}

/// Processes that have `dir` on their command line and files in it; what goes away in time does not count.
fn left_behind(dir: &Path, grace: Duration) -> Vec<String> {
    let mut waited = Duration::ZERO;
    loop {
        let left = [processes(dir), files(dir)].concat();
        if left.is_empty() || waited >= grace {
            return left;
        }
        sleep(LOOK_EVERY);
        waited += LOOK_EVERY;
    }
}

/// Where there is no `/proc`, none are seen.
fn processes(dir: &Path) -> Vec<String> {
    let name = dir.to_string_lossy();
    let entries = fs::read_dir("/proc").into_iter().flatten().map_while(std::result::Result::ok);
    entries
        .filter_map(|entry| {
            let line = fs::read(entry.path().join("cmdline")).ok()?;
            let line = String::from_utf8_lossy(&line).replace('\0', " ");
            let pid = entry.file_name();
            line.contains(&*name).then(|| format!("process {} ({})", pid.display(), line.trim()))
        })
        .collect()
}

fn files(dir: &Path) -> Vec<String> {
    let entries = fs::read_dir(dir).into_iter().flatten().map_while(std::result::Result::ok);
    let mut paths: Vec<PathBuf> = entries.map(|entry| entry.path()).collect();
    paths.sort();
    paths.iter().map(|path| path.display().to_string()).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::tally::Tally;
    use crate::workspace::Sample;
    use std::io::{BufRead, BufReader};
    use std::process::{Command, Stdio};

    #[test]
    fn every_test_is_run_once_in_one_of_the_parts() {
        let files = [
            ("Cargo.toml", "[package]\nname = \"cloudberth-e2e\"\nedition = \"2024\"\n[workspace]\n"),
            ("src/lib.rs", "pub fn f() {}\n#[test] fn a() {}\n"),
            ("tests/conformance.rs", "#[test] fn e() {}\n"),
            ("tests/other.rs", "#[test] fn b() {}\n"),
            ("tests/rancher.rs", "#[test] fn c() {}\n"),
            ("tests/scenarios/main.rs", "mod scenarios { #[test] fn d() {} }\n"),
        ];
        let outcome = tests(&Sample::new("kube parts", &files).workspace).unwrap();
        assert_eq!(outcome.tally, Tally { passed: 5, failed: 0, skipped: 0 });
        assert_eq!(outcome.problems, Vec::<String>::new());
    }

    #[test]
    fn what_is_left_behind_is_named_and_what_goes_away_is_not() {
        let dir = std::env::temp_dir().join(format!("xtask-left-{}", std::process::id()));
        fs::create_dir_all(&dir).unwrap();
        assert_eq!(left_behind(&dir, Duration::ZERO), Vec::<String>::new());

        fs::write(dir.join("data"), "").unwrap();
        let script = "echo here; read go; rm \"$1/data\"";
        let mut command = Command::new("sh");
        command.args(["-c", script, "sh"]).arg(&dir).stdin(Stdio::piped()).stdout(Stdio::piped());
        let mut child = command.spawn().unwrap();
        // A process that was only just started has no command line yet; one that speaks has.
        let mut line = String::new();
        BufReader::new(child.stdout.take().unwrap()).read_line(&mut line).unwrap();
        let left = left_behind(&dir, Duration::ZERO);
        assert!(left.contains(&dir.join("data").display().to_string()), "{left:?}");
        if cfg!(target_os = "linux") {
            assert!(
                left.iter().any(|what| what.contains(&format!("process {} (sh", child.id()))),
                "{left:?}"
            );
        }
        // Closes its input, at which it goes on, and waits for its end.
        child.wait().unwrap();
        assert_eq!(left_behind(&dir, GRACE), Vec::<String>::new());
        fs::remove_dir_all(&dir).unwrap();
    }
}
