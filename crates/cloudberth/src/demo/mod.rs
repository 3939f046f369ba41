//! `cloudberth demo`: a cluster, its cloud and the manager in one process, and a story that is played on them.
//!
//! ```text
//!   story  ──► play ──► world   what people, kubelets and the cloud do
//!   (table)     │         │
//!               │         ▼
//!               │      Kubernetes API ◄──► manager ◄──► cloud
//!               │         │
//!               ◄── watch ┘     nothing is told that was not seen here
//!               │
//!               ▼
//!             printer
//! ```

mod play;
mod printer;
mod sight;
mod story;
mod summary;
#[cfg(test)]
mod tests;
mod watch;
mod world;

use std::{
    io::{self, IsTerminal as _, Write as _},
    process::ExitCode,
};

use clap::Args;
use futures_util::future::join;
use sim_kit::Surroundings;
use tokio::signal::unix::{SignalKind, signal};

use self::{
    play::{Ending, play},
    printer::Printer,
    story::STORY,
    world::World,
};

/// The exit code of what was ended by Ctrl-C, as shells have it.
const INTERRUPTED: u8 = 130;

/// A whole cluster at work, in this process: nodes, a load balancer, and what goes wrong with them.
///
/// Plays a story of about 70 seconds on a cluster in memory: an embedded Kubernetes API, a cloud, and the controller
/// manager that stands between them. Every line is printed when the program saw it happen in the API. No network, no
/// account and no file is used.
///
/// The exit code is 0 if all of it happened in time, 1 if something did not, and 130 after Ctrl-C.
#[derive(Debug, Args)]
pub(crate) struct Arguments {}

/// Plays the story.
pub(crate) fn run(_: &Arguments) -> ExitCode {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build();
    match runtime.and_then(|runtime| runtime.block_on(perform())) {
        Ok(Ending::Happy) => ExitCode::SUCCESS,
        Ok(Ending::Missed) => ExitCode::FAILURE,
        Ok(Ending::Interrupted) => ExitCode::from(INTERRUPTED),
        Err(error) => {
            let _ = writeln!(io::stderr(), "cloudberth demo: {error}");
            ExitCode::FAILURE
        }
    }
}

async fn perform() -> io::Result<Ending> {
    let (mut terminate, mut interrupt) = (signal(SignalKind::terminate())?, signal(SignalKind::interrupt())?);
    let told_to_end = async {
        tokio::select! {
            biased;
            _ = interrupt.recv() => {}
            _ = terminate.recv() => {}
        }
    };
    let world = World::new(Surroundings::of_this_machine());
    let manager = world.manager().map_err(|why| io::Error::other(why.to_string()))?;
    let stdout = io::stdout();
    let colours = stdout.is_terminal() && std::env::var_os("NO_COLOR").is_none();
    let mut printer = Printer::new(stdout, world.clock(), colours);
    let story = async {
        let ending = play(&world, STORY, &mut printer, told_to_end).await;
        world.stop_manager();
        ending
    };
    let (ending, ()) = join(story, manager.run(world.manager_is_stopped())).await;
    let ending = ending?;
    if ending == Ending::Happy {
        summary::print(&world, &mut printer)?;
    }
    Ok(ending)
}
