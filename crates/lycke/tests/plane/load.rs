//! Many clients at once: changes under load, and clients that mean no good.

use std::{
    sync::{
        Arc,
        atomic::{AtomicBool, AtomicUsize, Ordering::SeqCst},
    },
    time::Duration,
};

use cloudberth_lycke::plane::Plane;
use tokio::{io::AsyncWriteExt, task::JoinSet};

use crate::fixture::{Client, Fixture, PORT, Server, ask, config, fresh_address, key, within};

#[tokio::test]
async fn a_hundred_changes_lose_no_request() {
    let servers: Vec<_> = {
        let mut servers = Vec::new();
        for name in ["a", "b", "c", "d"] {
            servers.push(Server::start(name).await);
        }
        servers
    };
    let mut fixture = Fixture::new(&servers.iter().collect::<Vec<_>>());
    fixture.apply().await;
    let (at, over, asked) =
        (fixture.at(PORT), Arc::new(AtomicBool::new(false)), Arc::new(AtomicUsize::new(0)));
    let mut clients = JoinSet::new();
    for number in 0..40 {
        let (over, asked) = (Arc::clone(&over), Arc::clone(&asked));
        clients.spawn(async move {
            // Half of them keep their connection, and half make a new one for each request.
            let mut kept = if number % 2 == 0 { Some(Client::connect(at).await?) } else { None };
            while !over.load(SeqCst) {
                match &mut kept {
                    Some(client) => client.ask().await?,
                    None => ask(at).await?,
                };
                asked.fetch_add(1, SeqCst);
            }
            std::io::Result::Ok(())
        });
    }
    let all = fixture.config.backends.clone();
    for change in 0..100 {
        fixture.config.backends = all.clone();
        // Each time another one is away; the last change brings all of them back.
        if change < 99 {
            fixture.config.backends.remove(change % 4);
        }
        let before = asked.load(SeqCst);
        fixture.apply().await;
        within("requests go on", async {
            while asked.load(SeqCst) < before + 20 {
                tokio::task::yield_now().await;
            }
        })
        .await;
    }
    over.store(true, SeqCst);
    while let Some(client) = within("clients end", clients.join_next()).await {
        client.unwrap().expect("CL-87 no request fails");
    }
    let lost = fixture.counters().connections;
    assert_eq!((lost.failed, lost.no_backend, lost.refused_limit), (0, 0, 0), "CL-87");
}

#[tokio::test]
async fn beside_a_load_balancer_full_of_slow_clients_another_one_serves_all_of_its_own() {
    let (a, b) = (Server::start("a").await, Server::start("b").await);
    let mut fixture = Fixture::new(&[&a]);
    fixture.config.limits.connections = 500;
    fixture.apply().await;
    let other = config(fresh_address(), vec![b.backend()]);
    let at = (other.addresses[0], PORT).into();
    fixture.apply_as("other", other).await;

    // Silent ones, and some that send a byte now and then. Half of them are over the limit.
    let mut hostile = Vec::new();
    for _ in 0..1000 {
        // Those over the limit may see the reset before they know that they are connected.
        hostile.extend(Client::connect(fixture.at(PORT)).await);
    }
    let over = Arc::new(AtomicBool::new(false));
    let trickle = {
        let over = Arc::clone(&over);
        tokio::spawn(async move {
            while !over.load(SeqCst) {
                for client in hostile.iter_mut().step_by(2) {
                    let _ = client.0.write_all(b".").await;
                }
                tokio::time::sleep(Duration::from_millis(500)).await;
            }
        })
    };
    let mut client = Client::connect(at).await.unwrap();
    for _ in 0..500 {
        assert_eq!(client.ask().await.unwrap(), "b", "CL-86 the other one serves");
        assert_eq!(ask(at).await.unwrap(), "b", "CL-86 new clients too");
    }
    let seen = fixture.counters().connections;
    assert_eq!((seen.open, seen.refused_limit), (500, 500), "CL-86 the limit holds: {seen:?}");
    assert_eq!(fixture.plane.counters(&key("other")).unwrap().connections.refused_limit, 0, "CL-86");
    over.store(true, SeqCst);
    trickle.await.unwrap();
}
