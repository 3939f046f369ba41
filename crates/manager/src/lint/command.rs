//! `lint` as a command: reads the files, opens the clouds without an account, prints. It calls nobody.

use std::{
    io::{Read, Write},
    path::PathBuf,
    process::ExitCode,
    sync::Arc,
};

use cloudberth_core::{Clock, provider::Provider};
use cloudberth_http::{
    Env, GivenFlags, NoResolver, Notes, ProviderContext, ProviderFactory, Unobserved,
    surroundings::{SystemClock, environment, random_from_os},
};

use super::{EXIT_UNREADABLE, EXIT_USAGE, Judge, Lint, Object, Source, lint, objects};

/// How `lint` was called.
#[derive(Clone, Debug, Default)]
pub struct LintOptions {
    /// The files; `-` is standard input.
    pub files: Vec<String>,
    /// The clouds to judge for; none: those whose annotations appear.
    pub providers: Vec<String>,
    /// The configuration file of the one cloud.
    pub config: Option<PathBuf>,
    /// The cluster's name.
    pub cluster: String,
    /// Whether to print JSON.
    pub json: bool,
}

/// No manifest is longer; a longer one was named by mistake.
const LONGEST: u64 = 64 * 1024 * 1024;

/// Lints as it was called, and prints what was found.
pub fn run(options: &LintOptions, factories: &[ProviderFactory]) -> ExitCode {
    let runtime = match tokio::runtime::Builder::new_current_thread().enable_all().build() {
        Ok(runtime) => runtime,
        Err(why) => return complain(&[why.to_string()], EXIT_UNREADABLE),
    };
    // Some parts of a provider are made only inside of a runtime.
    let _inside = runtime.enter();
    let names: Vec<_> = factories.iter().map(|factory| factory.name).collect();
    match judged(options, factories, &names) {
        Ok(found) => print(&found, options.json, &names),
        Err((wrong, code)) => complain(&wrong, code),
    }
}

type Failure = (Vec<String>, u8);

fn judged(options: &LintOptions, factories: &[ProviderFactory], names: &[&str]) -> Result<Lint, Failure> {
    let chosen = chosen(options, factories, names)?;
    let (mut all, mut wrong) = (Vec::new(), Vec::new());
    for file in &options.files {
        match services(file) {
            Ok(found) => all.extend(found),
            Err(why) => wrong.push(format!("{}: {why}", shown(file))),
        }
    }
    let mut opened = Vec::new();
    for factory in &chosen {
        match open(options, factory) {
            Ok(provider) => opened.push((*factory, provider)),
            Err(mistakes) => wrong.extend(mistakes),
        }
    }
    if !wrong.is_empty() {
        return Err((wrong, EXIT_UNREADABLE));
    }
    let judges = opened.iter().filter_map(|(factory, provider)| {
        let balancers = provider.load_balancers()?;
        Some(Judge { name: factory.name, annotations: factory.annotations, balancers })
    });
    let judges: Vec<_> = judges.collect();
    Ok(lint(&all, &judges, !options.providers.is_empty(), &options.cluster))
}

fn chosen<'f>(
    options: &LintOptions,
    factories: &'f [ProviderFactory],
    names: &[&str],
) -> Result<Vec<&'f ProviderFactory>, Failure> {
    let mut wrong = Vec::new();
    let mut chosen: Vec<&ProviderFactory> = Vec::new();
    for name in &options.providers {
        match factories.iter().find(|factory| factory.name == name) {
            Some(factory) => chosen.push(factory),
            None => wrong.push(format!(
                "--cloud-provider: unknown cloud provider {name:?}; there are {}",
                names.join(", ")
            )),
        }
    }
    if options.config.is_some() && chosen.len() != 1 {
        wrong.push("--cloud-config needs exactly one --cloud-provider, whose file it is".to_owned());
    }
    if !wrong.is_empty() {
        return Err((wrong, EXIT_USAGE));
    }
    Ok(if chosen.is_empty() { factories.iter().collect() } else { chosen })
}

fn services(file: &str) -> Result<Vec<Object>, String> {
    let mut bytes = Vec::new();
    let read = if file == "-" {
        std::io::stdin().lock().take(LONGEST).read_to_end(&mut bytes)
    } else {
        std::fs::File::open(file).and_then(|open| open.take(LONGEST).read_to_end(&mut bytes))
    };
    read.map_err(|why| format!("{why}: give -f a file with manifests, or - for what comes through a pipe"))?;
    let text = String::from_utf8(bytes).map_err(|_| "it is not text: give -f a file with manifests")?;
    objects(&Source { file: shown(file).to_owned(), text })
        .map_err(|why| format!("{why}; nothing in it was looked at: correct this first"))
}

/// What a file is called in messages.
fn shown(file: &str) -> &str {
    if file == "-" { "stdin" } else { file }
}

/// The provider as far as it is pure: no token is used, and the address of its API is nobody's.
fn open(options: &LintOptions, factory: &ProviderFactory) -> Result<Arc<dyn Provider>, Vec<String>> {
    let real: Env = environment().into_iter().collect();
    let clock: Arc<dyn Clock> = Arc::new(SystemClock::new());
    let opened = (factory.open)(&ProviderContext {
        env: &real.overlaid(factory.offline),
        config: options.config.as_deref(),
        given: &GivenFlags::default(),
        cluster_name: &options.cluster,
        observer: Arc::new(Unobserved),
        clock,
        random: Arc::new(random_from_os()),
        resolver: Arc::new(NoResolver),
        notes: &Notes::default(),
    });
    opened.map_err(|wrong| wrong.iter().map(|why| format!("{}: {}", factory.name, why.message())).collect())
}

fn print(found: &Lint, json: bool, names: &[&str]) -> ExitCode {
    let text = if json { found.to_json() } else { found.to_text(names) };
    match std::io::stdout().write_all(text.as_bytes()) {
        Ok(()) => ExitCode::from(found.exit_code()),
        Err(why) => complain(&[format!("it could not be printed: {why}")], EXIT_UNREADABLE),
    }
}

fn complain(wrong: &[String], code: u8) -> ExitCode {
    let lines: Vec<_> = wrong.iter().map(|line| format!("Error: {}\n", line.replace('\n', " "))).collect();
    let text = lines.concat();
    let _ = std::io::stderr().write_all(text.as_bytes());
    ExitCode::from(code)
}
