//! Replays the table on two real API servers (to check the table itself), and on a real one and the embedded one.
#![cfg(target_os = "linux")]
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, clippy::indexing_slicing, missing_docs)]
// The output is for people.
#![allow(clippy::print_stdout, clippy::print_stderr)]

mod support;

use std::path::PathBuf;
use std::time::Duration;

use cloudberth_e2e::conformance::{
    EXCEPTIONS, Exception, Row, Target, Transcript, differences, dump, replay, sift, table,
};
use cloudberth_e2e::{ControlPlane, Embedded, Options};
use support::assets;

/// Replays `rows` on both; fails when the table is wrong about the first, when the second differs from it other than by
/// design, or when an exception that is listed as by design does not differ any more.
async fn compare(
    real: &impl Target,
    other: &impl Target,
    rows: &[Row],
    exceptions: &[Exception],
    name: &str,
) {
    let (real, other) = tokio::join!(replay(real, rows), replay(other, rows));
    if let Some(dir) = std::env::var_os("CLOUDBERTH_CONFORMANCE_DUMP").map(PathBuf::from) {
        dump(&real, &dir.join(format!("{name}.real.json"))).unwrap();
        dump(&other, &dir.join(format!("{name}.other.json"))).unwrap();
    }
    let problems: Vec<_> = real.iter().flat_map(Transcript::problems).collect();
    assert!(problems.is_empty(), "the table is wrong:\n{}", problems.join("\n"));
    let (found, by_design) = sift(differences(&real, &other), exceptions);
    println!(
        "{} rows, {} requests, {} differences, {} more by design under {} exceptions",
        rows.len(),
        table::requests(rows),
        found.len(),
        by_design.len(),
        exceptions.len()
    );
    for exception in exceptions {
        println!("  {} {:?} {}: {}", exception.row, exception.steps, exception.path, exception.why);
        let alive = by_design.iter().any(|found| exception.covers(found));
        assert!(alive, "{} does not differ any more: take it off the list", exception.row);
    }
    let found: Vec<_> = found.iter().map(ToString::to_string).collect();
    assert!(found.is_empty(), "{} differences:\n{}", found.len(), found.join("\n"));
}

#[tokio::test]
async fn two_real_servers_answer_alike() {
    let first = ControlPlane::start_with_a_past(&assets(), &Options::default()).await.unwrap();
    let second = first.beside(&Options::default()).await.unwrap();
    let rows = table::rows();
    assert!(table::requests(&rows) >= 200);
    compare(first.admin(), second.admin(), &rows, &[], "two-real").await;
}

#[tokio::test]
async fn the_embedded_api_answers_like_the_real_one() {
    let real = ControlPlane::start_with_a_past(&assets(), &Options::default()).await.unwrap();
    let embedded = Embedded::start().await.unwrap();
    compare(real.admin(), embedded.admin(), &table::rows(), EXCEPTIONS, "embedded").await;
}

#[tokio::test]
async fn the_embedded_api_answers_alike_below_a_path() {
    let plain = Embedded::start().await.unwrap();
    let below = Embedded::start_below("/k8s/clusters/c-abc").await.unwrap();
    compare(plain.admin(), below.admin(), &table::rows(), &[], "below-a-path").await;
}

#[tokio::test]
async fn the_embedded_api_forgets_like_the_real_one() {
    let options = Options { args: vec!["--etcd-compaction-interval=1s".into()], ..Options::default() };
    let real = ControlPlane::start(&assets(), &options).await.unwrap();
    let embedded = Embedded::start().await.unwrap();
    let forgetting = async {
        loop {
            tokio::time::sleep(Duration::from_secs(1)).await;
            embedded.api().compact();
        }
    };
    let rows = table::forgetful_rows();
    tokio::select! {
        () = compare(real.admin(), embedded.admin(), &rows, &[], "embedded-forgetful") => {}
        () = forgetting => {}
    }
}

#[tokio::test]
async fn compacted_revisions_are_gone() {
    let options = Options { args: vec!["--etcd-compaction-interval=1s".into()], ..Options::default() };
    let first = ControlPlane::start(&assets(), &options).await.unwrap();
    // On an etcd of its own: compaction applies to all servers of one store.
    let second = ControlPlane::start(&assets(), &options).await.unwrap();
    compare(first.admin(), second.admin(), &table::forgetful_rows(), &[], "two-forgetful").await;
}

#[tokio::test]
async fn a_server_that_differs_is_caught() {
    let first = ControlPlane::start(&assets(), &Options::default()).await.unwrap();
    let args = vec!["--disable-admission-plugins=TaintNodesByCondition".into()];
    let second = first.beside(&Options { args, ..Options::default() }).await.unwrap();
    let rows: Vec<_> =
        table::rows().into_iter().filter(|row| row.name.starts_with("a bare node is completed")).collect();
    let (real, other) = tokio::join!(replay(first.admin(), &rows), replay(second.admin(), &rows));
    let found: Vec<_> = differences(&real, &other).iter().map(ToString::to_string).collect();
    let row = r#"nodes-1 "a bare node is completed, read, and deleted""#;
    let taints = r#"/body/spec/taints: real=[{"effect":"NoSchedule","key":"node.kubernetes.io/not-ready"}] embedded=(absent)"#;
    assert_eq!(
        found,
        [
            format!("{row} | 1. POST /api/v1/nodes | {taints}"),
            format!("{row} | 2. GET /api/v1/nodes/nodes-1 | {taints}"),
        ]
    );
}
