//! Where a load balancer listens, and what is told if it cannot.

use std::net::{IpAddr, Ipv6Addr, TcpListener};

use cloudberth_lycke::plane::{Listener, ListenerFault, Plane, PlaneEvent, Protocol};

use crate::fixture::{
    Fixture, NODE_PORT, PORT, Server, ask, config, eventually, fresh_address, key, not_shown, within,
};

#[tokio::test]
async fn a_taken_port_is_told_and_bound_when_it_is_free() {
    let a = Server::start("a").await;
    let mut fixture = Fixture::new(&[&a]);
    fixture.config.listeners.push(Listener { protocol: Protocol::Tcp, port: 8081, node_port: NODE_PORT });
    let program = TcpListener::bind(fixture.at(PORT)).unwrap();
    let report = fixture.apply().await;
    assert_eq!(report.listeners[0].fault, Some(ListenerFault::AddressInUse(None)), "CL-63");
    assert_eq!(report.listeners[0].bound, None, "CL-63");
    let message = format!("{} is in use by another program", fixture.at(PORT));
    assert_eq!(report.listeners[0].message, message, "CL-63");
    assert_eq!(ask(fixture.at(8081)).await.unwrap(), "a", "CL-63 the other port serves");
    drop(program);
    eventually("CL-63 bound when the program has ended", || match &fixture.report().listeners[0] {
        listener if listener.bound == Some(fixture.at(PORT)) && listener.fault.is_none() => Ok(()),
        listener => Err(format!("{listener:?}")),
    })
    .await;
    assert_eq!(fixture.ask().await.unwrap(), "a", "CL-63");
    let told: Vec<_> = fixture
        .events()
        .into_iter()
        .filter_map(|event| match event {
            PlaneEvent::ListenerBound { listener } => Some((listener.port, true)),
            PlaneEvent::ListenerFailed { listener } => Some((listener.port, false)),
            _ => None,
        })
        .collect();
    assert_eq!(told, [(PORT, false), (8081, true), (PORT, true)], "CL-63 told once each");
}

#[tokio::test]
async fn a_port_of_another_load_balancer_names_it() {
    let a = Server::start("a").await;
    let fixture = Fixture::new(&[&a]);
    fixture.apply().await;
    let report = fixture.apply_as("second", fixture.config.clone()).await;
    assert_eq!(report.listeners[0].fault, Some(ListenerFault::AddressInUse(Some(key("web")))), "CL-67");
    assert!(report.listeners[0].message.ends_with("by load balancer c2/default/web"), "CL-67 {report:?}");
    within("remove", fixture.plane.remove(&key("web"))).await;
    eventually("CL-67 bound after the first is gone", || {
        let report = fixture.plane.report(&key("second")).unwrap();
        report.listeners[0].bound.map(|_| ()).ok_or_else(|| format!("{report:?}"))
    })
    .await;
    assert_eq!(fixture.ask().await.unwrap(), "a", "CL-67");
}

#[tokio::test]
async fn a_low_port_is_bound_or_shifted() {
    let a = Server::start("a").await;
    let mut fixture = Fixture::new(&[&a]);
    fixture.config.listeners[0].port = 80;
    let privileged = TcpListener::bind((fresh_address(), 80)).is_ok();
    let report = fixture.apply().await;
    let (port, fault) = if privileged { (80, None) } else { (10_080, Some(ListenerFault::Shifted)) };
    assert_eq!(report.listeners[0].bound, Some(fixture.at(port)), "CL-64 {report:?}");
    assert_eq!(report.listeners[0].fault, fault, "CL-64");
    assert_eq!(ask(fixture.at(port)).await.unwrap(), "a", "CL-64 it serves");
}

#[tokio::test]
async fn both_families_serve() {
    let a = Server::start("a").await;
    let mut fixture = Fixture::new(&[&a]);
    if let Err(why) = TcpListener::bind((Ipv6Addr::LOCALHOST, 0)) {
        return not_shown("CL-68", &format!("there is no ::1: {why}"));
    }
    // A port that is free on ::1, which other tests and programs share.
    let port = TcpListener::bind((Ipv6Addr::LOCALHOST, 0)).unwrap().local_addr().unwrap().port();
    fixture.config.addresses.push(IpAddr::V6(Ipv6Addr::LOCALHOST));
    fixture.config.listeners[0].port = port;
    let report = fixture.apply().await;
    let bound: Vec<_> = report.listeners.iter().map(|listener| listener.bound).collect();
    let six = (Ipv6Addr::LOCALHOST, port).into();
    assert_eq!(bound, [Some(fixture.at(port)), Some(six)], "CL-68 one entry for each family");
    assert_eq!(ask(fixture.at(port)).await.unwrap(), "a", "CL-68 IPv4");
    assert_eq!(ask(six).await.unwrap(), "a", "CL-68 IPv6");
}

#[tokio::test]
async fn two_hundred_load_balancers_serve_together() {
    let a = Server::start("a").await;
    let fixture = Fixture::new(&[&a]);
    // Two ports of a hundred addresses.
    let addresses: Vec<_> = (0..100).map(|_| fresh_address()).collect();
    let answers: Vec<_> = (0..200)
        .map(|number: usize| {
            let mut config = config(addresses[number / 2], vec![a.backend()]);
            config.listeners[0].port = PORT + u16::try_from(number % 2).unwrap();
            fixture.plane.apply(&key(&format!("web-{number}")), config)
        })
        .collect();
    for (number, answer) in answers.into_iter().enumerate() {
        let report = within("apply", answer).await;
        let bound = report.listeners[0].bound.expect("CL-98 bound");
        assert_eq!(ask(bound).await.unwrap(), "a", "CL-98 load balancer {number}");
    }
}
