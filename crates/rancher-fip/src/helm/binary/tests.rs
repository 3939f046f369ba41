//! The binary, played by a shell script that writes down how it was called.

use std::{fs, os::unix::fs::PermissionsExt as _};

use cloudberth_core::{
    Clock,
    call::{Gate, ReadOnly, Unguarded},
};
use jiff::Timestamp;
use tokio::{
    sync::watch,
    time::{Instant, sleep},
};

use super::*;

struct Real(Instant);

impl Clock for Real {
    fn now(&self) -> Tick {
        Tick(self.0.elapsed())
    }
    fn wall(&self) -> Timestamp {
        Timestamp::UNIX_EPOCH
    }
}

struct World {
    dir: tempfile::TempDir,
    helm: BinaryHelm,
    stop: watch::Sender<bool>,
    start: Instant,
}

/// Notes arguments, environment, working directory and every file that is named, then does as `$PLAY` says.
const SCRIPT: &str = r#"#!/bin/sh
notes=@NOTES@
{
  echo "args: $*"
  echo "dir: $(ls -A | wc -l)"
  env | sort | sed 's/^/env: /'
  for arg in "$@"; do
    case $arg in
      --kubeconfig=*) echo "kubeconfig: $(stat -c %a "${arg#*=}") $(cat "${arg#*=}")" ;;
      --values=*) echo "values: $(cat "${arg#*=}" | tr '\n' '|')" ;;
    esac
  done
  [ -f "$HELM_REPOSITORY_CONFIG" ] && echo "repositories: $(stat -c %a "$HELM_REPOSITORY_CONFIG") $(cat "$HELM_REPOSITORY_CONFIG")"
} >> $notes
@PLAY@
"#;

impl World {
    fn new(play: &str) -> Self {
        let dir = tempfile::tempdir().unwrap();
        let (program, notes) = (dir.path().join("helm"), dir.path().join("notes"));
        fs::write(&program, SCRIPT.replace("@NOTES@", notes.to_str().unwrap()).replace("@PLAY@", play))
            .unwrap();
        fs::set_permissions(&program, fs::Permissions::from_mode(0o755)).unwrap();
        let scratch = dir.path().join("scratch");
        fs::create_dir(&scratch).unwrap();
        let environment = [
            ("PATH", std::env::var("PATH").unwrap()),
            ("KUBECONFIG", "/ours".into()),
            ("SSL_CERT_FILE", "/ca.pem".into()),
        ];
        let environment = environment.into_iter().map(|(name, value)| (name.into(), value.into())).collect();
        let settings = HelmSettings { program, ..HelmSettings::new(scratch, dir.path().into(), environment) };
        let settings = HelmSettings { grace: Duration::from_secs(30), ..settings };
        Self { dir, helm: BinaryHelm::new(settings), stop: watch::Sender::new(false), start: Instant::now() }
    }

    fn leash(&self, gate: impl Gate + 'static) -> Leash {
        Leash::new(Arc::new(Real(self.start)), Arc::new(gate), Duration::from_secs(5), self.stop.subscribe())
    }

    async fn run(&self, chart: &ChartRef, action: HelmAction) -> Result<(), HelmError> {
        self.helm.run(b"token: s3cr3t", chart, &action, &self.leash(Unguarded)).await
    }

    fn notes(&self) -> String {
        fs::read_to_string(self.dir.path().join("notes")).unwrap_or_default()
    }

    /// Waits until the child has written `line`.
    async fn noted(&self, line: &str) {
        while !self.notes().contains(line) {
            sleep(Duration::from_millis(5)).await;
        }
    }

    /// The private directories of runs that are there now.
    fn places(&self) -> usize {
        let ours = fs::read_dir(self.dir.path().join("scratch")).unwrap().map(|entry| entry.unwrap().path());
        ours.map(|dir| fs::read_dir(dir).unwrap().count() - 1).sum()
    }
}

fn chart(reference: &str) -> ChartRef {
    ChartRef::new("lb", reference, "0.2.0", "fip", "a:\n  b: [ 1,\n  2 ]\n")
}

