//! The service as a part of a process: its directory, its file, its port. In real time, because files have no other.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, clippy::indexing_slicing, missing_docs)]

use std::{
    fs,
    os::unix::fs::PermissionsExt as _,
    path::{Path, PathBuf},
    sync::Arc,
    time::Duration,
};

use cloudberth_core::Clock;
use cloudberth_http::surroundings::SystemClock;
use cloudberth_lycke::{
    api::Api,
    control::{Control, Readiness},
    inventory::Demo,
    plane::BalancerKey,
    serve::{self, Prepared},
    store::default_directory,
    testing::MemoryPlane,
    vagrant::VagrantCommand,
};
use serde_json::json;
use tempfile::TempDir;
use tokio::{
    io::{AsyncReadExt as _, AsyncWriteExt as _},
    net::{TcpListener, TcpStream},
    sync::{Notify, oneshot},
    time::{sleep, timeout},
};

/// Ends a hang; measures nothing.
const DEADLINE: Duration = Duration::from_secs(60);

struct Place {
    directory: TempDir,
}

impl Place {
    fn new() -> Self {
        let home = Self { directory: tempfile::tempdir().unwrap() };
        fs::write(home.inventory(), demo()).unwrap();
        home
    }

    fn inventory(&self) -> PathBuf {
        self.directory.path().join("inv.yaml")
    }

    fn state(&self) -> PathBuf {
        self.directory.path().join("new/state")
    }

    fn prepare(&self) -> Result<Prepared, String> {
        let clock: Arc<dyn Clock> = Arc::new(SystemClock::new());
        Prepared::new(&self.inventory(), &self.state(), clock).map_err(|why| why.0)
    }

    async fn start(&self) -> (Control, MemoryPlane) {
        let prepared = self.prepare().unwrap();
        let clock: Arc<dyn Clock> = Arc::new(SystemClock::new());
        let plane = MemoryPlane::new(Arc::new(prepared.events().clone()), clock);
        let control = prepared.start(Arc::new(plane.clone()));
        assert_eq!(control.readiness(), Readiness::Restoring, "CL-41");
        control.restore().await;
        (control, plane)
    }
}

fn demo() -> String {
    Demo { clusters: 2, workers: 1, loopback: true }.inventory().unwrap()
}

fn key(name: &str) -> BalancerKey {
    BalancerKey { cluster: "c2".into(), namespace: "default".into(), name: name.into() }
}

async fn put(control: &Control, name: &str) {
    let spec = json!({"uid": name, "listeners": [{"protocol": "TCP", "port": 8080, "nodePort": 30080}]});
    control.put(&key(name), &spec).await.unwrap();
}

fn mode(path: &Path) -> u32 {
    fs::metadata(path).unwrap().permissions().mode() & 0o777
}

#[tokio::test]
async fn what_was_answered_survives_and_is_for_its_owner_only() {
    let home = Place::new();
    let (control, plane) = home.start().await;
    for name in ["a", "b", "c"] {
        put(&control, name).await;
    }
    control.delete(&key("c"), None).await.unwrap();
    let before: Vec<_> =
        control.balancers(None).into_iter().map(|status| (status.key, status.balancer)).collect();
    assert_eq!((mode(&home.state()), mode(&home.state().join("state.json"))), (0o700, 0o600));
    drop((control, plane));
    let (control, plane) = home.start().await;
    let after: Vec<_> =
        control.balancers(None).into_iter().map(|status| (status.key, status.balancer)).collect();
    assert_eq!(after, before, "CL-41 CL-89");
    assert_eq!(plane.keys(), [key("a"), key("b")], "CL-41 they serve before any manager has asked");
    assert_eq!(control.readiness(), Readiness::Ready, "CL-41");
}

#[tokio::test]
async fn a_directory_has_one_process() {
    let home = Place::new();
    let first = home.prepare().unwrap();
    let why = home.prepare().map(|_| ()).unwrap_err();
    assert!(why.contains(&format!("in use by process {}", std::process::id())), "CL-90 {why}");
    drop(first);
    home.prepare().unwrap();
}

#[tokio::test]
async fn a_broken_state_is_set_aside() {
    let home = Place::new();
    let (control, plane) = home.start().await;
    put(&control, "a").await;
    let address = control.balancer(&key("a")).unwrap().balancer.addresses;
    drop((control, plane));
    let file = home.state().join("state.json");
    let text = fs::read_to_string(&file).unwrap();
    fs::write(&file, &text[..text.len() / 2]).unwrap();
    let (control, plane) = home.start().await;
    assert!(plane.keys().is_empty(), "CL-72");
    assert_eq!(
        fs::read_to_string(home.state().join("state.json.broken")).unwrap(),
        text[..text.len() / 2],
        "CL-72"
    );
    put(&control, "a").await;
    assert_eq!(control.balancer(&key("a")).unwrap().balancer.addresses, address, "CL-72");
}

#[tokio::test]
async fn a_faulty_inventory_touches_nothing() {
    let home = Place::new();
    fs::write(home.inventory(), "version: 1\nmachines: [").unwrap();
    let why = home.prepare().map(|_| ()).unwrap_err();
    let file = home.inventory().display().to_string();
    assert!(why.starts_with(&format!("{file}:2: ")), "CL-22 {why}");
    assert!(!home.state().exists(), "CL-22");
    fs::remove_file(home.inventory()).unwrap();
    let why = home.prepare().map(|_| ()).unwrap_err();
    assert!(why.starts_with(&format!("{file}:1: file: ")), "CL-22 {why}");
}

