//! Ports that need a privilege, in a process that really lacks it.
//!
//! Whoever runs the tests as root has every privilege, so the test runs in a process of nobody's.

use std::{
    net::{IpAddr, TcpListener},
    os::fd::OwnedFd,
    path::PathBuf,
    process::{Command, Stdio},
};

use cloudberth_lycke::plane::{
    Listener, ListenerFault, LowPorts, Protocol,
    socket::{InheritedSockets, PlaneSettings},
};

use crate::{
    alone::alone,
    fixture::{Fixture, NODE_PORT, Server, ask, eventually, fresh_address, key, within},
};

/// The address at which a socket for port 443 is handed over, if one is.
const INHERITED: &str = "PLANE_TEST_INHERITED";
const FREE: &str = "/proc/sys/net/ipv4/ip_unprivileged_port_start";

fn listener(port: u16) -> Listener {
    Listener { protocol: Protocol::Tcp, port, node_port: NODE_PORT }
}

const NOBODY: [&str; 5] =
    ["setpriv", "--reuid=65534", "--regid=65534", "--clear-groups", "--bounding-set=-all"];

/// Why this process cannot give up its privileges, if it has any: there is no such command, or nobody may not run tests.
fn why_privileged() -> Option<String> {
    let tests = std::env::current_exe().unwrap();
    let tried = rustix::process::geteuid()
        .is_root()
        .then(|| Command::new(NOBODY[0]).args(&NOBODY[1..]).arg(tests).arg("--list").output())?;
    match tried {
        Ok(output) if output.status.success() => None,
        Ok(output) => Some(String::from_utf8_lossy(&output.stderr).trim().to_owned()),
        Err(why) => Some(format!("setpriv: {why}")),
    }
}

/// The test again without any privilege. The socket becomes descriptor 3, where systemd would put it: the shell does it,
/// and is then the test itself.
fn start_as_nobody(tests: PathBuf, inherited: Option<TcpListener>) -> Command {
    let nobody: &[&str] = if rustix::process::geteuid().is_root() { &NOBODY } else { &[] };
    let script = match inherited {
        Some(_) => "LISTEN_FDS=1 LISTEN_PID=$$ exec \"$@\" 3<&0 </dev/null",
        None => "exec \"$@\" </dev/null",
    };
    let mut command = Command::new("sh");
    command.args(["-c", script, "sh"]).args(nobody).arg(tests);
    if let Some(socket) = &inherited {
        command.env(INHERITED, socket.local_addr().unwrap().ip().to_string());
    }
    command.stdin(inherited.map_or_else(Stdio::null, |socket| Stdio::from(OwnedFd::from(socket))));
    command
}

#[test]
fn low_ports_are_shifted_or_inherited() {
    let start = |tests| {
        let first_free: u16 = std::fs::read_to_string(FREE).unwrap().trim().parse().unwrap();
        if first_free <= 80 {
            return Err(format!("everybody may bind port 80 ({FREE} is {first_free})"));
        }
        if let Some(why) = why_privileged() {
            return Err(format!("this process may do everything and cannot give that up: {why}"));
        }
        // Without privileges nobody can open this for the child either.
        Ok(start_as_nobody(tests, TcpListener::bind((fresh_address(), 443)).ok()))
    };
    let inherited = std::env::var(INHERITED).ok().map(|address| address.parse().unwrap());
    alone("CL-64", "privilege::low_ports_are_shifted_or_inherited", start, without_privilege(inherited));
}

async fn without_privilege(inherited: Option<IpAddr>) {
    assert!(TcpListener::bind((fresh_address(), 80)).is_err(), "CL-64 this process has no privilege");
    let a = Server::start("a").await;
    let settings = PlaneSettings { workers: 2, ..PlaneSettings::default() };
    let mut fixture = Fixture::inheriting(&[&a], settings, InheritedSockets::of_this_process());
    fixture.config.listeners = vec![listener(80)];
    let report = fixture.apply().await;
    assert_eq!(report.listeners[0].fault, Some(ListenerFault::Shifted), "CL-64 {report:?}");
    assert_eq!(report.listeners[0].bound, Some(fixture.at(10_080)), "CL-64 shifted");
    assert_eq!(ask(fixture.at(10_080)).await.unwrap(), "a", "CL-64 and served there");

    let mut fails = fixture.config.clone();
    (fails.addresses, fails.limits.low_ports) = (vec![fresh_address()], LowPorts::Fail);
    let report = fixture.apply_as("fails", fails).await;
    assert_eq!(report.listeners[0].fault, Some(ListenerFault::PermissionDenied), "CL-64 only told");
    assert_eq!(report.listeners[0].bound, None, "CL-64");

    let Some(address) = inherited else { return };
    let mut config = fixture.config.clone();
    (config.addresses, config.listeners) = (vec![address], vec![listener(443)]);
    let report = fixture.apply_as("inherits", config).await;
    let at = (address, 443).into();
    assert_eq!(
        (report.listeners[0].bound, &report.listeners[0].fault),
        (Some(at), &None),
        "CL-64 {report:?}"
    );
    assert_eq!(ask(at).await.unwrap(), "a", "CL-64 the real port serves");
}

/// Such a socket outlives its listener. Nobody must wait at it in vain meanwhile.
#[tokio::test]
async fn an_inherited_socket_refuses_while_nobody_uses_it() {
    let (a, address) = (Server::start("a").await, fresh_address());
    let socket = TcpListener::bind((address, 8443)).unwrap();
    let at = socket.local_addr().unwrap();
    let settings = PlaneSettings { workers: 2, ..PlaneSettings::default() };
    let mut fixture = Fixture::inheriting(&[&a], settings, InheritedSockets::new([socket], []));
    let refused = || match std::net::TcpStream::connect(at) {
        Err(error) if error.kind() == std::io::ErrorKind::ConnectionRefused => Ok(()),
        other => Err(format!("{other:?}")),
    };
    eventually("CL-38 nobody listens yet", refused).await;
    (fixture.config.addresses, fixture.config.listeners) = (vec![address], vec![listener(8443)]);
    for round in 0..2 {
        let report = fixture.apply().await;
        assert_eq!(report.listeners[0].bound, Some(at), "round {round}: {report:?}");
        assert_eq!(ask(at).await.unwrap(), "a", "round {round}");
        let second = fixture.apply_as("second", fixture.config.clone()).await;
        let owner = Some(ListenerFault::AddressInUse(Some(key("web"))));
        assert_eq!(second.listeners[0].fault, owner, "CL-67 it is lent once");
        within("remove", fixture.plane_remove("second")).await;
        within("remove", fixture.plane_remove("web")).await;
        eventually("CL-38 refused", refused).await;
    }
}
