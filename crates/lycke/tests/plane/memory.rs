//! What connections that have gone quiet take.
//!
//! Memory is that of a whole process, so this runs in a process of its own.

use std::{
    io::{Read, Write},
    net::{TcpListener, TcpStream},
    process::Command,
    sync::mpsc,
    thread,
};

use cloudberth_lycke::plane::{Backend, HealthKind};

use crate::{
    alone::alone,
    fixture::{DEADLINE, Fixture, NODE_PORT, PORT, eventually, fresh_address},
};

/// Descriptors of a connection: the client's, two of the plane, and the backend's.
const DESCRIPTORS: u64 = 4;
const MOST_EACH: usize = 8 * 1024;
/// Each connection has carried so much in both directions before it goes quiet, which takes a buffer on the way.
const CARRIED: usize = 16 * 1024;

#[test]
fn a_quiet_connection_holds_no_buffer() {
    let start = |tests| match resident() {
        Some(_) => Ok(Command::new(tests)),
        None => Err("the memory of a process cannot be seen".to_owned()),
    };
    alone("CL-55", "memory::a_quiet_connection_holds_no_buffer", start, quiet_connections());
}

/// The resident memory of this process, in bytes.
fn resident() -> Option<usize> {
    let status = std::fs::read_to_string("/proc/self/status").ok()?;
    let line = status.lines().find_map(|line| line.strip_prefix("VmRSS:"))?;
    Some(line.trim().strip_suffix(" kB")?.parse::<usize>().ok()? * 1024)
}

/// A client that has had its answer. Neither it nor the backend has memory of its own in this process.
fn served(at: std::net::SocketAddr, bytes: &mut [u8]) -> TcpStream {
    let mut stream = TcpStream::connect(at).unwrap();
    stream.set_read_timeout(Some(DEADLINE)).unwrap();
    stream.write_all(bytes).unwrap();
    stream.read_exact(bytes).unwrap();
    stream
}

async fn quiet_connections() {
    let address = fresh_address();
    let listener = TcpListener::bind((address, NODE_PORT)).unwrap();
    let (kept, backend_side) = mpsc::channel();
    thread::spawn(move || {
        let mut bytes = vec![0; CARRIED];
        // One client after the other asks once.
        while let Ok((mut stream, _)) = listener.accept() {
            stream.read_exact(&mut bytes).unwrap();
            stream.write_all(&bytes).unwrap();
            kept.send(stream).unwrap();
        }
    });
    let mut fixture = Fixture::new(&[]);
    fixture.config.backends = vec![Backend { machine: "a".to_owned(), address, down: None }];
    // The backend is no server for anybody who asks nothing.
    fixture.config.health.kind = HealthKind::None;
    fixture.config.limits.connections = 20_000;
    fixture.apply().await;
    let files = rustix::process::getrlimit(rustix::process::Resource::Nofile).current.unwrap_or(u64::MAX);
    let count = usize::try_from((files.saturating_sub(200) / DESCRIPTORS).min(2_000)).unwrap();
    let at = fixture.at(PORT);

    let mut bytes = vec![7; CARRIED];
    // What every process needs once is there after the first few.
    let warm: Vec<_> = (0..20).map(|_| served(at, &mut bytes)).collect();
    let counters = || fixture.counters().connections;
    let open = |count: usize| {
        eventually("CL-55 the connections are open", move || match counters().open {
            open if usize::try_from(open).unwrap() == count => Ok(()),
            open => Err(format!("{open} open")),
        })
    };
    open(warm.len()).await;
    let before = resident().unwrap();
    let quiet: Vec<_> = (0..count).map(|_| served(at, &mut bytes)).collect();
    open(warm.len() + count).await;
    // Buffers that a thread may have kept would be seen now.
    let each = resident().unwrap().saturating_sub(before) / count;
    assert!(each <= MOST_EACH, "CL-55 {count} quiet connections take {each} bytes each");
    let counted = fixture.counters().connections;
    assert_eq!((counted.refused_limit, counted.failed), (0, 0), "CL-55 {counted:?}");
    drop((warm, quiet));
    drop(backend_side);
    eventually("CL-55 nothing is left", || match fixture.counters().connections.open {
        0 => Ok(()),
        open => Err(format!("{open} open")),
    })
    .await;
}
