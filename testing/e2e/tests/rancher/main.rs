//! The floating-IP cluster manager for Rancher, with the real Helm, a chart repository and a registry.
//!
//! Each test is one long story, so that one set of servers serves for all of it. It is told on both kinds of cluster at
//! once: mostly it waits.
#![cfg(target_os = "linux")]
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, clippy::indexing_slicing, missing_docs)]
// What a test prints, a person reads.
#![allow(clippy::print_stdout, clippy::print_stderr)]

mod fixture;
mod objects;
mod plans;
mod releases;
mod story;
mod world;

use std::thread;

use cloudberth_e2e::ClusterKind;
use tokio::runtime::Builder;

/// In a world of three clusters: the management cluster, a guest and the Harvester below it.
#[test]
fn the_manager_serves_its_clusters_from_its_first_start_to_its_end() {
    on_both_kinds(story::tell);
}

#[test]
fn every_state_of_a_release_is_healed() {
    on_both_kinds(releases::tell);
}

/// Tells a story in worlds of both kinds at once. `CLOUDBERTH_WORLD` names one of them.
fn on_both_kinds<F: Future<Output = ()>>(story: impl Fn(ClusterKind) -> F + Copy + Send) {
    let only = std::env::var("CLOUDBERTH_WORLD").ok().map(|kind| kind.parse::<ClusterKind>().unwrap());
    let kinds = ClusterKind::ALL.into_iter().filter(|kind| only.is_none_or(|only| only == *kind));
    let told: Vec<_> = thread::scope(|scope| {
        let tell =
            |kind| move || Builder::new_current_thread().enable_all().build().unwrap().block_on(story(kind));
        let threads: Vec<_> = kinds.map(|kind| (kind, scope.spawn(tell(kind)))).collect();
        threads.into_iter().map(|(kind, thread)| (kind, thread.join().is_ok())).collect()
    });
    for (kind, well) in told {
        assert!(well, "the story went wrong on the {kind} kind; the panic is above");
    }
}
