//! The program and its surroundings as processes, none of which outlives its test.
#![allow(dead_code, reason = "each file of tests uses a part of it")]

use std::{
    fs::{self, File},
    net::TcpListener,
    os::unix::fs::symlink,
    path::{Path, PathBuf},
    process::{Child, Command, ExitStatus, Output, Stdio},
    sync::atomic::{AtomicU32, Ordering},
    time::Duration,
};

use http::{Method, Request, Uri};
use http_body_util::BodyExt as _;
use kube::{
    Client, Config,
    client::Body,
    config::{KubeConfigOptions, Kubeconfig},
};
use serde_json::{Value, json};
use tempfile::TempDir;
use tokio::time::{sleep, timeout};

pub(crate) const PROGRAM: &str = env!("CARGO_BIN_EXE_cloudberth");
/// The administrator's token, long enough that no line holds it by chance.
pub(crate) const TOKEN: &str = "token-8d2f7c61-of-the-administrator";
/// How long anything may take on the busiest of instances: it ends a hang and measures nothing.
const PATIENCE: Duration = Duration::from_secs(120);
const UNINITIALISED: &str = "node.cloudprovider.kubernetes.io/uninitialized";
const LEASE: &str = "/apis/coordination.k8s.io/v1/namespaces/kube-system/leases/cloud-controller-manager";

/// Waits until `look` finds something; fails with what was waited for.
pub(crate) async fn until<T>(what: &str, mut look: impl AsyncFnMut() -> Option<T>) -> T {
    let found = timeout(PATIENCE, async {
        loop {
            if let Some(found) = look().await {
                return found;
            }
            sleep(Duration::from_millis(20)).await;
        }
    });
    found.await.unwrap_or_else(|_| panic!("not within {PATIENCE:?}: {what}"))
}

/// A process with its log in a file. Dropped, it is killed.
pub(crate) struct Process {
    child: Child,
    log: PathBuf,
}

impl Process {
    pub(crate) fn start(command: &mut Command, log: PathBuf) -> Self {
        let file = File::create(&log).unwrap();
        let stdout = Stdio::from(file.try_clone().unwrap());
        let child = command.stdin(Stdio::null()).stdout(stdout).stderr(file).spawn().unwrap();
        Self { child, log }
    }

    pub(crate) fn log(&self) -> String {
        String::from_utf8_lossy(&fs::read(&self.log).unwrap()).into_owned()
    }

    pub(crate) fn signal(&self, name: &str) {
        let sent = Command::new("kill").args([&format!("-{name}"), &self.child.id().to_string()]).status();
        assert!(sent.unwrap().success(), "{name}");
    }

    pub(crate) fn id(&self) -> u32 {
        self.child.id()
    }

    pub(crate) fn ended(&mut self) -> Option<ExitStatus> {
        self.child.try_wait().unwrap()
    }

    /// The exit code, once it has ended by itself.
    pub(crate) async fn exit_code(&mut self) -> Option<i32> {
        until("the process ends", async || self.ended()).await.code()
    }

    /// Waits for a line with all of these parts, and gives it.
    pub(crate) async fn says(&mut self, parts: &[&str]) -> String {
        let said = self.says_or_ends(parts).await;
        said.unwrap_or_else(|log| panic!("it ended before it said {parts:?}:\n{log}"))
    }

    /// The same, or its log if it ends before.
    pub(crate) async fn says_or_ends(&mut self, parts: &[&str]) -> Result<String, String> {
        let found = timeout(PATIENCE, async {
            loop {
                let ended = self.ended();
                let log = self.log();
                if let Some(line) = log.lines().find(|line| parts.iter().all(|part| line.contains(part))) {
                    return Ok(line.to_owned());
                }
                if ended.is_some() {
                    return Err(log);
                }
                sleep(Duration::from_millis(20)).await;
            }
        });
        found.await.unwrap_or_else(|_| panic!("it never said {parts:?}:\n{}", self.log()))
    }
}

