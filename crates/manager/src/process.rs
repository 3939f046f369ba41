//! The program as a process: from arguments to an exit code.
//!
//! ```text
//!   arguments ──► options ──► kubeconfig, clouds, port ──► every mistake at once, exit 1
//!                                      │
//!                                      ├──► a cloud refuses for good: exit 1
//!                                      ├──► --dry-run: the plan to stdout, exit 0, 1 or 2
//!                                      └──► replica and HTTPS port ──► SIGTERM ──► the Lease is released, exit 0
//! ```

mod doctor;
mod orphans;
mod start;

use std::{ffi::OsString, io::Write, process::ExitCode, sync::Arc};

use cloudberth_core::{Clock, Error, Random};
use cloudberth_http::{
    Env, ProviderFactory,
    surroundings::{SystemClock, environment, random_from_os},
};
use futures_util::FutureExt;
use tokio::signal::unix::{SignalKind, signal};

use crate::{
    command::{Call, CommandLine, EXIT_MISTAKE, Request},
    flags::Level,
    logging::{Verbosity, log},
    options::{Known, Output},
    plan::{EXIT_UNKNOWN, Plan},
    program::{Build, preset_provider},
};
pub use doctor::doctor;
pub use orphans::orphans;
use start::Started;

/// The exit code when the program could not begin although its settings make sense.
const EXIT_FATAL: u8 = 255;

/// Runs `controller-manager` as it was called.
///
/// `called` is the name under which the program was called, `program` the one that help shows, `args` what follows.
pub fn controller_manager(
    called: &str,
    program: &str,
    args: Vec<OsString>,
    factories: &[ProviderFactory],
) -> ExitCode {
    run_line(&read(called, program, args, factories), factories)
}

/// Says what [`controller_manager`] would do with the same flags, and does nothing.
pub fn plan(called: &str, program: &str, flags: Vec<OsString>, factories: &[ProviderFactory]) -> ExitCode {
    let args = std::iter::once("--dry-run".into()).chain(flags).collect();
    let mut line = read(called, program, args, factories);
    // Even with --dry-run=false: `plan` must not change anything.
    line.options.dry_run = true;
    run_line(&line, factories)
}

fn read(called: &str, program: &str, args: Vec<OsString>, factories: &[ProviderFactory]) -> CommandLine {
    let names: Vec<_> = factories.iter().map(|factory| factory.name).collect();
    let call = Call {
        preset: preset_provider(factories, called),
        program,
        known: Known { providers: &names, webhooks: &[] },
        build: BUILD,
        width: None,
        read: &|path| std::fs::read_to_string(path).map_err(|why| why.to_string()),
    };
    CommandLine::read(&call, args)
}

fn run_line(line: &CommandLine, factories: &[ProviderFactory]) -> ExitCode {
    if let Request::Print(text) = &line.request {
        let _ = std::io::stdout().write_all(text.as_bytes());
        return ExitCode::SUCCESS;
    }
    let runtime = match tokio::runtime::Builder::new_current_thread().enable_all().build() {
        Ok(runtime) => runtime,
        Err(why) => return complain(&format!("Error: {why}\n"), EXIT_FATAL),
    };
    runtime.block_on(run(line, factories))
}

/// How this was built, as far as the compiler knows.
const BUILD: Build<'static> = Build {
    commit: "",
    date: "",
    compiler: "",
    platform: if cfg!(target_arch = "aarch64") { "linux/arm64" } else { "linux/amd64" },
};

fn complain(text: &str, code: u8) -> ExitCode {
    let _ = std::io::stderr().write_all(text.as_bytes());
    ExitCode::from(code)
}

