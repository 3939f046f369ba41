//! What the story cost.

use std::io::{self, Write};

use cloudberth::world::{Watched as _, World};

use super::printer::Printer;

/// Prints what was counted on the way to the cloud, to the Kubernetes API and through the load balancer.
pub(super) fn print<W: Write>(world: &World, printer: &mut Printer<W>) -> io::Result<()> {
    let totals = world.snapshot().totals;
    printer.plain(&format!("\nAll of it happened, in {}. It took:", printer.seconds()))?;
    let mut rows = vec![
        ("cloud calls", totals.cloud_calls - totals.cloud_changes, "reading"),
        ("", totals.cloud_changes, "changing"),
        ("Kubernetes writes", totals.kube_writes, "by the manager, events included"),
        ("", totals.lease_writes, "renewals of the Lease"),
    ];
    if world.has_traffic() {
        rows.push(("requests", totals.requests, "answered"));
        rows.push(("", totals.errors, "failed"));
    }
    for (title, count, what) in rows {
        printer.plain(&format!("  {title:<18} {count:>5}  {what}"))?;
    }
    Ok(())
}
