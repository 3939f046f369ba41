//! What managers asked of the API server in all scenarios of one kind of world, held against the role in the cloud's manifest.

use std::sync::{Mutex, PoisonError};

use cloudberth_e2e::{Account, Kind, Rights, Row, World};
use embedded_kube::User;

use crate::Outcome;

struct Entry {
    kind: Kind,
    user: User,
    rights: Rights,
    rows: Vec<Row>,
}

static LEDGER: Mutex<Vec<Entry>> = Mutex::new(Vec::new());

/// Notes what the managers of a scenario asked for, which is known to be within their rights.
pub(crate) fn enter(kind: Kind, account: &Account, rows: Vec<Row>) {
    let (user, rights) = (account.user.clone(), account.rights.clone());
    let mut ledger = LEDGER.lock().unwrap_or_else(PoisonError::into_inner);
    ledger.push(Entry { kind, user, rights, rows });
}

/// Comes last: what no scenario needed is not to be granted.
pub(crate) async fn no_right_of_the_shipped_role_goes_unused(world: &World) -> Outcome {
    let ledger = LEDGER.lock().unwrap_or_else(PoisonError::into_inner);
    let entries: Vec<&Entry> = ledger.iter().filter(|entry| entry.kind == world.kind()).collect();
    let rows: Vec<Row> = entries.iter().flat_map(|entry| entry.rows.iter().cloned()).collect();
    let first = entries.first().expect("a scenario with a manager");
    assert_eq!(first.rights.unused(&first.user, &rows), Vec::<String>::new());
    println!(
        "         {} managers' scenarios made {} calls, all within the shipped role",
        entries.len(),
        rows.len()
    );
    Ok(())
}
