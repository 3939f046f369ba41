//! The sandbox with the real `kubectl`: every command of its own hints and of the tutorials is run, in order.
#![cfg(target_os = "linux")]
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, clippy::indexing_slicing, missing_docs)]
// The output is for people.
#![allow(clippy::print_stdout, clippy::print_stderr)]

mod support;

use std::{
    io::{BufRead as _, BufReader, Write as _},
    path::{Path, PathBuf},
    process::{Child, ChildStdin, Command, Stdio},
    sync::mpsc::{self, Receiver},
    thread,
    time::Duration,
};

use cloudberth_e2e::{ControlPlane, Options, shipped};
use support::assets;

/// It ends a hang and measures nothing.
const PATIENCE: Duration = Duration::from_secs(180);

/// A sandbox that runs. Dropped, it is killed.
struct Sandbox {
    child: Child,
    input: ChildStdin,
    lines: Receiver<String>,
    seen: Vec<String>,
    kubeconfig: String,
    hints: Vec<String>,
}

impl Sandbox {
    fn start(args: &[&str]) -> Self {
        let mut command = Command::new(shipped().unwrap());
        command
            .arg("sandbox")
            .args(args)
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::inherit());
        let mut child = command.spawn().unwrap();
        let (sender, lines) = mpsc::channel();
        let out = BufReader::new(child.stdout.take().unwrap());
        thread::spawn(move || out.lines().map_while(Result::ok).all(|line| sender.send(line).is_ok()));
        let input = child.stdin.take().unwrap();
        let mut new =
            Self { child, input, lines, seen: Vec::new(), kubeconfig: String::new(), hints: Vec::new() };
        let export = new.until("export KUBECONFIG=");
        export.trim().trim_start_matches("export KUBECONFIG=").clone_into(&mut new.kubeconfig);
        new.until("To try in another terminal:");
        loop {
            let line = new.until("");
            match line.strip_prefix("  ") {
                Some(hint) => new.hints.push(hint.to_owned()),
                None => return new,
            }
        }
    }

    /// Waits for a line with this in it.
    fn until(&mut self, part: &str) -> String {
        loop {
            match self.lines.recv_timeout(PATIENCE) {
                Ok(line) => {
                    self.seen.push(line.clone());
                    if line.contains(part) {
                        return line;
                    }
                }
                Err(why) => panic!("{part:?}: {why}\n{}", self.seen.join("\n")),
            }
        }
    }

    /// What a person types into a terminal with this kubeconfig; returns what it printed.
    fn shell(&self, command: &str) -> String {
        let kubectl = assets().kubectl;
        let path = format!("{}:/usr/bin:/bin", kubectl.parent().unwrap().display());
        let home = Path::new(&self.kubeconfig).parent().unwrap();
        let mut shell = Command::new("sh");
        shell.args(["-c", command]).env_clear().env("PATH", path).env("HOME", home);
        let run = shell.env("KUBECONFIG", &self.kubeconfig).output().unwrap();
        let (out, err) = (String::from_utf8_lossy(&run.stdout), String::from_utf8_lossy(&run.stderr));
        println!("$ {command}\n{out}{err}");
        assert!(run.status.success(), "$ {command}\n{out}{err}\n{}", self.seen.join("\n"));
        format!("{out}{err}")
    }

    fn end(mut self) {
        let pid = self.child.id().to_string();
        assert!(Command::new("kill").args(["-INT", &pid]).status().unwrap().success());
        self.until("The sandbox ends");
        assert!(self.child.wait().unwrap().success(), "{}", self.seen.join("\n"));
    }
}

