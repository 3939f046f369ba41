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

/// `--v`, as it is now. Clones are one and the same.
#[derive(Clone, Debug, Default)]
pub struct Verbosity(Arc<AtomicI32>);

impl Verbosity {
    /// This verbosity.
    pub fn new(level: i32) -> Self {
        Self(Arc::new(AtomicI32::new(level)))
    }

    /// The number.
    pub fn get(&self) -> i32 {
        self.0.load(Ordering::Relaxed)
    }

    /// Changes it, from the next line on.
    pub fn set(&self, level: i32) {
        self.0.store(level, Ordering::Relaxed);
        tracing::callsite::rebuild_interest_cache();
    }

    /// What the number means here: what people look at when all is well, what they need when something is not, and
    /// every single call.
    fn level(&self) -> LevelFilter {
        match self.get() {
            ..=3 => LevelFilter::INFO,
            4..=5 => LevelFilter::DEBUG,
            6.. => LevelFilter::TRACE,
        }
    }

    /// Libraries below speak in their own terms; of them, only trouble is shown unless everything is.
    fn shows(&self, metadata: &Metadata<'_>) -> bool {
        let ours = metadata.target().starts_with("cloudberth");
        let level = self.level();
        let level = if ours || level == LevelFilter::TRACE { level } else { LevelFilter::WARN };
        *metadata.level() <= level
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
        Some(self.level())
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