async fn run(line: &CommandLine, factories: &[ProviderFactory]) -> ExitCode {
    let clock: Arc<dyn Clock> = Arc::new(SystemClock::new());
    let random = Arc::new(random_from_os());
    let env: Env = environment().into_iter().collect();
    let found = start::find(line, factories, &env, &clock, &random).await;
    let more = found.as_ref().err().map(Vec::as_slice).unwrap_or_default();
    if let Some(complaint) = line.complaint(more) {
        return complain(&complaint, EXIT_MISTAKE);
    }
    let Ok(mut found) = found else { return ExitCode::from(EXIT_MISTAKE) };

    let number = |level: Level| i32::try_from(level.0).unwrap_or(i32::MAX);
    let logging = &line.options.logging;
    let modules = logging.modules.iter().map(|(name, level)| (name.clone(), number(*level)));
    let verbosity = Verbosity::new(number(logging.level)).with_modules(modules.collect());
    // A program that embeds this one may have a log already.
    let _ = tracing::subscriber::set_global_default(log(logging.format, &verbosity, std::io::stderr));
    log_settings(line, &verbosity);
    found.notes.log();
    if let Some(complaint) = line.complaint(&found.start_clouds(&clock).await) {
        return complain(&complaint, EXIT_MISTAKE);
    }
    if line.options.dry_run {
        return match start::preview(line, found, &clock, &random).await {
            Ok(plan) => print(&plan, line.options.output),
            Err(why) => complain(&format!("Error: {why}\n"), EXIT_FATAL),
        };
    }
    match start::begin(line, found, verbosity, &env, &clock, &random).await {
        Ok(started) => Box::pin(serve(started)).await,
        Err(why) => complain(&format!("Error: {why}\n"), EXIT_FATAL),
    }
}

/// Prints a plan. If it cannot be printed, the exit code says that nothing is known.
fn print(plan: &Plan, output: Output) -> ExitCode {
    let text = match output {
        Output::Text => plan.to_text(),
        Output::Json => plan.to_json(),
    };
    match std::io::stdout().write_all(text.as_bytes()) {
        Ok(()) => ExitCode::from(plan.exit_code()),
        Err(why) => complain(&format!("Error: the plan could not be printed: {why}\n"), EXIT_UNKNOWN),
    }
}

fn log_settings(line: &CommandLine, verbosity: &Verbosity) {
    tracing::info!(version = line.version(), "cloudberth");
    if verbosity.get() >= 1 {
        line.flag_lines().iter().for_each(|flag| tracing::info!("{flag}"));
    }
    for notice in &line.notices {
        tracing::warn!(flag = notice.flag, "{}", notice.text);
    }
}

/// Works until a signal, or until a cloud that was late refuses for good. What is under way ends first; a second signal does
/// not wait for it.
async fn serve(started: Started) -> ExitCode {
    let signals = (signal(SignalKind::terminate()), signal(SignalKind::interrupt()));
    let (Ok(mut terminate), Ok(mut interrupt)) = signals else {
        return complain("Error: signals cannot be received here\n", EXIT_FATAL);
    };
    let mut told = async || {
        tokio::select! {
            biased;
            _ = terminate.recv() => {}
            _ = interrupt.recv() => {}
        }
    };
    let (stop, stopping) = tokio::sync::oneshot::channel::<()>();
    let stopping = stopping.map(drop).shared();
    let mut work = std::pin::pin!(started.run(stopping));
    tokio::select! {
        biased;
        () = told() => {}
        ended = &mut work => return match ended {
            Ok(()) => complain("Error: the program ended by itself\n", EXIT_FATAL),
            Err(why) => complain(&format!("Error: {why}\n"), EXIT_MISTAKE),
        },
    }
    tracing::info!("stopping; waiting for work under way");
    drop(stop);
    tokio::select! {
        biased;
        () = told() => complain("stopped at once\n", EXIT_MISTAKE),
        _ = &mut work => ExitCode::SUCCESS,
    }
}

/// A name for this process that no other has: the host's, and a random UUID.
fn identity(env: &Env, random: &Random) -> String {
    let file = |path: &str| std::fs::read_to_string(path).ok().map(|text| text.trim().to_owned());
    let host = file("/proc/sys/kernel/hostname").or_else(|| file("/etc/hostname"));
    let host =
        host.or_else(|| env.get("HOSTNAME").map(str::to_owned)).unwrap_or_else(|| "localhost".to_owned());
    format!("{host}_{}", random.uuid())
}

/// What is wrong beside the flags.
type Mistakes = Vec<Error>;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn two_processes_on_one_host_have_two_names() {
        let (env, random) = (Env::from_iter([]), Random::seeded(1));
        let (one, two) = (identity(&env, &random), identity(&env, &random));
        assert_ne!(one, two);
        let host = |name: &str| name.split_once('_').map(|(host, _)| host.to_owned());
        assert_eq!(host(&one), host(&two), "FW-346");
    }
}
