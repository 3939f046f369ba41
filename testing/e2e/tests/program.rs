//! The shipped program under our hands, shown on `cloudberth sim kube`.
#![cfg(target_os = "linux")]
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, clippy::indexing_slicing, missing_docs)]

use std::fs;
use std::path::{Path, PathBuf};
use std::time::Duration;

use cloudberth_e2e::{Client, Credentials, Error, Program, Request, eventually, shipped};

const SOON: Duration = Duration::from_secs(60);

fn sim_kube(kubeconfig: &Path) -> Program {
    let file = kubeconfig.to_str().unwrap();
    let args = ["sim", "kube", "--listen", "127.0.0.1:0", "--token", "secret", "--write-kubeconfig", file];
    Program::start(&args, &[]).unwrap()
}

/// A file of this test's own, removed at the end.
struct Scratch(PathBuf);

impl Scratch {
    fn new(name: &str) -> Self {
        Self(std::env::temp_dir().join(format!("cloudberth-program-{name}-{}", std::process::id())))
    }
}

impl Drop for Scratch {
    fn drop(&mut self) {
        let _ = fs::remove_file(&self.0);
    }
}

/// Processes that have `file` on their command line.
fn processes_with(file: &Path) -> usize {
    let name = file.to_str().unwrap();
    let entries = fs::read_dir("/proc").unwrap().map_while(Result::ok);
    let lines = entries.map(|entry| fs::read(entry.path().join("cmdline")).unwrap_or_default());
    lines.filter(|line| String::from_utf8_lossy(line).contains(name)).count()
}

async fn client(program: &mut Program) -> Client {
    let line = program.says("listening on https://", SOON).await.unwrap();
    let address = line.split("https://").nth(1).unwrap().split(',').next().unwrap().to_owned();
    let kubeconfig = fs::read_to_string(line.split("kubeconfig in ").nth(1).unwrap()).unwrap();
    let ca = kubeconfig.lines().find_map(|line| line.trim().strip_prefix("certificate-authority-data: "));
    let ca = String::from_utf8(decode(ca.unwrap())).unwrap();
    Client::new(format!("https://{address}"), &ca, &Credentials::Token("secret".into())).unwrap()
}

/// Base64.
fn decode(text: &str) -> Vec<u8> {
    const DIGITS: &str = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
    let digits: Vec<u32> =
        text.chars().filter_map(|c| DIGITS.find(c)).map(|at| u32::try_from(at).unwrap()).collect();
    let group = |four: &[u32]| {
        let bits = four.iter().fold(0, |bits, digit| bits << 6 | digit) << (6 * (4 - four.len()));
        bits.to_be_bytes()[1..four.len()].to_vec()
    };
    digits.chunks(4).flat_map(group).collect()
}

#[tokio::test]
async fn a_program_is_terminated_killed_and_restarted() {
    let file = Scratch::new("lives");
    let mut program = sim_kube(&file.0);
    let first = client(&mut program).await;
    assert_eq!(first.send(&Request::get("/readyz")).await.unwrap().status, 200);
    assert!(program.runs() && program.log().len() == 1, "{:?}", program.log());

    program.terminate();
    assert_eq!(program.ends(SOON).await.unwrap(), 0);
    assert!(!program.runs());
    program.restart().unwrap();
    let second = client(&mut program).await;
    assert_eq!(second.send(&Request::get("/readyz")).await.unwrap().status, 200);
    assert_eq!((program.log().len(), program.whole_log().len()), (1, 2));

    program.kill();
    assert_eq!(program.ends(SOON).await.unwrap(), 128 + 9);
    assert!(second.send(&Request::get("/readyz")).await.is_err());
    assert_eq!(processes_with(&file.0), 0);
}

#[tokio::test]
async fn a_frozen_program_answers_when_it_is_thawed() {
    let file = Scratch::new("frozen");
    let mut program = sim_kube(&file.0);
    let client = client(&mut program).await;
    program.freeze();
    eventually(SOON, "it does not answer", async || {
        let ask = Request::get("/readyz");
        match tokio::time::timeout(Duration::from_millis(500), client.send(&ask)).await {
            Err(_) => Ok(()),
            Ok(answer) => Err(format!("{answer:?}")),
        }
    })
    .await
    .unwrap();
    program.thaw();
    let version = client.send(&Request::get("/version")).await.unwrap().json();
    assert!(version["gitVersion"].as_str().is_some_and(|version| version.starts_with("v1.")), "{version}");
    // A frozen one can be killed too.
    program.freeze();
    drop(program);
    assert_eq!(processes_with(&file.0), 0);
}

#[tokio::test]
async fn a_program_that_ends_by_itself_shows_its_log() {
    let mut program = Program::start(&["sim", "kube", "--no-such-flag"], &[]).unwrap();
    let code = program.ends(SOON).await.unwrap();
    let log = program.log().join("\n");
    assert!(code != 0 && log.contains("--no-such-flag"), "{code} {log}");
    let error = program.says("listening", Duration::from_millis(200)).await.unwrap_err();
    assert!(
        matches!(error, Error::Never { .. }) && error.to_string().contains("it ended with Some("),
        "{error}"
    );
}

#[tokio::test]
async fn it_sees_only_the_environment_that_it_is_given() {
    let mut program =
        Program::start_other(Path::new("/usr/bin/env"), &[], &[("TOKEN_FILE", "/a b")]).unwrap();
    assert_eq!(program.ends(SOON).await.unwrap(), 0);
    let log = program.log();
    let mut names: Vec<&str> = log.iter().map(|line| line.split('=').next().unwrap()).collect();
    // Shells add these for themselves.
    names.retain(|name| !matches!(*name, "PWD" | "SHLVL" | "_" | "OLDPWD"));
    names.sort_unstable();
    assert_eq!(names, ["HOME", "PATH", "TOKEN_FILE"]);
    assert!(log.contains(&"TOKEN_FILE=/a b".to_owned()), "{log:?}");
}

#[test]
fn a_panic_stops_the_program() {
    let file = Scratch::new("panic");
    let path = file.0.clone();
    let test = std::thread::spawn(move || {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
        runtime.block_on(async {
            let mut program = sim_kube(&path);
            client(&mut program).await;
            assert!(processes_with(&path) > 0);
            panic!("a failed test");
        });
    });
    assert!(test.join().is_err());
    assert_eq!(processes_with(&file.0), 0);
}

#[test]
fn it_is_the_one_from_this_checkout() {
    let program = shipped().unwrap();
    let said = std::process::Command::new(program).arg("--version").output().unwrap();
    let said = String::from_utf8(said.stdout).unwrap();
    assert_eq!(said.trim(), format!("cloudberth {}", env!("CARGO_PKG_VERSION")));
}
