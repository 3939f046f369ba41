//! `cloudberth demo`: a cluster, its cloud and the manager in one process, and a story that is played on them.
//!
//! ```text
//!   story  ──► play ──► scene ──► world      what people, kubelets and the cloud do
//!   (table)     │                   │
//!               │                   ▼
//!               ◄── sight ◄── watches, the cloud's books, answers      nothing is told that was not seen here
//!               │
//!               ▼
//!             printer
//! ```

mod play;
mod printer;
mod scene;
mod sight;
mod story;
mod summary;
#[cfg(test)]
mod tests;

use std::{
    io::{self, IsTerminal as _, Write as _},
    process::ExitCode,
    sync::Arc,
    time::Duration,
};

use clap::{Args, builder::PossibleValuesParser};
use cloudberth::world::{Cluster, PROVIDERS, World, WorldSettings};
use cloudberth_http::surroundings::{SystemClock, random_from_os};
use tokio::signal::unix::{SignalKind, signal};

use self::{
    play::{Ending, play},
    printer::{Printer, Style},
    scene::Scene,
    story::STORY,
};

/// The exit code of what was ended by Ctrl-C, as shells have it.
const INTERRUPTED: u8 = 130;

/// How long something may take, on a computer that is busy with other things too. In practice nothing takes a tenth of it.
const PATIENCE: Duration = Duration::from_secs(60);

/// Enough that a change shows within a second or two, and little enough for any computer.
const REQUESTS_PER_SECOND: u32 = 30;

/// A whole cluster at work, in this process: nodes, a load balancer, and what goes wrong with them.
///
/// Plays a story of less than 30 seconds on an embedded Kubernetes API, a cloud, and the controller manager that stands
/// between them. With Cloudlycke, real requests go through a real load balancer, on the loopback interface. Every line is
/// printed when the program saw it happen. No account and no file is used.
///
/// The exit code is 0 if all of it happened in time, 1 if something did not, and 130 after Ctrl-C.
#[derive(Debug, Args)]
pub(crate) struct Arguments {
    /// The cloud: Cloudlycke, with traffic, or the simulated API of another one, without.
    #[arg(long, value_parser = PossibleValuesParser::new(PROVIDERS), default_value = PROVIDERS[0])]
    provider: String,
}

/// Plays the story.
pub(crate) fn run(arguments: &Arguments) -> ExitCode {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build();
    match runtime.and_then(|runtime| runtime.block_on(perform(arguments))) {
        Ok(Ending::Happy) => ExitCode::SUCCESS,
        Ok(Ending::Missed) => ExitCode::FAILURE,
        Ok(Ending::Interrupted) => ExitCode::from(INTERRUPTED),
        Err(error) => {
            let _ = writeln!(io::stderr(), "cloudberth demo: {error}");
            ExitCode::FAILURE
        }
    }
}

/// The world of the story, in which nothing has begun yet.
fn settings(provider: &str) -> WorldSettings {
    WorldSettings {
        provider: provider.to_owned(),
        cluster: Cluster::Embedded,
        managers: 0,
        nodes: 0,
        requests_per_second: REQUESTS_PER_SECOND,
        clock: Arc::new(SystemClock::new()),
        random: Arc::new(random_from_os()),
    }
}

async fn perform(arguments: &Arguments) -> io::Result<Ending> {
    let (mut terminate, mut interrupt) = (signal(SignalKind::terminate())?, signal(SignalKind::interrupt())?);
    let told_to_end = async {
        tokio::select! {
            biased;
            _ = interrupt.recv() => {}
            _ = terminate.recv() => {}
        }
    };
    let world = World::start(settings(&arguments.provider)).await.map_err(io::Error::other)?;
    let stdout = io::stdout();
    let style = if stdout.is_terminal() {
        Style::Terminal { colours: std::env::var_os("NO_COLOR").is_none() }
    } else {
        Style::Plain
    };
    let mut printer = Printer::new(stdout, world.clock(), style);
    let ending = play(&world, Scene::new(&world), STORY, PATIENCE, &mut printer, told_to_end).await;
    world.close().await;
    let ending = ending?;
    if ending == Ending::Happy {
        summary::print(&world, &mut printer)?;
    }
    Ok(ending)
}
