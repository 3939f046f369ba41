//! `cloudberth sandbox` as a process: what it prints, what it leaves behind, and how two of them get along.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, clippy::indexing_slicing, missing_docs)]
#![cfg(feature = "demo")]

use std::{
    fs,
    io::{BufRead as _, BufReader, Read as _, Write as _},
    net::{TcpListener, TcpStream},
    path::{Path, PathBuf},
    process::{Child, ChildStdin, Command, Output, Stdio},
    sync::mpsc::{self, Receiver},
    thread,
    time::Duration,
};

use kube::{
    Api, Client, Config,
    api::{ApiResource, DynamicObject, GroupVersionKind, ListParams},
    config::{KubeConfigOptions, Kubeconfig},
};
use tempfile::TempDir;

/// It ends a hang and measures nothing.
const PATIENCE: Duration = Duration::from_secs(120);

fn command(temp: &Path, args: &[&str]) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_cloudberth"));
    command.arg("sandbox").args(args).env("TMPDIR", temp);
    command
}

fn refused(args: &[&str]) -> String {
    let temp = tempfile::tempdir().unwrap();
    let Output { status, stderr, .. } = command(temp.path(), args).output().unwrap();
    let said = String::from_utf8(stderr).unwrap();
    assert!(!status.success(), "{args:?}: {said}");
    assert_eq!(fs::read_dir(temp.path()).unwrap().count(), 0, "{args:?}: nothing is left behind");
    said
}

/// A sandbox that runs. Dropped, it is killed.
struct Sandbox {
    child: Child,
    input: ChildStdin,
    lines: Receiver<String>,
    seen: Vec<String>,
    kubeconfig: PathBuf,
}

