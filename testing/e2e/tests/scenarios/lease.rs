//! Every version that a Lease ever had.

use std::sync::{Arc, Mutex};
use std::time::Duration;

use cloudberth_e2e::{Cluster, Request, eventually};
use jiff::Timestamp;
use serde_json::Value;
use sim_kit::Surroundings;
use tokio::task::JoinSet;

use crate::Fallible;
use crate::fixture::{SOON, text};

/// One version.
#[derive(Clone, Debug)]
struct Version {
    number: String,
    holder: String,
    transitions: u64,
    acquired: Timestamp,
    renewed: Timestamp,
    /// When it was written down here.
    seen: Timestamp,
}

impl Version {
    fn read(lease: &Value) -> Self {
        let time = |pointer| text(lease, pointer).parse().unwrap_or_default();
        Self {
            number: text(lease, "/metadata/resourceVersion").to_owned(),
            holder: text(lease, "/spec/holderIdentity").to_owned(),
            transitions: lease.pointer("/spec/leaseTransitions").and_then(Value::as_u64).unwrap_or(0),
            acquired: time("/spec/acquireTime"),
            renewed: time("/spec/renewTime"),
            seen: Surroundings::of_this_machine().now(),
        }
    }

    /// Whether somebody who keeps times in whole seconds, as client-go does, sees no difference.
    fn looks_like(&self, other: &Self) -> bool {
        self.holder == other.holder && self.renewed.as_second() == other.renewed.as_second()
    }
}

/// A record that is being written.
pub(crate) struct Record<'w> {
    cluster: &'w Cluster,
    path: String,
    versions: Arc<Mutex<Vec<Version>>>,
    _task: JoinSet<()>,
}

impl<'w> Record<'w> {
    /// Writes down every version of the Lease at `path` from now on.
    pub(crate) async fn begin(cluster: &'w Cluster, path: &str) -> Fallible<Self> {
        let (all, name) = path.rsplit_once('/').expect("a path with a name");
        let listed = cluster.get(all).await?;
        let from = text(&listed, "/metadata/resourceVersion");
        let request = format!("{all}?watch=true&resourceVersion={from}&fieldSelector=metadata.name%3D{name}");
        let mut watch = cluster.admin().watch(&Request::get(request)).await?.expect("a watch");
        let versions: Arc<Mutex<Vec<Version>>> = Arc::default();
        let (mut task, book) = (JoinSet::new(), Arc::clone(&versions));
        task.spawn(async move {
            loop {
                match watch.next(SOON).await {
                    Ok(Some(event)) => book.lock().unwrap().push(Version::read(&event["object"])),
                    Ok(None) => return,
                    Err(why) => return eprintln!("the record of the Lease broke off: {why}"),
                }
            }
        });
        Ok(Self { cluster, path: path.to_owned(), versions, _task: task })
    }

    /// The record, once it has the version that is stored now.
    pub(crate) async fn end(self) -> Fallible<History> {
        let now = Version::read(&self.cluster.get(&self.path).await?).number;
        let versions = eventually(SOON, &format!("version {now} of the Lease is on record"), async || {
            let versions = self.versions.lock().unwrap().clone();
            let last = versions.last().map(|version| version.number.clone());
            if last.as_ref() == Some(&now) { Ok(versions) } else { Err(format!("{last:?}")) }
        })
        .await?;
        Ok(History(versions))
    }
}

/// The record, complete.
pub(crate) struct History(Vec<Version>);

impl History {
    /// How often the Lease went to another holder. Fails where one took it from another who had neither given it back
    /// nor been silent for `lease`, and where the Lease's own count is another one.
    pub(crate) fn handovers(&self, lease: Duration) -> u64 {
        let first = self.0.first().expect("a first version");
        assert_eq!(first.transitions, 0, "{first:?}");
        let (mut handovers, mut alive) = (0, first.seen);
        for pair in self.0.windows(2) {
            let [old, new] = pair else { continue };
            if new.holder != old.holder && !new.holder.is_empty() {
                handovers += 1;
            }
            assert_eq!(new.transitions, handovers, "counted wrongly: {old:?} {new:?}");
            if new.holder != old.holder && !new.holder.is_empty() && !old.holder.is_empty() {
                let silent = new.acquired.duration_since(alive);
                assert!(silent.unsigned_abs() >= lease, "L9-41: taken after {silent:?}: {old:?} {new:?}");
            }
            if !new.looks_like(old) {
                alive = new.renewed.min(new.seen);
            }
        }
        handovers
    }
}
