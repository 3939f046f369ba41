//! What a new version of the file may not take away.

use std::path::Path;

use super::{Fault, Inventory};

/// A fault for each cluster that had machines and has none any more. An empty cluster would have all of its nodes deleted,
/// and a file that is half written or generated from nothing looks just like that (law 1); `allowEmpty` says that it is
/// meant.
pub(crate) fn emptied_clusters(old: &Inventory, new: &Inventory, file: &Path) -> Vec<Fault> {
    if new.allow_empty {
        return Vec::new();
    }
    let count = |inventory: &Inventory, key: &str| {
        inventory.machines.values().filter(|machine| machine.cluster == key).count()
    };
    let emptied = old.clusters.keys().filter(|key| count(old, key) > 0 && count(new, key) == 0);
    emptied
        .map(|key| Fault {
            file: file.display().to_string(),
            line: new.clusters.get(key).map_or(1, |cluster| cluster.line),
            field: format!("clusters.{key}"),
            message: format!(
                "{key:?} had {} machines and would have none; say allowEmpty: true if that is meant",
                count(old, key)
            ),
        })
        .collect()
}
