//! What the story cost.

use std::{
    collections::BTreeMap,
    io::{self, Write},
};

use super::{
    printer::Printer,
    world::{MANAGER, World},
};

/// Prints how many calls the manager needed, by the logs of the cloud and of the API.
pub(super) fn print<W: Write>(world: &World, printer: &mut Printer<W>) -> io::Result<()> {
    let calls: Vec<_> = world.cloud.calls().into_iter().filter(|call| call.who == MANAGER).collect();
    let (writes, reads): (Vec<_>, Vec<_>) = calls.into_iter().partition(|call| call.write);
    let named = world.api.calls(0).into_iter().filter(|call| call.user_agent == MANAGER && call.is_write());
    let (leases, kube): (Vec<_>, Vec<_>) = named.partition(|call| call.resource == "leases");
    printer.plain(&format!(
        "\nAll of it happened. It took {}, and these calls by the manager:",
        printer.seconds()
    ))?;
    printer.plain(&line("cloud, reading", reads.iter().map(|call| call.operation)))?;
    printer.plain(&line("cloud, changing", writes.iter().map(|call| call.operation)))?;
    printer.plain(&line("Kubernetes writes", kube.iter().map(|call| call.resource.as_str())))?;
    printer.plain(&line("Lease renewals", leases.iter().map(|call| call.verb.as_str())))
}

/// How many, and how many of which.
fn line<'a>(title: &str, names: impl Iterator<Item = &'a str>) -> String {
    let mut counts = BTreeMap::new();
    names.for_each(|name| *counts.entry(name).or_insert(0_u32) += 1);
    let parts: Vec<_> = counts.iter().map(|(name, count)| format!("{name} {count}")).collect();
    format!("  {title:<18} {:>3}  ({})", counts.values().sum::<u32>(), parts.join(", "))
}
