//! `doctor` as a command: opens what the flags name, looks, prints.

use std::{collections::BTreeSet, ffi::OsString, io::Write, process::ExitCode, sync::Arc};

use cloudberth_core::{Clock, Random, Result, reason::REASONS};
use cloudberth_http::{
    Env, Notes, Observer, ProviderContext, ProviderFactory,
    surroundings::{SystemClock, SystemResolver, environment, random_from_os},
};
use cloudberth_runtime::{
    connect::{Dialler, Throttle},
    metrics::RestMetrics,
};

use super::{complain, read};
use crate::{
    command::{CommandLine, Request},
    connect::{Address, configure},
    doctor::{CloudToLookAt, EXIT_BLIND, EXIT_USAGE, Gather, Report, judge},
    options::Output,
    rights::RIGHTS,
};

/// Looks for what is wrong with the installation that these flags describe, and does nothing about it.
pub fn doctor(called: &str, program: &str, flags: Vec<OsString>, factories: &[ProviderFactory]) -> ExitCode {
    let args = std::iter::once("--dry-run".into()).chain(flags).collect();
    let line = read(called, program, args, factories).without_cloud();
    if let Request::Print(text) = &line.request {
        let _ = std::io::stdout().write_all(text.as_bytes());
        return ExitCode::SUCCESS;
    }
    if let Some(complaint) = line.complaint(&[]) {
        return complain(&complaint, EXIT_USAGE);
    }
    let runtime = match tokio::runtime::Builder::new_current_thread().enable_all().build() {
        Ok(runtime) => runtime,
        Err(why) => return complain(&format!("Error: {why}\n"), EXIT_BLIND),
    };
    match runtime.block_on(look(&line, factories)) {
        Ok(report) => print(&report, line.options.output),
        Err(why) => complain(&format!("Error: {why}\n"), EXIT_USAGE),
    }
}

fn print(report: &Report, output: Output) -> ExitCode {
    let text = match output {
        Output::Text => report.to_text(),
        Output::Json => report.to_json(),
    };
    match std::io::stdout().write_all(text.as_bytes()) {
        Ok(()) => ExitCode::from(report.exit_code()),
        Err(why) => complain(&format!("Error: the report could not be printed: {why}\n"), EXIT_BLIND),
    }
}

/// The error is that no way to a cluster is known.
async fn look(line: &CommandLine, factories: &[ProviderFactory]) -> Result<Report> {
    let clock: Arc<dyn Clock> = Arc::new(SystemClock::new());
    let random = Arc::new(random_from_os());
    let options = &line.options;
    let address =
        Address { kubeconfig: options.kube.kubeconfig.clone(), master: options.kube.master.clone() };
    let config = configure(&address).await?;
    let metrics = RestMetrics::default();
    let dialler = Dialler { config: &config, ceiling: &Throttle::none(), metrics: &metrics };
    let client = dialler.client("cloudberth/doctor", &clock)?;
    let chosen: Vec<_> = options
        .clouds
        .providers
        .iter()
        .filter_map(|name| factories.iter().find(|factory| factory.name == name))
        .collect();
    let mut rights = RIGHTS.to_vec();
    rights.extend(chosen.iter().flat_map(|factory| factory.rights));
    let env: Env = environment().into_iter().collect();
    let clouds = chosen.iter().map(|factory| open(line, factory, &env, &clock, &random)).collect();
    let election = options.election.as_ref();
    let classes: BTreeSet<_> = options.clouds.classes.keys().cloned().collect();
    let gather = Gather {
        config: &config,
        client: &client,
        clock: &clock,
        rights: &rights,
        lease_namespace: election.map_or("kube-system", |election| &election.namespace),
        leader_lease: election.map(|election| election.name.clone()),
        classes,
        clouds,
        replaced: factories.iter().flat_map(|factory| factory.replaces).copied().collect(),
        reasons: REASONS
            .iter()
            .chain(factories.iter().flat_map(|factory| factory.reasons))
            .copied()
            .collect(),
    };
    Ok(judge(&gather.facts().await))
}

pub(super) fn open(
    line: &CommandLine,
    factory: &ProviderFactory,
    env: &Env,
    clock: &Arc<dyn Clock>,
    random: &Arc<Random>,
) -> CloudToLookAt {
    let clouds = &line.options.clouds;
    let times = Arc::new(crate::doctor::ServerTimes::new(clock));
    let opened = (factory.open)(&ProviderContext {
        env,
        config: clouds.config_files.get(factory.name).map(std::path::PathBuf::as_path),
        given: &line.given(),
        cluster_name: &clouds.cluster_name,
        observer: Arc::clone(&times) as Arc<dyn Observer>,
        clock: Arc::clone(clock),
        random: Arc::clone(random),
        resolver: Arc::new(SystemResolver::new(Arc::clone(clock))),
        notes: &Notes::default(),
    });
    CloudToLookAt { name: factory.name, opened, times }
}