impl Drop for Process {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// A folder of its own, and an environment in which nothing of this machine's user is found.
pub(crate) struct Place(TempDir);

impl Place {
    pub(crate) fn new() -> Self {
        Self(tempfile::tempdir().unwrap())
    }

    pub(crate) fn path(&self, name: &str) -> PathBuf {
        self.0.path().join(name)
    }

    pub(crate) fn write(&self, name: &str, text: &str) -> String {
        fs::write(self.path(name), text).unwrap();
        self.path(name).display().to_string()
    }

    pub(crate) fn command(&self, program: &Path) -> Command {
        let mut command = Command::new(program);
        command.env_clear().env("HOME", self.0.path()).current_dir(self.0.path());
        command
    }

    /// Runs it to its end.
    pub(crate) fn run(&self, args: &[&str]) -> Output {
        self.command(Path::new(PROGRAM)).args(args).output().unwrap()
    }

    /// Runs it to its end under another name.
    pub(crate) fn run_as(&self, name: &str, args: &[&str]) -> Output {
        symlink(PROGRAM, self.path(name)).unwrap();
        self.command(&self.path(name)).args(args).output().unwrap()
    }

    /// A kubeconfig with which nobody is found at home.
    pub(crate) fn kubeconfig(&self) -> String {
        self.write("nobody", &kubeconfig("https://127.0.0.1:1", TOKEN))
    }
}

/// A kubeconfig for a server whose certificate is not looked at.
pub(crate) fn kubeconfig(server: &str, token: &str) -> String {
    let config = json!({
        "apiVersion": "v1", "kind": "Config", "current-context": "here",
        "clusters": [{"name": "here", "cluster": {"server": server, "insecure-skip-tls-verify": true}}],
        "users": [{"name": "me", "user": {"token": token}}],
        "contexts": [{"name": "here", "context": {"cluster": "here", "user": "me"}}],
    });
    config.to_string()
}

/// A port that nobody uses at this moment: below those that the kernel gives to whoever connects, and none twice.
pub(crate) fn free_port() -> u16 {
    static GIVEN: AtomicU32 = AtomicU32::new(0);
    let first = std::process::id().wrapping_mul(97);
    loop {
        let number = first.wrapping_add(GIVEN.fetch_add(1, Ordering::Relaxed)) % 18_000;
        let port = 12_000 + u16::try_from(number).unwrap();
        if TcpListener::bind(("127.0.0.1", port)).is_ok() {
            return port;
        }
    }
}

/// Both streams as text.
pub(crate) fn text(bytes: &[u8]) -> String {
    String::from_utf8_lossy(bytes).into_owned()
}

/// An answer over HTTPS.
#[derive(Debug)]
pub(crate) struct Answer {
    pub(crate) status: u16,
    pub(crate) body: String,
}

impl Answer {
    pub(crate) fn json(&self) -> Value {
        serde_json::from_str(&self.body).unwrap_or_else(|why| panic!("{why}: {}", self.body))
    }
}

/// Asks somebody over HTTPS; `None` if there is no answer.
pub(crate) async fn ask(
    client: &Client,
    method: Method,
    path: &str,
    token: Option<&str>,
    body: &str,
) -> Option<Answer> {
    let mut request = Request::builder().method(method).uri(path).header("content-type", "application/json");
    if let Some(token) = token {
        request = request.header("authorization", format!("Bearer {token}"));
    }
    let request = request.body(Body::from(body.as_bytes().to_vec())).unwrap();
    let answer = client.send(request).await.ok()?;
    let status = answer.status().as_u16();
    let body = text(&answer.into_body().collect().await.ok()?.to_bytes());
    Some(Answer { status, body })
}

/// The pages of a manager on this port.
pub(crate) fn pages(port: u16) -> Client {
    let mut config = Config::new(format!("https://127.0.0.1:{port}").parse::<Uri>().unwrap());
    config.accept_invalid_certs = true;
    config.default_retry = false;
    Client::try_from(config).unwrap()
}

/// `cloudberth sim kube`, and managers that work for it.
pub(crate) struct Cluster {
    // Dropped in this order: the folder goes last.
    _api: Process,
    client: Client,
    pub(crate) place: Place,
}

impl Cluster {
    pub(crate) async fn start() -> Self {
        let place = Place::new();
        let file = place.path("admin");
        let mut command = place.command(Path::new(PROGRAM));
        command.args(["sim", "kube", "--listen", "127.0.0.1:0", "--token", TOKEN, "--write-kubeconfig"]);
        let mut api = Process::start(command.arg(&file), place.path("api.log"));
        api.says(&["listening on"]).await;
        let config = Kubeconfig::read_from(&file).unwrap();
        let config = Config::from_custom_kubeconfig(config, &KubeConfigOptions::default()).await.unwrap();
        place.write("cloud", "instances: [one, two, three, four]");
        Self { _api: api, client: Client::try_from(config).unwrap(), place }
    }

