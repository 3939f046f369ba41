//! `cloudberth lycke`, as a person starts, uses and stops it.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, clippy::indexing_slicing, missing_docs)]
#![cfg(feature = "lycke")]

use std::{
    fs,
    io::{BufRead as _, BufReader, Read as _, Write as _},
    net::{Ipv4Addr, TcpListener, TcpStream, UdpSocket},
    os::unix::fs::PermissionsExt as _,
    path::PathBuf,
    process::{Child, Command, ExitStatus, Output, Stdio},
    sync::atomic::{AtomicU32, Ordering},
    thread,
    time::Duration,
};

use rustix::process::{Pid, Signal, kill_process};
use serde_json::{Value, json};
use tempfile::TempDir;

const PROGRAM: &str = env!("CARGO_BIN_EXE_cloudberth");
const LOOK: Duration = Duration::from_millis(20);
/// Two minutes of looks: they end a hang and measure nothing.
const LOOKS: usize = 6_000;

/// A service that is killed with its test.
struct Service {
    child: Child,
    address: String,
}

impl Drop for Service {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

struct Place {
    directory: TempDir,
    /// The inventory with which it begins.
    inventory: String,
}

impl Place {
    fn new() -> Self {
        let place = Self { directory: tempfile::tempdir().unwrap(), inventory: inventory() };
        fs::write(place.path("inv.yaml"), &place.inventory).unwrap();
        place
    }

    fn path(&self, name: &str) -> PathBuf {
        self.directory.path().join(name)
    }

    fn command(&self, extra: &[&str]) -> Command {
        let mut command = Command::new(PROGRAM);
        command.args(["lycke", "serve", "--inventory", "inv.yaml", "--state-dir", "state"]).args(extra);
        command.current_dir(self.directory.path()).stdin(Stdio::null());
        command
    }

    fn start(&self, extra: &[&str]) -> Service {
        self.start_with(self.command(extra))
    }

    fn start_with(&self, mut command: Command) -> Service {
        let log = fs::File::options().create(true).append(true).open(self.path("log")).unwrap();
        let mut child =
            command.args(["--listen", "127.0.0.1:0"]).stdout(Stdio::piped()).stderr(log).spawn().unwrap();
        let mut out = BufReader::new(child.stdout.take().unwrap());
        let mut line = String::new();
        out.read_line(&mut line).unwrap();
        // What it prints from now on is read, so that it never waits for a reader.
        thread::spawn(move || out.lines().count());
        let address = line.trim().strip_prefix("listening on http://").expect(&line).to_owned();
        let service = Service { child, address };
        until("it is ready", || (service.ask("GET", "/readyz", "").0 == 200).then_some(()));
        service
    }

    /// Starts it and waits until it has ended by itself.
    fn refused(&self, extra: &[&str]) -> (Option<i32>, String) {
        let output = self.command(extra).output().unwrap();
        (output.status.code(), String::from_utf8(output.stderr).unwrap())
    }
}

/// Load balancers get addresses that no other test uses: by process, and by number within the process. Connections may go
/// on for longer than any test waits.
fn inventory() -> String {
    static NEXT: AtomicU32 = AtomicU32::new(0);
    let (process, number) = (std::process::id() % 250 + 1, NEXT.fetch_add(1, Ordering::Relaxed) % 50);
    let demo = lycke(&["inventory", "init", "--clusters", "2", "--workers", "2", "--loopback"]);
    let demo = String::from_utf8(demo.stdout).unwrap();
    format!("{demo}loadBalancers: {{ pool: 127.{}.{process}.0/24, drain: 1h }}\n", 200 + number)
}

fn lycke(arguments: &[&str]) -> Output {
    Command::new(PROGRAM).arg("lycke").args(arguments).output().unwrap()
}

fn until<T>(what: &str, mut look: impl FnMut() -> Option<T>) -> T {
    for _ in 0..LOOKS {
        if let Some(found) = look() {
            return found;
        }
        thread::sleep(LOOK);
    }
    panic!("{what}");
}

impl Service {
    fn ask(&self, method: &str, path: &str, body: &str) -> (u16, Value) {
        self.ask_with(method, path, "", body)
    }

