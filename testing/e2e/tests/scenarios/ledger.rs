//! The requests of the managers in all scenarios on one kind of cluster, checked against the roles in the manifests.

use std::sync::{Mutex, PoisonError};

use cloudberth_e2e::{Account, Cluster, ClusterKind, Rights, Row};
use embedded_kube::User;

use crate::Outcome;

struct Entry {
    kind: ClusterKind,
    user: User,
    rights: Rights,
    rows: Vec<Row>,
}

static LEDGER: Mutex<Vec<Entry>> = Mutex::new(Vec::new());

/// Adds the requests of a scenario's managers, which are known to be within their rights.
pub(crate) fn enter(kind: ClusterKind, account: &Account, rows: Vec<Row>) {
    let (user, rights) = (account.user.clone(), account.rights.clone());
    let mut ledger = LEDGER.lock().unwrap_or_else(PoisonError::into_inner);
    ledger.push(Entry { kind, user, rights, rows });
}

/// Runs last: a right that no scenario needed must not be granted.
pub(crate) async fn no_right_of_a_shipped_role_goes_unused(cluster: &Cluster) -> Outcome {
    let ledger = LEDGER.lock().unwrap_or_else(PoisonError::into_inner);
    let entries: Vec<&Entry> = ledger.iter().filter(|entry| entry.kind == cluster.kind()).collect();
    let rows: Vec<Row> = entries.iter().flat_map(|entry| entry.rows.iter().cloned()).collect();
    assert!(!entries.is_empty(), "no scenario had a manager");
    // What the manifests have in common is needed at one cloud or another; what only one has, at that one.
    for entry in &entries {
        assert_eq!(entry.rights.unused(&entry.user, &rows), Vec::<String>::new());
    }
    println!(
        "         {} managers' scenarios made {} calls, all within the shipped roles",
        entries.len(),
        rows.len()
    );
    Ok(())
}