#[tokio::test]
async fn every_new_version_of_the_file_is_read() {
    let home = Place::new();
    let (control, _plane) = home.start().await;
    let following = control.clone();
    let following =
        tokio::spawn(async move { serve::follow(&following, &VagrantCommand, &Notify::new()).await });
    let machine = |id: &str, last: u8| {
        format!(
            "  - {{ id: {id}, name: {id}, cluster: c2, type: vbox.vm.1g.2cpu, internal: [127.0.20.{last}] }}\n"
        )
    };
    let appears = async |id: &str, case: &str| {
        let waiting = async {
            while control.machine(id).is_err() {
                sleep(Duration::from_millis(20)).await;
            }
        };
        timeout(DEADLINE, waiting).await.unwrap_or_else(|_| panic!("{case}"));
    };
    fs::write(home.inventory(), format!("{}{}", demo(), machine("in-place", 90))).unwrap();
    appears("in-place", "CL-92 written in place").await;
    let other = home.directory.path().join("other");
    fs::write(&other, format!("{}{}", demo(), machine("renamed", 91))).unwrap();
    fs::rename(&other, home.inventory()).unwrap();
    appears("renamed", "CL-92 renamed over it").await;
    assert!(control.machine("in-place").is_err(), "CL-24");

    fs::write(home.inventory(), "version: 1\nmachines: [").unwrap();
    let red = async {
        while control.readiness() == Readiness::Ready {
            sleep(Duration::from_millis(20)).await;
        }
    };
    timeout(DEADLINE, red).await.expect("CL-23");
    assert!(control.machine("renamed").is_ok(), "CL-23 the old one stays in force");
    fs::write(home.inventory(), format!("{}{}", demo(), machine("mended", 92))).unwrap();
    appears("mended", "CL-23").await;
    assert_eq!(control.readiness(), Readiness::Ready, "CL-23");
    following.abort();
}

#[tokio::test]
async fn the_port_speaks_http_until_the_service_ends() {
    let home = Place::new();
    let (control, _plane) = home.start().await;
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = listener.local_addr().unwrap();
    let (stop, stopped) = oneshot::channel::<()>();
    let api = Api::new(control.clone(), None);
    let port = tokio::spawn(serve::accept(api, listener, async {
        let _ = stopped.await;
    }));
    let ask = async |request: String| {
        let mut stream = TcpStream::connect(address).await.unwrap();
        stream.write_all(request.as_bytes()).await.unwrap();
        let mut answer = Vec::new();
        timeout(DEADLINE, stream.read_to_end(&mut answer)).await.unwrap().unwrap();
        String::from_utf8(answer).unwrap()
    };
    let get = |path: &str| format!("GET {path} HTTP/1.1\r\nhost: x\r\nconnection: close\r\n\r\n");
    let list = ask(get("/v1/machines?cluster=c2")).await;
    assert!(list.starts_with("HTTP/1.1 200 OK\r\n") && list.contains("cloudlycke://n-c2-1"), "{list}");
    let body = " ".repeat(2 << 20);
    let head = format!(
        "PUT /v1/loadbalancers/c2/default/web HTTP/1.1\r\nhost: x\r\nconnection: close\r\ncontent-length: {}\r\n\r\n",
        body.len()
    );
    let large = ask(format!("{head}{body}")).await;
    assert!(large.starts_with("HTTP/1.1 413 "), "CL-91 {large}");
    let waiting = tokio::spawn(async move {
        let mut stream = TcpStream::connect(address).await.unwrap();
        stream.write_all(b"GET /v1/events HTTP/1.1\r\nhost: x\r\n\r\n").await.unwrap();
        let mut answer = Vec::new();
        stream.read_to_end(&mut answer).await.unwrap();
        String::from_utf8(answer).unwrap()
    });
    // The question is under way before the service ends.
    ask(get("/healthz")).await;
    control.close().await;
    stop.send(()).unwrap();
    timeout(DEADLINE, port).await.unwrap().unwrap();
    let answer = timeout(DEADLINE, waiting).await.unwrap().unwrap();
    assert!(answer.is_empty() || answer.starts_with("HTTP/1.1 200 OK"), "CL-73 {answer}");
    assert!(TcpStream::connect(address).await.is_err(), "CL-73");
}

#[test]
fn the_default_directory_follows_the_environment() {
    let find = |pairs: &[(&str, &str)]| {
        let environment =
            pairs.iter().map(|(name, value)| ((*name).to_owned(), (*value).to_owned())).collect();
        default_directory(&environment).map(|path| path.display().to_string())
    };
    assert_eq!(find(&[("XDG_STATE_HOME", "/x"), ("HOME", "/h")]).as_deref(), Some("/x/cloudlycke"));
    assert_eq!(find(&[("HOME", "/h")]).as_deref(), Some("/h/.local/state/cloudlycke"));
    assert_eq!(
        find(&[("XDG_STATE_HOME", ""), ("HOME", "/h")]).as_deref(),
        Some("/h/.local/state/cloudlycke")
    );
    assert_eq!(find(&[]), None);
}