#[tokio::test]
async fn a_run_is_private_and_leaves_nothing() {
    let world = World::new("exit 0");
    world.run(&chart("oci://r/p/lb"), HelmAction::Install).await.unwrap();
    let notes = world.notes();
    assert!(notes.contains("args: upgrade lb oci://r/p/lb --version=0.2.0 --install"), "RF-54 {notes}");
    assert!(notes.contains("kubeconfig: 600 token: s3cr3t\n"), "RF-78 {notes}");
    assert!(
        notes.contains("values: a:|  b: [ 1,|  2 ]|\n"),
        "RF-17 the text reaches Helm unchanged: {notes}"
    );
    assert!(notes.contains("dir: 0\n"), "RF-208 nothing is in the working directory: {notes}");
    assert!(notes.contains("env: SSL_CERT_FILE=/ca.pem\n") && !notes.contains("env: KUBECONFIG"), "{notes}");
    let args = notes.lines().find(|line| line.starts_with("args: ")).unwrap();
    assert!(!args.contains("s3cr3t") && !args.contains("b: ["), "RF-152 {args}");
    assert_eq!(world.places(), 0, "RF-78");
}

#[tokio::test]
async fn a_failure_is_told_and_leaves_nothing() {
    let world = World::new("echo 'Error: UPGRADE FAILED: context deadline exceeded' >&2; exit 1");
    let error = world.run(&chart("oci://r/p/lb"), HelmAction::Upgrade).await.unwrap_err();
    assert_eq!(error.failure, HelmFailure::TimedOut, "{error}");
    assert_eq!(error.message, "helm upgrade failed: UPGRADE FAILED: context deadline exceeded");
    assert_eq!(world.places(), 0, "RF-78 after a failure too");
}

#[tokio::test]
async fn a_repositorys_password_is_in_a_private_file_only() {
    let world = World::new("case $1 in repo) exit 0;; esac; echo 'Error: 401 for u:h1dd3n' >&2; exit 1");
    let error = world.run(&chart("https://u:h1dd3n@r.example/c"), HelmAction::Install).await.unwrap_err();
    assert!(!error.message.contains("h1dd3n") && error.message.contains("[redacted]"), "RF-206 {error}");
    let notes = world.notes();
    let calls: Vec<_> = notes.lines().filter_map(|line| line.strip_prefix("args: ")).collect();
    assert_eq!(calls[0], "repo update lb", "RF-206");
    assert!(calls[1].starts_with("upgrade lb lb/lb --version=0.2.0 --install"), "RF-206 {calls:?}");
    assert!(calls.iter().all(|call| !call.contains("h1dd3n")), "RF-206 {calls:?}");
    assert!(
        notes.lines().any(|line| line.starts_with("repositories: 600 ") && line.contains("h1dd3n")),
        "RF-206 {notes}"
    );
}

#[tokio::test]
async fn paths_are_relative_to_this_program_and_roll_backs_need_no_chart() {
    let world = World::new("exit 0");
    world.run(&chart("./charts/lb.tgz"), HelmAction::Install).await.unwrap();
    let path = world.dir.path().join("./charts/lb.tgz");
    assert!(
        world.notes().contains(&format!("args: upgrade lb {} ", path.display())),
        "RF-56 {}",
        world.notes()
    );
    world.run(&chart(""), HelmAction::Rollback { to: 4 }).await.unwrap();
    assert!(world.notes().contains("args: rollback lb 4 "), "RF-68");
    assert_eq!(
        world.run(&chart(""), HelmAction::Install).await.unwrap_err().failure,
        HelmFailure::Rejected,
        "RF-56"
    );
}

#[tokio::test]
async fn the_source_is_asked_for_a_version() {
    let world = World::new("printf 'apiVersion: v2\\nname: lb\\nversion: 0.15.3\\n'");
    let range = ChartRef { version: "0.15".to_owned(), ..chart("https://r.example/c") };
    let leash = world.leash(ReadOnly);
    assert_eq!(world.helm.resolve(&range, &leash).await.unwrap(), "0.15.3", "RF-204 it needs no claim");
    assert!(world.notes().contains("args: show chart lb --repo=https://r.example/c --version=0.15"));
    let nothing = World::new("echo nonsense");
    let error = nothing.helm.resolve(&range, &nothing.leash(ReadOnly)).await.unwrap_err();
    assert_eq!(error.failure, HelmFailure::Fetch);
}

