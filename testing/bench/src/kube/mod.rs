//! The embedded Kubernetes API under load, in memory, without sockets.
//!
//! The run ends with an error when a watcher missed, repeated or misplaced a single event: a server that loses events is
//! not worth measuring.

mod client;
mod mirror;
pub(crate) mod objects;
mod report;
mod work;

use std::sync::Arc;
use std::time::Duration;

use embedded_kube::KubeApi;
use sim_kit::Surroundings;
use tokio::task::JoinSet;
use tokio::time::{Instant, timeout};

use crate::memory;
use client::{BenchError, Client};
use mirror::Mirror;
use objects::Kind;
use report::{Listing, Report};
use work::{Counts, Watched};

/// How often each list is timed.
const LISTS: usize = 9;
/// The longest wait for watchers to catch up with the last write.
const CATCH_UP: Duration = Duration::from_mins(2);

/// How much of everything.
#[derive(Clone, Debug)]
pub(crate) struct Load {
    pub(crate) nodes: usize,
    pub(crate) services: usize,
    pub(crate) clients: usize,
    /// The first watches Nodes, the second Services, and so on alternately.
    pub(crate) watchers: usize,
    pub(crate) until: Until,
}

/// When a client stops.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Until {
    /// After this much real time.
    Elapsed(Duration),
    /// After this many patches of its own.
    #[cfg_attr(not(test), expect(dead_code, reason = "a test counts; a person has a clock"))]
    Patches(u64),
}

/// Fills a cluster, puts load on it, and checks the state of the watchers.
pub(crate) async fn run(load: &Load) -> Result<Report, BenchError> {
    let client = Client::new(KubeApi::new(Surroundings::of_this_machine()));
    let started = Instant::now();
    work::fill(&client, load).await?;
    let (filled_in, filled_kib) = (started.elapsed(), memory::resident_kib());
    let listings = [list(&client, Kind::Node).await?, list(&client, Kind::Service).await?];

    let mut watchers = JoinSet::new();
    let watchable = [(Kind::Node, load.nodes), (Kind::Service, load.services)];
    let watchable = watchable.into_iter().filter(|(_, count)| *count > 0).map(|(kind, _)| kind);
    for kind in watchable.cycle().take(load.watchers) {
        // Opened before the first patch, so that every one of them has to be seen.
        let watched = Watched::open(client.clone(), kind).await?;
        watchers.spawn(watched.follow());
    }
    let started = Instant::now();
    let counts = patch(&client, load).await?;
    let patched_in = started.elapsed();
    let caught_up = watchers.join_all();
    let watched = timeout(CATCH_UP, caught_up).await.map_err(|_| BenchError::Behind)?;
    let watched = watched.into_iter().collect::<Result<Vec<Watched>, BenchError>>()?;
    // Before the check, which needs room of its own.
    let loaded_kib = memory::resident_kib();
    check(&client, &watched, counts).await?;
    Ok(Report {
        load: load.clone(),
        filled_in,
        listings,
        patched_in,
        counts,
        relists: watched.iter().map(|watched| watched.relists).sum(),
        filled_kib,
        loaded_kib,
    })
}

/// Lets all clients patch, then marks the end for the watchers.
async fn patch(client: &Client, load: &Load) -> Result<Counts, BenchError> {
    let load = Arc::new(load.clone());
    let mut clients = JoinSet::new();
    for number in 0..load.clients {
        clients.spawn(work::patches(client.clone(), Arc::clone(&load), number));
    }
    let mut counts = Counts::default();
    while let Some(done) = clients.join_next().await {
        counts += done.map_err(|_| BenchError::Panicked)??;
    }
    counts += work::mark_the_end(client, &load).await?;
    Ok(counts)
}

async fn list(client: &Client, kind: Kind) -> Result<Listing, BenchError> {
    let mut times = Vec::with_capacity(LISTS);
    let mut bytes = 0;
    for _ in 0..LISTS {
        let started = Instant::now();
        bytes = client.get(kind.path()).await?.len();
        times.push(started.elapsed());
    }
    times.sort_unstable();
    Ok(Listing { median: times.get(LISTS / 2).copied().unwrap_or_default(), bytes })
}

/// Checks that every watcher ends with the state of a fresh list and has seen every single write.
async fn check(client: &Client, watched: &[Watched], counts: Counts) -> Result<(), BenchError> {
    for (number, watched) in watched.iter().enumerate() {
        let fresh = Mirror::of_list(client.get_json(watched.kind.path()).await?)?;
        if let Some(key) = watched.mirror.first_difference(&fresh) {
            return Err(BenchError::Watch(format!("watcher {number} has another {key} than a fresh list")));
        }
        let (seen, made) = (watched.mirror.events(), counts.of(watched.kind));
        // A watcher that had to list again has skipped events, which is allowed.
        if watched.relists == 0 && seen != made {
            return Err(BenchError::Watch(format!("watcher {number} saw {seen} of {made} writes")));
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn every_write_is_seen_by_every_watcher() {
        let load = Load { nodes: 12, services: 5, clients: 4, watchers: 4, until: Until::Patches(25) };
        let report = run(&load).await.unwrap();
        assert_eq!(report.relists, 0);
        // The two more mark the end.
        assert_eq!(report.counts.of(Kind::Node) + report.counts.of(Kind::Service), 4 * 25 + 2);
        let text = report.to_string();
        assert!(text.contains("12 Nodes, 5 Services") && text.contains("patches per second"), "{text}");
    }

    #[tokio::test]
    async fn a_watcher_that_lost_something_fails_the_run() {
        let client = Client::new(KubeApi::new(Surroundings::of_this_machine()));
        let load = Load { nodes: 2, services: 1, clients: 1, watchers: 0, until: Until::Patches(3) };
        work::fill(&client, &load).await.unwrap();
        let watched = Watched::open(client.clone(), Kind::Node).await.unwrap();
        let counts = patch(&client, &load).await.unwrap();
        let before = watched.mirror.clone();
        let mut watched = watched.follow().await.unwrap();
        check(&client, std::slice::from_ref(&watched), counts).await.unwrap();
        let seen = std::mem::replace(&mut watched.mirror, before);
        let told = check(&client, std::slice::from_ref(&watched), counts).await.unwrap_err().to_string();
        assert!(told.contains("than a fresh list"), "{told}");
        watched.mirror = seen;
        let more = Counts { nodes: counts.nodes + 1, ..counts };
        let told = check(&client, &[watched], more).await.unwrap_err().to_string();
        assert!(told.contains("writes"), "{told}");
    }
}