impl Sandbox {
    fn start(temp: &TempDir, args: &[&str]) -> Self {
        let mut command = command(temp.path(), args);
        let mut child = command.stdin(Stdio::piped()).stdout(Stdio::piped()).spawn().unwrap();
        let (sender, lines) = mpsc::channel();
        let out = BufReader::new(child.stdout.take().unwrap());
        thread::spawn(move || out.lines().map_while(Result::ok).all(|line| sender.send(line).is_ok()));
        let input = child.stdin.take().unwrap();
        let mut new = Self { child, input, lines, seen: Vec::new(), kubeconfig: PathBuf::new() };
        let export = new.until("export KUBECONFIG=");
        new.kubeconfig = PathBuf::from(export.trim().trim_start_matches("export KUBECONFIG="));
        new
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

    fn type_in(&mut self, line: &str) {
        writeln!(self.input, "{line}").unwrap();
    }

    fn signal(&self, name: &str) {
        let pid = self.child.id().to_string();
        assert!(Command::new("kill").args([name, &pid]).status().unwrap().success());
    }

    async fn client(&self) -> Client {
        let file = Kubeconfig::read_from(&self.kubeconfig).unwrap();
        let config = Config::from_custom_kubeconfig(file, &KubeConfigOptions::default()).await.unwrap();
        Client::try_from(config).unwrap()
    }

    async fn nodes(&self) -> usize {
        self.api().await.list(&ListParams::default()).await.unwrap().items.len()
    }

    async fn api(&self) -> Api<DynamicObject> {
        let nodes = ApiResource::from_gvk(&GroupVersionKind::gvk("", "v1", "Node"));
        Api::all_with(self.client().await, &nodes)
    }

    async fn is_tainted(&self, node: &str, taint: &str) {
        let nodes = self.api().await;
        let seen = tokio::time::timeout(PATIENCE, async {
            while !nodes.get(node).await.unwrap().data["spec"].to_string().contains(taint) {
                tokio::time::sleep(Duration::from_millis(50)).await;
            }
        });
        seen.await.unwrap_or_else(|_| panic!("{node} never had the taint {taint}"));
    }
}

impl Drop for Sandbox {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

#[tokio::test]
async fn two_run_side_by_side_and_leave_nothing_behind() {
    let temp = tempfile::tempdir().unwrap();
    let mut one = Sandbox::start(&temp, &["--nodes", "2"]);
    let mut two = Sandbox::start(&temp, &["--nodes", "1", "--provider", "cloudscale"]);
    assert_ne!(one.kubeconfig, two.kubeconfig);
    assert_eq!((one.nodes().await, two.nodes().await), (2, 1));
    one.until("To type here:");

    one.type_in("add");
    one.until("node-3");
    assert_eq!(one.nodes().await, 3);
    one.type_in("stop node-1");
    one.until("done    instance node-1 is switched off");
    one.is_tainted("node-1", "node.cloudprovider.kubernetes.io/shutdown").await;
    one.type_in("stop nobody");
    one.until("the cloud has no instance called nobody");
    one.type_in("dance");
    one.until("\"dance\" is not known; there are: add, stop NODE");
    one.type_in("break token");
    one.until(": 401 in ");
    two.type_in("traffic 5");
    two.until("cloudscale is simulated");

    for (sandbox, signal) in [(&mut one, "-INT"), (&mut two, "-TERM")] {
        sandbox.signal(signal);
        sandbox.until("The sandbox ends");
        assert!(sandbox.child.wait().unwrap().success(), "{signal}\n{}", sandbox.seen.join("\n"));
        assert!(!sandbox.kubeconfig.exists(), "{signal}");
    }
    assert_eq!(fs::read_dir(temp.path()).unwrap().count(), 0);
}

#[tokio::test]
async fn what_a_killed_one_left_is_cleared_away_by_the_next() {
    let temp = tempfile::tempdir().unwrap();
    let mut killed = Sandbox::start(&temp, &["--nodes", "1"]);
    killed.signal("-KILL");
    killed.child.wait().unwrap();
    let left = killed.kubeconfig.parent().unwrap().to_owned();
    assert!(left.exists(), "nobody could tidy up");
    let mut next = Sandbox::start(&temp, &["--nodes", "1"]);
    assert!(
        next.seen
            .iter()
            .any(|line| *line == format!("removed {}, left by a sandbox that was killed", left.display())),
        "{:?}",
        next.seen
    );
    assert!(!left.exists() && next.nodes().await == 1);
    next.signal("-INT");
    next.until("The sandbox ends");
    assert!(next.child.wait().unwrap().success());
}

#[test]
fn mistakes_are_said_in_plain_words() {
    let taken = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = taken.local_addr().unwrap().to_string();
    let table: [(&[&str], &str); 6] = [
        (&["--listen", &address], "Address already in use"),
        (&["--listen", &address], "without --listen a free port is taken"),
        (&["--listen", "0.0.0.0:0"], "a sandbox is for this computer"),
        (&["--nodes", "251"], "cloudlycke has room for 250"),
        (&["--kubeconfig", "/does/not/exist"], "--kubeconfig /does/not/exist"),
        (&["--provider", "nimbus"], "cloudlycke, cloudscale, binarylane, brightbox"),
    ];
    for (args, want) in table {
        let said = refused(args);
        assert!(said.contains(want), "{args:?}: {said}");
    }
}

/// The status line and the headers of the answer to a request without a cookie.
fn get(address: &str, path: &str) -> String {
    let mut stream = TcpStream::connect(address).unwrap();
    write!(stream, "GET {path} HTTP/1.1\r\nhost: {address}\r\nconnection: close\r\n\r\n").unwrap();
    let mut answer = String::new();
    stream.read_to_string(&mut answer).unwrap();
    answer
}

#[test]
fn a_page_is_served_to_who_has_the_link_and_ends_with_the_sandbox() {
    let temp = tempfile::tempdir().unwrap();
    let args = ["--nodes", "1", "--provider", "cloudscale", "--page", "127.0.0.1:0"];
    let mut sandbox = Sandbox::start(&temp, &args);
    let link = sandbox.until("/?token=");
    let (address, path) = link.trim().strip_prefix("http://").unwrap().split_once('/').unwrap();
    assert!(get(address, "/").starts_with("HTTP/1.1 403 "));
    let entered = get(address, &format!("/{path}"));
    assert!(entered.starts_with("HTTP/1.1 200 ") && entered.contains("SameSite=Strict"), "{entered}");
    assert!(get(address, &format!("/{path}")).starts_with("HTTP/1.1 403 "), "the link works once");
    sandbox.signal("-INT");
    assert!(sandbox.child.wait().unwrap().success());
    assert!(TcpStream::connect(address).is_err(), "nobody listens any more");

    let said = refused(&["--page", "0.0.0.0:0"]);
    assert!(said.contains("--page 0.0.0.0:0: the page is for this computer"), "{said}");
    let other = TcpListener::bind("127.0.0.1:0").unwrap();
    let taken = other.local_addr().unwrap().to_string();
    let said = refused(&["--nodes", "1", "--provider", "cloudscale", "--page", &taken]);
    assert!(said.contains(&format!("--page {taken}: ")) && said.contains("a free one is taken"), "{said}");
}
