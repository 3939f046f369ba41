//! Who is not let in.

use std::io::ErrorKind;

use cloudberth_lycke::plane::socket::PlaneSettings;

use crate::fixture::{Client, Fixture, PORT, Server, eventually, kind};

/// How a client that is refused sees it: accepted by the kernel, then reset.
async fn refused(fixture: &Fixture) -> Option<ErrorKind> {
    match Client::connect(fixture.at(PORT)).await {
        Ok(mut client) => kind(client.end().await),
        Err(error) => Some(error.kind()),
    }
}

#[tokio::test]
async fn a_source_outside_of_the_ranges_is_reset() {
    let a = Server::start("a").await;
    let mut fixture = Fixture::new(&[&a]);
    fixture.config.source_ranges = vec!["10.0.0.0/8".parse().unwrap()];
    fixture.apply().await;
    assert_eq!(refused(&fixture).await, Some(ErrorKind::ConnectionReset), "CL-60 reset");
    assert_eq!(fixture.counters().connections.refused_source, 1, "CL-60 counted");
    fixture.config.source_ranges.push("127.0.0.0/8".parse().unwrap());
    fixture.apply().await;
    assert_eq!(fixture.ask().await.unwrap(), "a", "CL-60 let in");
    let hits: Vec<_> = fixture.counters().source_ranges.iter().map(|(_, hits)| *hits).collect();
    assert_eq!(hits, [0, 1], "CL-60 counted at its range");
}

#[tokio::test]
async fn at_the_limit_new_clients_are_refused() {
    let a = Server::start("a").await;
    for total in [false, true] {
        let settings =
            PlaneSettings { workers: 2, connections: if total { 3 } else { 0 }, ..PlaneSettings::default() };
        let mut fixture = Fixture::with(&[&a], settings);
        fixture.config.limits.connections = if total { 4096 } else { 3 };
        fixture.apply().await;
        let mut kept = Vec::new();
        for _ in 0..3 {
            let mut client = Client::connect(fixture.at(PORT)).await.unwrap();
            client.ask().await.unwrap();
            kept.push(client);
        }
        assert_eq!(refused(&fixture).await, Some(ErrorKind::ConnectionReset), "CL-66 total: {total}");
        assert_eq!(fixture.counters().connections.refused_limit, 1, "CL-66 total: {total}");
        for client in &mut kept {
            assert_eq!(client.ask().await.unwrap(), "a", "CL-66 those that are there go on");
        }
        kept.pop();
        eventually("one leaves", || match fixture.counters().connections.open {
            2 => Ok(()),
            open => Err(format!("{open} open")),
        })
        .await;
        assert_eq!(fixture.ask().await.unwrap(), "a", "CL-66 there is room again");
    }
}
