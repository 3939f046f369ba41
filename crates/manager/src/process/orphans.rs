//! `orphans` as a command: the flags of the controller manager, and `--delete` with names behind it.

use std::{
    ffi::OsString,
    io::{BufRead, IsTerminal, Write},
    process::ExitCode,
    sync::Arc,
};

use cloudberth_controllers::inventory::Inventory;
use cloudberth_core::{Clock, Error};
use cloudberth_http::{
    Env, ProviderFactory,
    surroundings::{SystemClock, environment, random_from_os},
};
use cloudberth_runtime::{
    connect::{Dialler, Throttle},
    metrics::RestMetrics,
};

use super::{complain, doctor::open, read};
use crate::{
    command::{CommandLine, Request},
    connect::{Address, configure},
    late,
    options::Output,
    orphans::{CloudWithMarks, EXIT_UNKNOWN, EXIT_USAGE, Look, Orphans, Unknown},
};

const DELETE: &str = "--delete";

/// Says which load balancers are left over, and deletes those that are named behind `--delete`, or typed where none is.
pub fn orphans(called: &str, program: &str, words: Vec<OsString>, factories: &[ProviderFactory]) -> ExitCode {
    let (flags, names) = match words.iter().position(|word| word == DELETE) {
        None => (words, None),
        Some(at) => {
            let (flags, rest) = words.split_at(at);
            let names = rest.iter().skip(1).map(|name| name.to_string_lossy().into_owned());
            (flags.to_vec(), Some(names.collect::<Vec<_>>()))
        }
    };
    if let Some(odd) = names.iter().flatten().find(|name| name.starts_with('-')) {
        let text =
            format!("Error: {odd} stands behind {DELETE}, where only names may; put flags in front of it\n");
        return complain(&text, EXIT_USAGE);
    }
    if names.as_ref().is_some_and(Vec::is_empty) && !std::io::stdin().is_terminal() {
        let text =
            format!("Error: {DELETE} needs the names behind it, unless they can be typed at a terminal\n");
        return complain(&text, EXIT_USAGE);
    }
    let args = std::iter::once("--dry-run".into()).chain(flags).collect();
    let line = read(called, program, args, factories);
    if let Request::Print(text) = &line.request {
        let _ = std::io::stdout().write_all(text.as_bytes());
        return ExitCode::SUCCESS;
    }
    if let Some(complaint) = line.complaint(&[]) {
        return complain(&complaint, EXIT_USAGE);
    }
    let runtime = match tokio::runtime::Builder::new_current_thread().enable_all().build() {
        Ok(runtime) => runtime,
        Err(why) => return complain(&format!("Error: {why}\n"), EXIT_UNKNOWN),
    };
    match runtime.block_on(run(&line, factories, names)) {
        Ok(found) => print(&found, line.options.output),
        Err(why) => complain(&why, EXIT_USAGE),
    }
}

fn print(found: &Orphans, output: Output) -> ExitCode {
    let text = match output {
        Output::Text => found.to_text(),
        Output::Json => found.to_json(),
    };
    match std::io::stdout().write_all(text.as_bytes()) {
        Ok(()) => ExitCode::from(found.exit_code()),
        Err(why) => complain(&format!("Error: it could not be printed: {why}\n"), EXIT_UNKNOWN),
    }
}

/// The error is what is wrong with the call, as it is printed.
async fn run(
    line: &CommandLine,
    factories: &[ProviderFactory],
    names: Option<Vec<String>>,
) -> Result<Orphans, String> {
    let clock: Arc<dyn Clock> = Arc::new(SystemClock::new());
    let random = Arc::new(random_from_os());
    let options = &line.options;
    let told = |why: &[Error]| {
        why.iter().map(|why| format!("Error: {}\n", why.message())).collect::<Vec<_>>().concat()
    };
    let address =
        Address { kubeconfig: options.kube.kubeconfig.clone(), master: options.kube.master.clone() };
    let config = configure(&address).await.map_err(|why| told(&[why]))?;
    let metrics = RestMetrics::default();
    let dialler = Dialler { config: &config, ceiling: &Throttle::none(), metrics: &metrics };
    let client = dialler.client("cloudberth/orphans", &clock).map_err(|why| told(&[why]))?;
    let env: Env = environment().into_iter().collect();
    let (mut clouds, mut wrong) = (Vec::new(), Vec::new());
    for name in &options.clouds.providers {
        let Some(factory) = factories.iter().find(|factory| factory.name == name) else { continue };
        match open(line, factory, &env, &clock, &random).opened {
            Ok(provider) => clouds.push(provider),
            Err(mistakes) => wrong.extend(mistakes.into_iter().map(|why| why.context(factory.name))),
        }
    }
    if !wrong.is_empty() {
        return Err(told(&wrong));
    }
    let begun = late::begin(clouds, &clock).await;
    if !begun.refused.is_empty() {
        return Err(told(&begun.refused));
    }
    let clouds = begun.clouds.into_iter().map(|provider| CloudWithMarks {
        inventory: Arc::new(Inventory::new(Arc::clone(&provider), Arc::clone(&clock))),
        provider,
    });
    let look = Look {
        client: &client,
        clock: &clock,
        cluster: &options.clouds.cluster_name,
        clouds: clouds.collect(),
    };
    let found = look.now().await;
    let Some(names) = names else { return Ok(found) };
    let names = if names.is_empty() { typed(&found) } else { names };
    let (mut deleted, mut refused) = (Vec::new(), Vec::new());
    for name in names {
        match look.delete(&name).await {
            Ok(name) => deleted.push(name),
            Err(why) => refused.push(Unknown { what: name, why }),
        }
    }
    Ok(Orphans { deleted, refused, ..look.now().await })
}

/// The names that a person types, one on each line, up to an empty one.
fn typed(found: &Orphans) -> Vec<String> {
    let mut stderr = std::io::stderr();
    let _ = writeln!(
        stderr,
        "{}Type the names or ids of what is to be deleted, one on each line, and an empty line at the end:",
        found.to_text()
    );
    let lines = std::io::stdin().lock().lines().map_while(Result::ok).map(|line| line.trim().to_owned());
    lines.take_while(|line| !line.is_empty()).collect()
}