impl Drop for Sandbox {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

#[test]
fn every_hint_of_every_cloud_works() {
    for provider in ["cloudlycke", "cloudscale", "binarylane", "brightbox"] {
        let sandbox = Sandbox::start(&["--provider", provider]);
        let hints = sandbox.hints.clone();
        assert!(hints.len() >= 7, "{hints:?}");
        for hint in hints {
            let shown = sandbox.shell(&hint);
            if hint.starts_with("kubectl get nodes") {
                assert_eq!(shown.matches(" Ready ").count(), 3, "{provider}: {shown}");
            }
            if hint.starts_with("curl") {
                assert!(shown.starts_with("hello from node-"), "{provider}: {shown}");
            }
        }
        sandbox.end();
    }
}

/// What a page tells its reader to do.
#[derive(Debug, PartialEq, Eq)]
enum Told {
    /// Run this in a shell.
    Run(String),
    /// Type this into the sandbox.
    Type(String),
}

fn told(page: &str) -> Vec<Told> {
    let mut all = Vec::new();
    let mut block = None;
    for line in page.lines() {
        match (line.strip_prefix("```"), block) {
            (Some(language), None) => block = Some(language),
            (Some(_), Some(_)) => block = None,
            (None, Some("sh")) => all.push(Told::Run(line.to_owned())),
            (None, Some("text")) => {
                all.extend(line.strip_prefix("> ").map(|typed| Told::Type(typed.to_owned())));
            }
            (None, _) => {}
        }
    }
    all
}

fn page(name: &str) -> String {
    let path: PathBuf = [env!("CARGO_MANIFEST_DIR"), "../../docs/tutorials", name].iter().collect();
    std::fs::read_to_string(path).unwrap()
}

/// Does what a page says, and returns everything that was shown.
fn follow(name: &str) -> String {
    let told = told(&page(name));
    let mut steps = told.into_iter();
    assert_eq!(steps.next(), Some(Told::Run("cargo run --release -- sandbox".to_owned())), "{name}");
    let mut sandbox = Sandbox::start(&[]);
    sandbox.shell("kubectl wait node node-1 node-2 node-3 --for=jsonpath='{.spec.providerID}' --timeout=60s");
    let mut screen = String::new();
    for step in steps {
        match step {
            Told::Run(command) => screen += &sandbox.shell(&command),
            Told::Type(line) => {
                writeln!(sandbox.input, "{line}").unwrap();
                // It is done before the next command, as with a person.
                sandbox.until("done    ");
            }
        }
    }
    sandbox.end();
    screen
}

#[test]
fn the_first_load_balancer() {
    let screen = follow("first-load-balancer.md");
    assert!(screen.matches("hello from node-").count() == 3, "{screen}");
    assert!(screen.contains("InvalidAnnotation"), "{screen}");
}

#[test]
fn the_ins_and_outs() {
    let screen = follow("ins-and-outs.md");
    assert!(screen.contains("cloudlycke://n-4") && screen.contains("vbox.vm.1g.2cpu"), "{screen}");
    assert!(screen.contains("DeletingNode") && screen.contains("InvalidAnnotation"), "{screen}");
    assert!(screen.contains("service.kubernetes.io/load-balancer-cleanup"), "{screen}");
}

#[tokio::test]
async fn a_cluster_of_your_own_is_left_as_it_was() {
    let plane = ControlPlane::start(&assets(), &Options::default()).await.unwrap();
    let file = plane.kubeconfig().display().to_string();
    let sandbox = Sandbox::start(&["--kubeconfig", &file, "--nodes", "2"]);
    assert_eq!(sandbox.kubeconfig, file);
    sandbox.shell("kubectl wait node node-1 node-2 --for=jsonpath='{.spec.providerID}' --timeout=60s");
    // Killed: its nodes and its Lease are left, and the next one takes care of both.
    drop(sandbox);
    let sandbox = Sandbox::start(&["--kubeconfig", &file, "--nodes", "2"]);
    sandbox.shell("kubectl wait node node-1 node-2 --for=jsonpath='{.spec.providerID}' --timeout=60s");
    sandbox.shell("kubectl create service loadbalancer web --tcp=8080:80");
    sandbox.shell("kubectl wait service web --for=jsonpath='{.status.loadBalancer.ingress}' --timeout=60s");
    let again = Command::new(shipped().unwrap()).args(["sandbox", "--kubeconfig", &file]).output().unwrap();
    let said = String::from_utf8_lossy(&again.stderr);
    assert!(!again.status.success() && said.contains("another cloud controller manager"), "{said}");
    sandbox.end();
    let nodes = plane.kubectl(&["get", "nodes", "-o", "name"]).await.unwrap();
    assert!(nodes.stdout.is_empty(), "{nodes:?}");
    let service = plane.kubectl(&["get", "service", "web", "-o", "json"]).await.unwrap();
    let service: serde_json::Value = serde_json::from_str(&service.stdout).unwrap();
    assert_eq!(service["metadata"].get("finalizers"), None, "it can be deleted: {service}");
    assert_eq!(service["status"]["loadBalancer"], serde_json::json!({}), "{service}");
    let lease =
        plane.kubectl(&["get", "lease", "cloud-controller-manager", "-n", "kube-system"]).await.unwrap();
    assert!(!lease.ok, "{lease:?}");
}

#[test]
fn commands_are_found_in_a_page() {
    let page = "text\n```sh\nkubectl get nodes\n```\n```text\n> stop node-1\nshown\n```\n";
    let want = [Told::Run("kubectl get nodes".to_owned()), Told::Type("stop node-1".to_owned())];
    assert_eq!(told(page), want);
}