    /// A manager with the memory-only cloud, quick to change the leader: 6 s, 4 s and 1 s.
    pub(crate) fn manager(&self, name: &str, flags: &[&str]) -> Process {
        let mut command = self.place.command(Path::new(PROGRAM));
        command.arg("controller-manager").args([
            "--cloud-provider=fake",
            "--cloud-config=cloud",
            "--kubeconfig=admin",
            "--configure-cloud-routes=false",
            "--leader-elect-lease-duration=6s",
            "--leader-elect-renew-deadline=4s",
            "--leader-elect-retry-period=1s",
        ]);
        Process::start(command.args(flags), self.place.path(name))
    }

    /// Somebody creates something below this path.
    pub(crate) async fn post(&self, path: &str, body: &Value) -> Value {
        let made = ask(&self.client, Method::POST, path, None, &body.to_string()).await.unwrap();
        assert_eq!(made.status, 201, "{}", made.body);
        made.json()
    }

    /// Somebody deletes something.
    pub(crate) async fn delete(&self, path: &str) {
        let gone = ask(&self.client, Method::DELETE, path, None, "").await.unwrap();
        assert_eq!(gone.status, 200, "{}", gone.body);
    }

    pub(crate) async fn get(&self, path: &str) -> Option<Value> {
        let answer = ask(&self.client, Method::GET, path, None, "").await?;
        (answer.status == 200).then(|| answer.json())
    }

    /// A node joins, waiting for its cloud unless it is `past` it.
    pub(crate) async fn join(&self, name: &str, past: bool) {
        let taint = json!({"key": UNINITIALISED, "value": "true", "effect": "NoSchedule"});
        let taints = if past { vec![] } else { vec![taint] };
        let node = json!({
            "apiVersion": "v1", "kind": "Node", "metadata": {"name": name}, "spec": {"taints": taints},
        });
        self.post("/api/v1/nodes", &node).await;
    }

    /// A node joins and is initialised by whoever leads.
    pub(crate) async fn sees_work(&self, node: &str) {
        self.join(node, false).await;
        let path = format!("/api/v1/nodes/{node}");
        until(&format!("{node} is initialised"), async || {
            let node = self.get(&path).await?;
            let taints = node["spec"]["taints"].as_array().cloned().unwrap_or_default();
            let waits = taints.iter().any(|taint| taint["key"] == UNINITIALISED);
            let id = node["spec"]["providerID"].as_str()?;
            (!waits && id.starts_with("fake://")).then_some(())
        })
        .await;
    }

    /// What the Lease says.
    pub(crate) async fn lease(&self) -> Option<Value> {
        Some(self.get(LEASE).await?["spec"].clone())
    }

    /// Who holds the Lease; empty for nobody.
    pub(crate) async fn holder(&self) -> Option<String> {
        Some(self.lease().await?["holderIdentity"].as_str().unwrap_or_default().to_owned())
    }
}