#[tokio::test]
async fn nothing_is_begun_without_a_claim() {
    let world = World::new("exit 0");
    let leash = world.leash(ReadOnly);
    let error = world.helm.run(b"", &chart("oci://r/p/lb"), &HelmAction::Install, &leash).await.unwrap_err();
    assert_eq!(error.failure, HelmFailure::Stopped, "L9-805 {error}");
    assert_eq!(world.notes(), "", "L9-805");
}

#[tokio::test]
async fn a_child_is_told_when_the_program_ends_and_is_waited_for() {
    let world = World::new(
        "trap 'echo told >> $notes; exit 1' TERM; echo ready >> $notes; while :; do sleep 0.01; done",
    );
    let chart = chart("oci://r/p/lb");
    let stop = async {
        world.noted("ready").await;
        world.stop.send_replace(true);
    };
    let (done, ()) = tokio::join!(world.run(&chart, HelmAction::Upgrade), stop);
    assert_eq!(done.unwrap_err().failure, HelmFailure::Stopped, "RF-75");
    assert!(world.notes().contains("told"), "RF-75");
    assert_eq!(world.places(), 0, "RF-78");
}

#[tokio::test]
async fn one_that_does_not_listen_is_killed_with_its_helpers() {
    let mut world = World::new(
        "trap '' TERM; sh -c 'echo helper $$ >> $0; exec sleep 1000' $notes & echo ready $$ >> $notes; wait",
    );
    world.helm.settings.timeout = Duration::from_millis(300);
    world.helm.settings.margin = Duration::from_millis(200);
    world.helm.settings.grace = Duration::from_millis(200);
    let error = world.run(&chart("oci://r/p/lb"), HelmAction::Upgrade).await.unwrap_err();
    assert_eq!(error.failure, HelmFailure::TimedOut, "RF-73 {error}");
    for who in ["ready ", "helper "] {
        dead(&world, who, "RF-73").await;
    }
}

#[tokio::test]
async fn a_dropped_run_leaves_no_process_and_no_file() {
    let world = World::new("echo ready $$ >> $notes; exec sleep 1000");
    let chart = chart("oci://r/p/lb");
    tokio::select! {
        done = world.run(&chart, HelmAction::Upgrade) => panic!("{done:?}"),
        () = world.noted("ready") => {}
    }
    dead(&world, "ready ", "dropped").await;
    assert_eq!(world.places(), 0, "RF-78");
}

/// Waits until the process whose id follows `mark` in the notes is gone, or a corpse that nobody has fetched.
async fn dead(world: &World, mark: &str, case: &str) {
    let notes = world.notes();
    let Some(pid) = notes.lines().find_map(|line| line.strip_prefix(mark)) else {
        // It was killed before it could say anything.
        return;
    };
    let alive = || fs::read_to_string(format!("/proc/{pid}/stat")).is_ok_and(|stat| !stat.contains(") Z "));
    for _ in 0..12_000 {
        if !alive() {
            return;
        }
        sleep(Duration::from_millis(5)).await;
    }
    panic!("{case}: {mark}{pid} is still alive");
}

#[tokio::test]
async fn a_missing_program_is_a_clear_error() {
    // An operator's settings do not reach it.
    let mut world = World::new("[ \"$1\" = version ] && [ \"$HELM_DRIVER\" = secret ] && echo v3.20.0");
    world.helm.settings.environment.insert("HELM_DRIVER".into(), "memory".into());
    assert_eq!(world.helm.check().await.unwrap(), "v3.20.0");
    let settings = HelmSettings { program: "/nowhere/helm".into(), ..world.helm.settings.clone() };
    let missing = BinaryHelm::new(settings);
    let error = missing.check().await.unwrap_err();
    assert_eq!(error.failure, HelmFailure::Missing, "RF-76");
    assert!(
        error.message.contains("/nowhere/helm cannot be started") && error.message.contains("--helm"),
        "RF-76 {error}"
    );
    let leash = world.leash(Unguarded);
    let error = missing.run(b"", &chart("oci://r/p/lb"), &HelmAction::Install, &leash).await.unwrap_err();
    assert_eq!(error.failure, HelmFailure::Missing, "RF-76");
    let broken = World::new("exit 3");
    assert_eq!(broken.helm.check().await.unwrap_err().failure, HelmFailure::Missing, "RF-76");
}