    fn ask_with(&self, method: &str, path: &str, headers: &str, body: &str) -> (u16, Value) {
        let mut stream = TcpStream::connect(&self.address).unwrap();
        let length = body.len();
        write!(
            stream,
            "{method} {path} HTTP/1.1\r\nHost: x\r\nConnection: close\r\n{headers}Content-Length: {length}\r\n\r\n{body}"
        )
        .unwrap();
        let mut text = String::new();
        stream.read_to_string(&mut text).unwrap();
        let (head, body) = text.split_once("\r\n\r\n").unwrap();
        let status = head.split(' ').nth(1).unwrap().parse().unwrap();
        (status, serde_json::from_str(body).unwrap_or_default())
    }

    fn put(&self, name: &str, spec: &Value) -> (u16, Value) {
        self.ask("PUT", &format!("/v1/loadbalancers/c2/default/{name}"), &spec.to_string())
    }

    fn signal(&self, signal: Signal) {
        let pid = Pid::from_raw(i32::try_from(self.child.id()).unwrap()).unwrap();
        kill_process(pid, signal).unwrap();
    }

    fn ended(&mut self) -> ExitStatus {
        until("it ends", || self.child.try_wait().unwrap())
    }

    fn cli(&self, arguments: &[&str]) -> String {
        let output = Command::new(PROGRAM)
            .arg("lycke")
            .args(arguments)
            .env("CLOUDLYCKE_API_URL", format!("http://{}", self.address))
            .env("CLOUDLYCKE_TOKEN", "")
            .output()
            .unwrap();
        assert!(output.status.success(), "{arguments:?}: {}", String::from_utf8_lossy(&output.stderr));
        String::from_utf8(output.stdout).unwrap()
    }
}

/// A stand-in for a node port: it greets and then echoes. Gives its port.
fn node_port(address: Ipv4Addr, greeting: &'static str) -> u16 {
    let listener = TcpListener::bind((address, 0)).unwrap();
    let port = listener.local_addr().unwrap().port();
    thread::spawn(move || {
        for stream in listener.incoming() {
            let Ok(mut stream) = stream else { continue };
            thread::spawn(move || {
                let _ = stream.write_all(greeting.as_bytes());
                let mut buffer = [0; 1024];
                while let Ok(read @ 1..) = stream.read(&mut buffer) {
                    let _ = stream.write_all(&buffer[..read]);
                }
            });
        }
    });
    port
}

fn spec(uid: &str, port: u16, node_port: u16) -> Value {
    json!({
        "uid": uid,
        "listeners": [{"protocol": "TCP", "port": port, "nodePort": node_port}],
        "backends": [{"machine": "n-c2-1", "address": "127.0.20.11"}],
    })
}

/// A connection through a load balancer, once the greeting of its backend was read.
fn greeted(bound: &str, greeting: &str) -> Option<TcpStream> {
    let mut stream = TcpStream::connect(bound).ok()?;
    stream.set_read_timeout(Some(Duration::from_secs(10))).unwrap();
    let mut text = vec![0; greeting.len()];
    stream.read_exact(&mut text).ok()?;
    (text == greeting.as_bytes()).then_some(stream)
}

fn bound(answer: &Value) -> String {
    answer["listeners"][0]["bound"].as_str().unwrap_or_else(|| panic!("{answer}")).to_owned()
}

#[test]
fn it_refuses_to_start_and_touches_nothing() {
    let place = Place::new();
    fs::write(place.path("token"), " \n").unwrap();
    let table: [(&str, &[&str], &str); 3] = [
        ("CL-69 no token", &["--listen", "0.0.0.0:0"], "token"),
        ("CL-69 an empty token", &["--token-file", "token"], "empty"),
        ("CL-69 no token file", &["--token-file", "nope"], "nope"),
    ];
    for (case, extra, want) in table {
        let (code, why) = place.refused(extra);
        assert_eq!(code, Some(2), "{case}: {why}");
        assert!(why.contains(want), "{case}: {why}");
    }
    let good = place.inventory.clone();
    fs::write(
        place.path("inv.yaml"),
        good.replace("id: n-c2-1", "id: m-c2-1").replace("127.0.20.12]", "here]"),
    )
    .unwrap();
    let (code, why) = place.refused(&[]);
    assert_eq!(code, Some(2), "CL-22 {why}");
    let lines: Vec<_> = why.lines().collect();
    assert!(lines.len() >= 2 && lines.iter().all(|line| line.starts_with("inv.yaml:1")), "CL-22 {why}");
    assert!(!place.path("state").exists(), "CL-22");
    let checked = Command::new(PROGRAM)
        .args(["lycke", "inventory", "check", "inv.yaml"])
        .current_dir(place.directory.path())
        .output()
        .unwrap();
    assert_eq!(
        (checked.status.code(), String::from_utf8(checked.stdout).unwrap()),
        (Some(2), why),
        "CL-22 the same faults"
    );
}

#[test]
fn a_killed_service_is_back_with_the_same_addresses() {
    let place = Place::new();
    let mut service = place.start(&[]);
    let node_port = node_port(Ipv4Addr::new(127, 0, 20, 11), "hello");
    let (status, made) = service.put("web", &spec("u", 8080, node_port));
    assert_eq!(status, 201, "CL-32 {made}");
    until("CL-32 traffic", || greeted(&bound(&made), "hello"));
    let second = place.refused(&["--listen", "127.0.0.1:0"]);
    assert_eq!(second.0, Some(2), "CL-90");
    assert!(second.1.contains(&format!("process {}", service.child.id())), "CL-90 {}", second.1);
    until("CL-90 the first is unharmed", || greeted(&bound(&made), "hello"));
    service.put("gone", &spec("g", 8080, node_port));
    assert_eq!(
        service.ask("DELETE", "/v1/loadbalancers/c2/default/gone", ""),
        (200, json!({"deleted": true}))
    );

    service.child.kill().unwrap();
    service.ended();
    let service = place.start(&[]);
    until("CL-41 CL-74 traffic flows before any manager connects", || greeted(&bound(&made), "hello"));
    let (_, list) = service.ask("GET", "/v1/loadbalancers", "");
    assert_eq!(list["items"].as_array().unwrap().len(), 1, "CL-89 {list}");
    let again = &list["items"][0];
    assert_eq!(
        (&again["generation"], &again["address"]),
        (&made["generation"], &made["address"]),
        "CL-41 CL-89"
    );
    assert_eq!(again["spec"], made["spec"], "CL-89");
    let (status, put) = service.put("web", &spec("u", 8080, node_port));
    assert_eq!((status, &put["generation"]), (200, &json!(1)), "CL-33");

    drop(service);
    let file = place.path("state/state.json");
    let text = fs::read(&file).unwrap();
    fs::write(&file, &text[..text.len() / 2]).unwrap();
    let service = place.start(&[]);
    assert_eq!(service.ask("GET", "/v1/loadbalancers", "").1, json!({"items": []}), "CL-72");
    assert!(place.path("state/state.json.broken").exists(), "CL-72");
    assert!(fs::read_to_string(place.path("log")).unwrap().contains("state file cannot be read"), "CL-72");
    assert_eq!(service.put("web", &spec("u", 8080, node_port)).1["address"], made["address"], "CL-72");
}

#[test]
fn it_ends_when_its_connections_have_ended() {
    let place = Place::new();
    let mut service = place.start(&[]);
    let node_port = node_port(Ipv4Addr::new(127, 0, 20, 11), "hello");
    let made = service.put("web", &spec("u", 8080, node_port)).1;
    let mut stream = until("traffic", || greeted(&bound(&made), "hello"));
    service.signal(Signal::TERM);
    until("CL-73 listeners are closed at once", || TcpStream::connect(bound(&made)).is_err().then_some(()));
    stream.write_all(b"still here").unwrap();
    let mut echo = [0; 10];
    stream.read_exact(&mut echo).unwrap();
    assert_eq!(&echo, b"still here", "CL-73 a connection may end by itself");
    assert_eq!(service.child.try_wait().unwrap(), None, "CL-73");
    drop(stream);
    assert_eq!(service.ended().code(), Some(0), "CL-73");

    let mut service = place.start(&[]);
    let _stream = until("traffic", || greeted(&bound(&made), "hello"));
    service.signal(Signal::INT);
    until("listeners are closed", || TcpStream::connect(bound(&made)).is_err().then_some(()));
    // CL-73: the drain is an hour, so that only the second signal can end it.
    service.signal(Signal::INT);
    service.ended();
}

#[test]
fn udp_and_machines_and_the_commands_work_together() {
    let place = Place::new();
    let service = place.start(&[]);
    let backend = UdpSocket::bind((Ipv4Addr::new(127, 0, 20, 11), 0)).unwrap();
    let node_port = backend.local_addr().unwrap().port();
    thread::spawn(move || {
        let mut buffer = [0; 2048];
        while let Ok((read, from)) = backend.recv_from(&mut buffer) {
            let _ = backend.send_to(&buffer[..read], from);
        }
    });
    let mut wish = spec("u", 5353, node_port);
    wish["listeners"][0]["protocol"] = json!("UDP");
    wish["health"] = json!({"kind": "none"});
    let at = bound(&service.put("dns", &wish).1);
    let client = UdpSocket::bind("127.0.0.1:0").unwrap();
    client.set_read_timeout(Some(Duration::from_millis(500))).unwrap();
    let echoed = || {
        client.send_to(b"ping", &at).unwrap();
        let mut buffer = [0; 16];
        matches!(client.recv_from(&mut buffer), Ok((4, from)) if from.to_string() == at)
    };
    until("an echo from the load balancer's own address", || echoed().then_some(()));
    service.cli(&["machines", "stop", "n-c2-1"]);
    until("CL-82 a stopped machine gets nothing", || (!echoed()).then_some(()));
    let shown = service.cli(&["lb", "show", "default/dns"]);
    assert!(shown.contains("down: machine stopped"), "CL-82 {shown}");
    service.cli(&["machines", "start", "n-c2-1"]);
    until("CL-82 it is back", || echoed().then_some(()));
    let listed = service.cli(&["machines", "list", "--cluster", "c2", "--output", "json"]);
    let listed: Value = serde_json::from_str(&listed).unwrap();
    assert_eq!(listed["items"].as_array().unwrap().len(), 3);
    assert!(service.cli(&["lb", "list"]).contains("5353/UDP"));
    service.cli(&["machines", "destroy", "n-c2-2"]);
    assert_eq!(service.ask("GET", "/v1/machines/n-c2-2", "").1["state"], "gone");
    service.cli(&["machines", "restore", "n-c2-2"]);
    assert_eq!(service.ask("GET", "/v1/machines/n-c2-2", "").1["state"], "running");
}

#[test]
fn a_token_guards_all_but_probes() {
    let place = Place::new();
    fs::write(place.path("token"), "s3cr3t-token\n").unwrap();
    let service = place.start(&["--token-file", "token"]);
    assert_eq!(service.ask("GET", "/v1/machines", "").0, 401, "CL-69");
    assert_eq!(
        service.ask_with("GET", "/v1/machines", "Authorization: Bearer nope\r\n", "").1["code"],
        "unauthorized",
        "CL-69"
    );
    assert_eq!(
        service.ask_with("GET", "/v1/machines", "Authorization: Bearer s3cr3t-token\r\n", "").0,
        200,
        "CL-69"
    );
    assert!(!fs::read_to_string(place.path("log")).unwrap().contains("s3cr3t-token"), "L10-1512");
}

#[test]
fn a_hang_up_and_a_new_file_are_both_a_reload() {
    let place = Place::new();
    let service = place.start(&[]);
    let state = || service.ask("GET", "/v1/machines/n-c2-1", "").1["state"].as_str().map(str::to_owned);
    service.cli(&["machines", "stop", "n-c2-1"]);
    assert_eq!(state().as_deref(), Some("stopped"), "CL-30");
    service.signal(Signal::HUP);
    until("CL-30 a reload ends it", || (state().as_deref() == Some("running")).then_some(()));
    let good = place.inventory.clone();
    fs::write(place.path("new"), good.replace("id: n-c2-1", "id: m-c2-1")).unwrap();
    fs::rename(place.path("new"), place.path("inv.yaml")).unwrap();
    let red =
        until("CL-23 red", || Some(service.ask("GET", "/readyz", "")).filter(|(status, _)| *status == 503)).1;
    let message = red["message"].as_str().unwrap();
    assert!(message.starts_with("inv.yaml:") && message.contains("machines[4].id"), "CL-23 {message}");
    assert!(
        fs::read_to_string(place.path("log")).unwrap().contains(message),
        "CL-23 the log has the same line"
    );
    assert_eq!(state().as_deref(), Some("running"), "CL-23 the old one is in force");
    fs::write(place.path("inv.yaml"), good).unwrap();
    until("CL-23 green", || (service.ask("GET", "/readyz", "").0 == 200).then_some(()));
    let machine = json!({"id": "x", "name": "x", "cluster": "c2", "type": "vbox.vm.1g.2cpu", "internal": ["127.0.20.99"]});
    assert_eq!(service.ask("POST", "/v1/machines", &machine.to_string()).0, 201, "CL-93");
    drop(service);
    let service = place.start(&[]);
    assert_eq!(service.ask("GET", "/v1/machines/x", "").0, 404, "CL-93 it is gone after a restart");
}

/// The line of the first occurrence.
fn line_of(text: &str, word: &str) -> usize {
    text[..text.find(word).unwrap()].lines().count().max(1)
}

#[test]
fn a_bad_inventory_is_told_by_line_and_field_and_changes_nothing() {
    let place = Place::new();
    let service = place.start(&[]);
    let node_port = node_port(Ipv4Addr::new(127, 0, 20, 11), "hello");
    let made = service.put("web", &spec("u", 8080, node_port)).1;
    let mut stream = until("traffic", || greeted(&bound(&made), "hello"));
    let machines = || service.ask("GET", "/v1/machines", "").1;
    let (good, before) = (place.inventory.clone(), machines());
    let worker = line_of(&good, "id: n-c2-1");
    for (case, bad, want) in [
        ("no YAML", good.replace("id: n-c2-1", "id: [n-c2-1"), "file: this is not YAML".to_owned()),
        (
            "an id twice",
            good.replace("id: n-c2-1", "id: m-c2-1"),
            format!("inv.yaml:{worker}: machines[4].id: \"m-c2-1\" is already on line "),
        ),
        (
            "a bad address",
            good.replace("internal: [127.0.20.11]", "internal: [127.0.20.311]"),
            format!("inv.yaml:{worker}: machines[4].internal[0]: \"127.0.20.311\" is not an IP address"),
        ),
    ] {
        assert_ne!(bad, good, "{case}");
        fs::write(place.path("inv.yaml"), bad).unwrap();
        let ready = || service.ask("GET", "/readyz", "");
        // What is told of this file, not of the one before.
        let message = until(&format!("CL-23 {case}"), || {
            let (status, body) = ready();
            let message = body["message"].as_str().unwrap_or_default().to_owned();
            (status == 503 && message.contains(&want)).then_some(message)
        });
        let line = message.strip_prefix("inv.yaml:").and_then(|rest| rest.split(':').next());
        assert!(line.is_some_and(|line| line.parse::<usize>().is_ok()), "CL-23 {case}: {message}");
        // The state is seen first, and then told.
        until(&format!("CL-23 {case}: {message} in the log"), || {
            fs::read_to_string(place.path("log")).unwrap().contains(&message).then_some(())
        });
        assert_eq!(machines(), before, "CL-23 {case}: the old one is in force");
        assert!(greeted(&bound(&made), "hello").is_some(), "CL-23 {case}: new clients are served");
        stream.write_all(b"go on").unwrap();
        let mut echo = [0; 5];
        stream.read_exact(&mut echo).unwrap();
        assert_eq!(&echo, b"go on", "CL-23 {case}: so are old ones");
        fs::write(place.path("inv.yaml"), &good).unwrap();
        until(&format!("CL-23 {case}: mended"), || (ready().0 == 200).then_some(()));
    }
}

#[test]
fn vagrant_is_asked_in_its_directory_without_a_shell() {
    let place = Place::new();
    let directory = place.path("my vms; touch harm");
    fs::create_dir(&directory).unwrap();
    let tools = place.path("bin");
    fs::create_dir(&tools).unwrap();
    let script = "#!/bin/sh\n[ \"$*\" = 'status --machine-readable' ] || exit 1\ncat states\n";
    fs::write(tools.join("vagrant"), script).unwrap();
    fs::set_permissions(tools.join("vagrant"), fs::Permissions::from_mode(0o755)).unwrap();
    let text = format!("{}vagrant: {{ directory: './my vms; touch harm', refresh: 1s }}\n", place.inventory);
    fs::write(place.path("inv.yaml"), text).unwrap();
    let mut command = place.command(&[]);
    let path = std::env::var("PATH").unwrap();
    command.env("PATH", format!("{}:{path}", tools.display()));
    let service = place.start_with(command);
    let state = |id: &str| {
        service.ask("GET", &format!("/v1/machines/{id}"), "").1["state"].as_str().unwrap().to_owned()
    };
    assert_eq!(state("n-c2-1"), "unknown", "CL-99 there is no answer yet");
    fs::write(directory.join("states"), "1,node-c2-1,state,poweroff\n").unwrap();
    until("CL-26", || (state("n-c2-1") == "stopped").then_some(()));
    assert_eq!(state("n-c2-2"), "running", "CL-29");
    fs::remove_file(directory.join("states")).unwrap();
    until("CL-28 too old", || (state("n-c2-1") == "unknown").then_some(()));
    assert!(!place.path("harm").exists() && !directory.join("harm").exists());
}
