//! The table against two real API servers: what it says is so, and nothing in it depends on chance.
#![cfg(target_os = "linux")]
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, clippy::indexing_slicing, missing_docs)]

mod support;

use std::path::PathBuf;

use cloudberth_e2e::conformance::{differences, dump, replay, table};
use cloudberth_e2e::{ControlPlane, Options};
use support::assets;

#[tokio::test]
async fn two_real_servers_answer_alike() {
    let rows = table::rows();
    let first = ControlPlane::start_with_a_past(&assets(), &Options::default()).await.unwrap();
    let second = first.beside(&Options::default()).await.unwrap();
    let real = replay(first.admin(), &rows).await;
    if let Some(path) = std::env::var_os("CLOUDBERTH_CONFORMANCE_DUMP") {
        dump(&real, &PathBuf::from(path)).unwrap();
    }
    let problems: Vec<_> = real
        .iter()
        .flat_map(|row| row.seen.iter().enumerate().map(move |(step, seen)| (row, step, seen)))
        .filter_map(|(row, step, seen)| {
            let problem = seen.problem.as_ref()?;
            Some(format!("{} {:?} {}. {}: {problem}", row.id, row.name, step + 1, seen.asked))
        })
        .collect();
    assert!(problems.is_empty(), "the table is wrong:\n{}", problems.join("\n"));

    let again = replay(second.admin(), &rows).await;
    let found: Vec<_> = differences(&real, &again).iter().map(ToString::to_string).collect();
    assert!(found.is_empty(), "{} differences:\n{}", found.len(), found.join("\n"));
    let requests: usize = rows.iter().map(|row| row.steps.len()).sum();
    println!("{} rows, {requests} requests, 0 differences", rows.len());
}
