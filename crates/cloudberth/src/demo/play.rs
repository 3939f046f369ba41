//! Plays a story: does what it says, and waits until it was seen.

use std::{
    io::{self, Write},
    pin::pin,
    time::Duration,
};

use cloudberth::world::{Kind, Sighting, Watched as _, World, text};
use cloudberth_core::{NodeView, ServiceView};
use tokio::time::Instant;

use super::{
    printer::Printer,
    scene::Scene,
    sight::{Sight, event_line, taints},
    story::Step,
};

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Ending {
    /// All of it was seen in time.
    Happy,
    Missed,
    Interrupted,
}

/// How often is looked at what no watch tells of.
const LOOK: Duration = Duration::from_millis(100);

enum Woken {
    Saw(Option<Sighting>),
    Look,
    Late,
    Interrupted,
}

/// Plays `story` until its end, until something is not seen within `patience`, or until `interrupted`.
pub(super) async fn play<W: Write>(
    world: &World,
    mut scene: Scene,
    story: &[Step],
    patience: Duration,
    printer: &mut Printer<W>,
    interrupted: impl Future<Output = ()>,
) -> io::Result<Ending> {
    printer.plain(&format!(
        "cloudberth demo: a Kubernetes API, {} and the controller manager, all in this process.\n\
         Each line marked \"saw\" was seen by a watch of the API, in the cloud's books or in an answer to a request;\n\
         the time is when it was seen.",
        cloud_in_words(world)
    ))?;
    let mut interrupted = pin!(interrupted);
    let mut sightings = world.sightings();
    for step in story {
        let mut pending: Vec<Sight> = step.sees.to_vec();
        pending.retain(|sight| world.has_traffic() || !sight.needs_traffic());
        if pending.is_empty() {
            continue;
        }
        printer.step(step.says)?;
        if let Some(because) = step.because {
            printer.aside(&because())?;
        }
        if let Err(why) = scene.act(step.act, world).await {
            printer.plain(&format!("\nThis step could not be begun: {why}"))?;
            return Ok(Ending::Missed);
        }
        let late = Instant::now() + patience;
        while let Some(next) = pending.first().copied() {
            let woken = tokio::select! {
                biased;
                () = &mut interrupted => Woken::Interrupted,
                sighting = sightings.recv() => Woken::Saw(sighting),
                () = tokio::time::sleep_until(late) => Woken::Late,
                () = tokio::time::sleep(LOOK) => Woken::Look,
            };
            match woken {
                Woken::Saw(Some(sighting)) => {
                    tell(&mut pending, printer, |sight| sight.told_by(&sighting, &scene, world))?;
                }
                Woken::Saw(None) => return Err(io::Error::other("the watches ended")),
                Woken::Look => {
                    let alone = pending.len() == 1;
                    let fact =
                        |sight: Sight| sight.is_so(&scene, world).filter(|_| alone || !sight.comes_last());
                    tell(&mut pending, printer, fact)?;
                    printer.waits(&next.expectation(&scene))?;
                }
                Woken::Late => {
                    fail(world, step, &pending, &scene, printer)?;
                    return Ok(Ending::Missed);
                }
                Woken::Interrupted => {
                    printer.plain("\nInterrupted. The manager lets go of its Lease and stops.")?;
                    return Ok(Ending::Interrupted);
                }
            }
        }
    }
    let errors = world.snapshot().totals.errors;
    if errors > 0 {
        printer.plain(&format!("\n{errors} requests through the load balancer failed; none may."))?;
        return Ok(Ending::Missed);
    }
    Ok(Ending::Happy)
}

fn cloud_in_words(world: &World) -> String {
    match world.snapshot().provider.as_str() {
        "cloudlycke" => "the cloud Cloudlycke with its load balancers".to_owned(),
        other => format!("a simulated {other}, without traffic,"),
    }
}

/// Tells what is seen of what was expected.
fn tell<W: Write>(
    pending: &mut Vec<Sight>,
    printer: &mut Printer<W>,
    fact: impl Fn(Sight) -> Option<String>,
) -> io::Result<()> {
    let mut told = Ok(());
    pending.retain(|sight| match fact(*sight) {
        Some(fact) => {
            if told.is_ok() {
                told = printer.saw(&fact);
            }
            false
        }
        None => true,
    });
    told
}

/// Says what was not seen, and how things stand instead.
fn fail<W: Write>(
    world: &World,
    step: &Step,
    pending: &[Sight],
    scene: &Scene,
    printer: &mut Printer<W>,
) -> io::Result<()> {
    for missed in pending {
        printer.missed(&missed.expectation(scene), missed.instead(scene, world).as_deref())?;
    }
    printer.plain(&format!("\nThis step did not come to its end in time: {}\nThe last state:", step.says))?;
    for kind in [Kind::Lease, Kind::Node, Kind::Service, Kind::Event] {
        for object in world.objects(kind) {
            let line = state(&Sighting { kind, gone: false, object });
            printer.plain(&format!("  {line}"))?;
        }
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
