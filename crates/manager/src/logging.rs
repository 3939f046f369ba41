//! The log: one line for each thing that happened, as text or JSON, and a level that can be changed while it runs.

use std::sync::{
    Arc,
    atomic::{AtomicI32, Ordering},
};

use tracing::{Metadata, Subscriber, level_filters::LevelFilter, subscriber::Interest};
use tracing_subscriber::{
    Layer, Registry,
    fmt::{self, MakeWriter},
    layer::{Context, Filter, SubscriberExt},
};

use crate::options::LogFormat;

/// This module logs that a request to the API server failed, but neither which nor why; the caller logs both.
const LOGGED_BY_US: &str = "kube_client::client::builder";

/// This module logs answers that it cannot read in full, and a token review holds the token (law 10). It is silenced at
/// every level; the caller logs the error.
const LOGS_SECRETS: &str = "kube_client::client";

/// `--v`, as it is now, and `--vmodule`. Clones are one and the same.
#[derive(Clone, Debug, Default)]
pub struct Verbosity {
    level: Arc<AtomicI32>,
    modules: Arc<Vec<(String, i32)>>,
}

impl Verbosity {
    /// This verbosity.
    pub fn new(level: i32) -> Self {
        Self { level: Arc::new(AtomicI32::new(level)), modules: Arc::default() }
    }

    /// Other levels for the modules of these names; the first that fits counts.
    #[must_use]
    pub fn with_modules(self, modules: Vec<(String, i32)>) -> Self {
        Self { modules: Arc::new(modules), ..self }
    }

    /// The number.
    pub fn get(&self) -> i32 {
        self.level.load(Ordering::Relaxed)
    }

    /// Changes it, from the next line on.
    pub fn set(&self, level: i32) {
        self.level.store(level, Ordering::Relaxed);
        tracing::callsite::rebuild_interest_cache();
    }

    /// Libraries below speak in their own terms; of them, only trouble is shown unless everything is.
    fn shows(&self, metadata: &Metadata<'_>) -> bool {
        let target = metadata.target();
        if target == LOGS_SECRETS {
            return false;
        }
        let named = self.modules.iter().find(|(name, _)| target.split("::").any(|part| part == name));
        let level = meaning(named.map_or_else(|| self.get(), |(_, level)| *level));
        let ours = target.starts_with("cloudberth") || named.is_some();
        if !ours && target == LOGGED_BY_US && level != LevelFilter::TRACE {
            return false;
        }
        *metadata.level() <= if ours || level == LevelFilter::TRACE { level } else { LevelFilter::WARN }
    }
}

/// What the number means here: what people look at when all is well, what they need when something is not, and every
/// single call.
fn meaning(level: i32) -> LevelFilter {
    match level {
        ..=3 => LevelFilter::INFO,
        4..=5 => LevelFilter::DEBUG,
        6.. => LevelFilter::TRACE,
    }
}

impl<S> Filter<S> for Verbosity {
    fn enabled(&self, metadata: &Metadata<'_>, _: &Context<'_, S>) -> bool {
        self.shows(metadata)
    }

    fn callsite_enabled(&self, metadata: &'static Metadata<'static>) -> Interest {
        if self.shows(metadata) { Interest::always() } else { Interest::never() }
    }

    fn max_level_hint(&self) -> Option<LevelFilter> {
        let modules = self.modules.iter().map(|(_, level)| *level);
        modules.chain([self.get()]).max().map(meaning)
    }
}

/// A log that goes to `writer`; to be installed for the whole process by the binary.
pub fn log<W>(format: LogFormat, verbosity: &Verbosity, writer: W) -> Box<dyn Subscriber + Send + Sync>
where
    W: for<'w> MakeWriter<'w> + Send + Sync + 'static,
{
    let lines = fmt::layer().with_writer(writer).with_ansi(false);
    let layer: Box<dyn Layer<Registry> + Send + Sync> = match format {
        LogFormat::Text => Box::new(lines.with_filter(verbosity.clone())),
        LogFormat::Json => Box::new(lines.json().flatten_event(true).with_filter(verbosity.clone())),
    };
    Box::new(Registry::default().with(layer))
}
