//! `cloudberth sim cloud`, as a person starts, uses and stops it.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, clippy::indexing_slicing, missing_docs)]
#![cfg(feature = "sim")]

use std::io::{BufRead, BufReader, Read, Write};
use std::net::TcpStream;
use std::process::{Command, Stdio};

use serde_json::Value;

/// One request over a connection of its own: status and body.
fn ask(address: &str, request: &str, body: &str) -> (u16, Value) {
    let mut stream = TcpStream::connect(address).unwrap();
    let length = body.len();
    write!(
        stream,
        "{request} HTTP/1.1\r\nHost: {address}\r\nAuthorization: Bearer t\r\nConnection: close\r\n\
         Content-Length: {length}\r\n\r\n{body}"
    )
    .unwrap();
    let mut text = String::new();
    stream.read_to_string(&mut text).unwrap();
    let (head, body) = text.split_once("\r\n\r\n").unwrap();
    let status = head.split(' ').nth(1).unwrap().parse().unwrap();
    (status, serde_json::from_str(body).unwrap_or_default())
}

#[test]
fn it_prints_its_address_serves_the_api_and_stops_when_told() {
    let mut server = Command::new(env!("CARGO_BIN_EXE_cloudberth"))
        .args(["sim", "cloud", "--provider", "cloudscale", "--listen", "127.0.0.1:0", "--instances", "3"])
        .args(["--latency", "1ms", "--build", "1h", "--token", "t"])
        .stdout(Stdio::piped())
        .spawn()
        .unwrap();
    let mut line = String::new();
    BufReader::new(server.stdout.take().unwrap()).read_line(&mut line).unwrap();
    let address = line.split("http://").nth(1).unwrap().split(',').next().unwrap();
    assert!(address.starts_with("127.0.0.1:") && !address.ends_with(":0"), "{line}");
    assert!(line.contains("3 servers"), "{line}");

    let (status, servers) = ask(address, "GET /v1/servers", "");
    let mut names: Vec<_> = servers.as_array().unwrap().iter().map(|s| s["name"].as_str().unwrap()).collect();
    names.sort_unstable();
    assert_eq!((status, names), (200, vec!["node-1", "node-2", "node-3"]));
    assert!(servers[0]["href"].as_str().unwrap().starts_with(&format!("http://{address}/v1/servers/")));
    let (status, made) = ask(address, "POST /v1/load-balancers", r#"{"name": "a", "flavor": "lb-standard"}"#);
    assert_eq!((status, &made["status"]), (201, &"changing".into()));

    let (_, calls) = ask(address, "GET /_sim/calls", "");
    assert_eq!((&calls["total"], &calls["mutations"]), (&2.into(), &1.into()));
    assert_eq!(calls["operations"]["load-balancers.create"], 1);
    let (_, state) = ask(address, "GET /_sim/state", "");
    assert_eq!(
        (state["servers"].as_array().unwrap().len(), &state["load_balancers"][0]["name"]),
        (3, &"a".into())
    );
    let fault =
        r#"{"faults": [{"operation": "servers.list", "times": 1, "harm": {"status": {"code": 503}}}]}"#;
    assert_eq!(ask(address, "POST /_sim/faults", fault).0, 200);
    let statuses = [(); 2].map(|()| ask(address, "GET /v1/servers", "").0);
    assert_eq!(statuses, [503, 200]);
    assert_eq!(ask(address, "POST /_sim/reset", "").0, 200);
    assert_eq!(ask(address, "GET /_sim/calls", "").1["total"], 0);
    assert_eq!(ask(address, "GET /v1/load-balancers", "").1.as_array().unwrap().len(), 0);
    assert_eq!(ask(address, "GET /v1/servers", "").1.as_array().unwrap().len(), 3);

    let told = Command::new("kill").args(["-TERM", &server.id().to_string()]).status().unwrap();
    assert!(told.success() && server.wait().unwrap().success());
}

#[test]
fn brightbox_lets_any_token_in_unless_one_is_given() {
    for (token, status) in [(vec![], 200), (vec!["--token", "secret"], 401)] {
        let mut server = Command::new(env!("CARGO_BIN_EXE_cloudberth"))
            .args(["sim", "cloud", "--provider", "brightbox", "--listen", "127.0.0.1:0", "--instances", "2"])
            .args(&token)
            .stdout(Stdio::piped())
            .spawn()
            .unwrap();
        let mut line = String::new();
        BufReader::new(server.stdout.take().unwrap()).read_line(&mut line).unwrap();
        let address = line.split("http://").nth(1).unwrap().split(',').next().unwrap();
        let (answered, servers) = ask(address, "GET /1.0/servers", "");
        let (_, state) = ask(address, "GET /_sim/state", "");
        server.kill().unwrap();
        server.wait().unwrap();
        assert_eq!(answered, status, "{token:?}: {servers}");
        assert_eq!(state["servers"].as_array().unwrap().len(), 2, "{token:?}");
        assert_eq!(state["servers"][0]["zone"]["handle"], "gb1-a", "{token:?}");
    }
}

#[test]
fn mistakes_are_explained() {
    let listen = ["--listen", "127.0.0.1:0"];
    let table = [
        (vec!["--provider", "nimbus"], "cloudscale"),
        (vec!["--provider", "cloudscale", "--latency", "20"], "numbers with units"),
        (vec!["--provider", "cloudscale", "--build=-1s"], "negative"),
        (vec!["--provider", "cloudscale", "--zone", "mars1"], "lpg1"),
        (vec!["--provider", "binarylane", "--zone", "rma1"], "bne, syd"),
        (vec!["--provider", "brightbox", "--zone", "rma1"], "gb1s-a"),
    ];
    for (arguments, want) in table {
        let mut command = Command::new(env!("CARGO_BIN_EXE_cloudberth"));
        let output = command.args(["sim", "cloud"]).args(listen).args(&arguments).output().unwrap();
        let said = String::from_utf8_lossy(&output.stderr).into_owned();
        assert!(!output.status.success() && said.contains(want), "{arguments:?}: {said}");
    }
    let mut command = Command::new(env!("CARGO_BIN_EXE_cloudberth"));
    let taken =
        command.args(["sim", "cloud", "--provider", "cloudscale", "--listen", "192.0.2.1:1"]).output();
    let said = String::from_utf8_lossy(&taken.unwrap().stderr).into_owned();
    assert!(said.contains("cloudberth sim cloud:"), "{said}");
}
