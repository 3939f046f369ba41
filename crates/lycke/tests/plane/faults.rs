//! A process that has no file descriptors left.
//!
//! The limit is one of the whole process, so this runs in a process of its own.

use std::{
    fs::File,
    io::{ErrorKind, Read},
    process::Command,
};

use cloudberth_lycke::plane::HealthKind;
use socket2::{Domain, Socket, Type};

use crate::{
    alone::alone,
    fixture::{Client, DEADLINE, Fixture, PORT, Server, kind},
};

#[test]
fn without_descriptors_clients_are_refused_and_served_again_later() {
    let name = "faults::without_descriptors_clients_are_refused_and_served_again_later";
    alone("CL-88", name, |tests| Ok(Command::new(tests)), out_of_descriptors());
}

async fn out_of_descriptors() {
    let a = Server::start("a").await;
    let mut fixture = Fixture::new(&[&a]);
    // Checks would take and free descriptors.
    fixture.config.health.kind = HealthKind::None;
    fixture.apply().await;
    let mut kept = Client::connect(fixture.at(PORT)).await.unwrap();
    kept.ask().await.unwrap();
    // The clients' own sockets must exist before the last descriptor is gone.
    let sockets: Vec<_> = (0..5).map(|_| Socket::new(Domain::IPV4, Type::STREAM, None).unwrap()).collect();
    let mut hoard = Vec::new();
    while let Ok(file) = File::open("/dev/null") {
        hoard.push(file);
    }
    for socket in &sockets {
        // The sockets stay open: closing one would free a descriptor.
        let _ = socket.set_read_timeout(Some(DEADLINE));
        let connected = socket.connect(&fixture.at(PORT).into());
        let end = connected.and_then(|()| (&mut &*socket).read(&mut [0]));
        assert_eq!(kind(end), Some(ErrorKind::ConnectionReset), "CL-88 refused, not left hanging");
    }
    assert_eq!(kept.ask().await.unwrap(), "a", "CL-88 those that are there go on");
    assert_eq!(fixture.counters().connections.refused_limit, 5, "CL-88 counted");
    drop(hoard);
    assert_eq!(fixture.ask().await.unwrap(), "a", "CL-88 served again");
}
