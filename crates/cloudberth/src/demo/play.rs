//! Plays a story: does what it says, and waits until it was seen.

use std::{
    io::{self, Write},
    pin::pin,
    time::Duration,
};

use cloudberth_core::{NodeView, ServiceView};
use futures_util::{Stream, StreamExt as _};
use tokio::time::Instant;

use super::{
    printer::Printer,
    sight::{Sight, event_line, taints, text},
    story::{Act, PATIENCE, Step, long_patience},
    watch::{Heard, Kind, Sighting, watch},
    world::World,
};

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Ending {
    /// All of it was seen in time.
    Happy,
    Missed,
    Interrupted,
}

/// After so long without anything new, the reader is told what is waited for.
const SILENCE: Duration = Duration::from_secs(15);

struct Pending {
    sight: Sight,
    now: bool,
    until: Instant,
}

enum Woken {
    Heard(Option<Heard>),
    Silence,
    Late,
    Interrupted,
}

/// Plays `story` until its end, until something is not seen in time, or until `interrupted`.
pub(super) async fn play<W: Write>(
    world: &World,
    story: &[Step],
    printer: &mut Printer<W>,
    interrupted: impl Future<Output = ()>,
) -> io::Result<Ending> {
    printer.plain(
        "cloudberth demo: a cluster, its cloud and the controller manager, all in this process.\n\
         Each line marked \"saw\" was seen in the Kubernetes API by a watch; the time is when it was seen.",
    )?;
    let mut interrupted = pin!(interrupted);
    let mut sightings = pin!(watch(world.people()));
    if !all_watches_listen(&mut sightings).await? {
        return Ok(Ending::Missed);
    }
    let mut pending: Vec<Pending> = Vec::new();
    let mut last_line;
    for step in story {
        printer.step(step.says)?;
        last_line = Instant::now();
        if let Some(because) = step.because {
            printer.aside(&because())?;
        }
        expect(&mut pending, step);
        world.act(step.act).await.map_err(io::Error::other)?;
        while pending.iter().any(|pending| pending.now) {
            let due = pending.iter().map(|pending| pending.until).min().unwrap_or_else(Instant::now);
            let woken = tokio::select! {
                biased;
                () = &mut interrupted => Woken::Interrupted,
                heard = sightings.next() => Woken::Heard(heard),
                () = tokio::time::sleep_until(due) => Woken::Late,
                () = tokio::time::sleep_until(last_line + SILENCE) => Woken::Silence,
            };
            match woken {
                Woken::Heard(Some(Heard::Saw(sighting))) => {
                    if compare(&mut pending, &sighting, world, printer)? {
                        last_line = Instant::now();
                    }
                }
                Woken::Heard(Some(Heard::Listening)) => {}
                Woken::Heard(Some(Heard::Broken(why))) => return Err(io::Error::other(why)),
                Woken::Heard(None) => return Err(io::Error::other("the watches ended")),
                Woken::Silence => {
                    last_line = Instant::now();
                    if let Some(next) = pending.iter().find(|pending| pending.now) {
                        printer.waits(&format!("still waiting for {}", next.sight.expectation()))?;
                    }
                }
                Woken::Late => {
                    fail(world, step, &pending, printer)?;
                    return Ok(Ending::Missed);
                }
                Woken::Interrupted => {
                    printer.plain("\nInterrupted. The manager lets go of its Lease and stops.")?;
                    return Ok(Ending::Interrupted);
                }
            }
        }
    }
    Ok(Ending::Happy)
}

/// From now on nothing is missed.
async fn all_watches_listen(sightings: &mut (impl Stream<Item = Heard> + Unpin)) -> io::Result<bool> {
    let mut silent = Kind::ALL.len();
    let all = async {
        while silent > 0 {
            match sightings.next().await {
                Some(Heard::Listening) => silent -= 1,
                Some(Heard::Saw(_)) => {}
                Some(Heard::Broken(why)) => return Err(io::Error::other(why)),
                None => return Err(io::Error::other("the watches ended")),
            }
        }
        Ok(true)
    };
    tokio::time::timeout(PATIENCE, all).await.unwrap_or(Ok(false))
}

/// Adds what a step is to bring about. A step that does nothing waits for all that is open.
fn expect(pending: &mut Vec<Pending>, step: &Step) {
    let start = Instant::now();
    if matches!(step.act, Act::Nothing) {
        for open in pending.iter_mut() {
            open.now = true;
        }
    }
    let soon = step.sees.iter().map(|sight| Pending { sight: *sight, now: true, until: start + PATIENCE });
    let later =
        step.later.iter().map(|sight| Pending { sight: *sight, now: false, until: start + long_patience() });
    pending.extend(soon.chain(later));
}

/// Tells what is seen of what was expected; answers whether anything was.
fn compare<W: Write>(
    pending: &mut Vec<Pending>,
    sighting: &Sighting,
    world: &World,
    printer: &mut Printer<W>,
) -> io::Result<bool> {
    let open = pending.len();
    let mut told = Ok(());
    pending.retain(|pending| match pending.sight.told_by(sighting, &world.cloud) {
        Some(fact) => {
            if told.is_ok() {
                told = printer.saw(&fact);
            }
            false
        }
        None => true,
    });
    told.map(|()| pending.len() < open)
}

/// Says what was not seen, and how things stand instead.
fn fail<W: Write>(
    world: &World,
    step: &Step,
    pending: &[Pending],
    printer: &mut Printer<W>,
) -> io::Result<()> {
    let now = Instant::now();
    for missed in pending.iter().filter(|pending| pending.now || pending.until <= now) {
        printer.missed(&missed.sight.expectation())?;
    }
    printer.plain(&format!("\nThis step did not come to its end in time: {}\nThe last state:", step.says))?;
    for sighting in world.everything() {
        printer.plain(&format!("  {}", state(&sighting)))?;
    }
    Ok(())
}

fn state(sighting: &Sighting) -> String {
    let object = &sighting.object;
    let name = text(object, "/metadata/name");
    match sighting.kind {
        Kind::Node => NodeView::from_json(object).map_or_else(
            |why| format!("node/{name}: {why}"),
            |node| {
                let id = node.provider_id.as_deref().unwrap_or("no provider id");
                format!("node/{name}: Ready {:?}, {id}, {}", node.ready, taints(&node))
            },
        ),
        Kind::Service => {
            let addresses = ServiceView::from_json(object).map(|service| service.ingress).unwrap_or_default();
            let addresses: Vec<_> = addresses.into_iter().filter_map(|ingress| ingress.ip).collect();
            let addresses = if addresses.is_empty() { "none".to_owned() } else { addresses.join(", ") };
            format!("service/{name}: type {}, external address {addresses}", text(object, "/spec/type"))
        }
        Kind::Event => event_line(object),
        Kind::Lease => format!("lease/{name}: held by {:?}", text(object, "/spec/holderIdentity")),
    }
}
