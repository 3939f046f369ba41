//! What the manager decides, read from its log: the labels are those that `cloudberth plan` prints.

use std::{
    fmt,
    sync::{
        Arc,
        atomic::{AtomicU64, Ordering},
    },
};

use tracing::{
    Event, Level, Metadata, Subscriber,
    field::{Field, Visit},
    span,
};

use super::{contract::Happening, journal::Journal};

/// A log that keeps what is about a node or a Service, for the journal, and nothing else.
pub(crate) struct StepLog {
    journal: Arc<Journal>,
    spans: AtomicU64,
}

impl StepLog {
    pub(crate) fn new(journal: Arc<Journal>) -> Self {
        Self { journal, spans: AtomicU64::new(0) }
    }
}

impl Subscriber for StepLog {
    fn enabled(&self, metadata: &Metadata<'_>) -> bool {
        metadata.is_event()
            && *metadata.level() <= Level::INFO
            && metadata.target().starts_with("cloudberth_controllers")
    }

    fn new_span(&self, _: &span::Attributes<'_>) -> span::Id {
        span::Id::from_u64(self.spans.fetch_add(1, Ordering::Relaxed) + 1)
    }

    fn record(&self, _: &span::Id, _: &span::Record<'_>) {}

    fn record_follows_from(&self, _: &span::Id, _: &span::Id) {}

    fn event(&self, event: &Event<'_>) {
        let mut line = Line::default();
        event.record(&mut line);
        if let Some(told) = line.told() {
            self.journal.add(told);
        }
    }

    fn enter(&self, _: &span::Id) {}

    fn exit(&self, _: &span::Id) {}
}

/// The fields of a log line that are shown.
#[derive(Debug, Default)]
struct Line {
    message: String,
    object: Option<String>,
    impact: String,
    why: Option<String>,
}

impl Line {
    fn take(&mut self, name: &str, text: String) {
        match name {
            "message" => self.message = text,
            "service" => self.object = Some(format!("service/{text}")),
            "node" => self.object = Some(format!("node/{text}")),
            "impact" => self.impact = text,
            "why" => self.why = Some(text),
            _ => {}
        }
    }

    fn told(self) -> Option<Happening> {
        let label = match self.why {
            Some(why) => format!("{}: {why}", self.message),
            None => self.message,
        };
        Some(Happening::Decision { object: self.object?, label, impact: self.impact })
    }
}

impl Visit for Line {
    fn record_str(&mut self, field: &Field, value: &str) {
        self.take(field.name(), value.to_owned());
    }

    fn record_debug(&mut self, field: &Field, value: &dyn fmt::Debug) {
        self.take(field.name(), format!("{value:?}"));
    }
}

#[cfg(test)]
mod tests {
    use cloudberth_http::surroundings::SystemClock;

    use super::*;

    #[tokio::test]
    async fn steps_are_told_and_the_rest_of_the_log_is_not() {
        let journal = Arc::new(Journal::new(Arc::new(SystemClock::new())));
        tracing::subscriber::with_default(StepLog::new(Arc::clone(&journal)), || {
            const OURS: &str = "cloudberth_controllers::effects";
            tracing::info!(target: OURS, service = %"default/web", impact = %"minimal", "create {}", "it");
            tracing::warn!(target: OURS, node = "node-1", why = %"no answer", "node sync failed");
            tracing::debug!(target: OURS, node = "node-1", "too small");
            tracing::info!(target: OURS, "about nothing");
            tracing::info!(target: "kube_client", node = "node-1", "not ours");
        });
        let told: Vec<_> = journal.after(0).into_iter().map(|entry| entry.what).collect();
        let decision = |object: &str, label: &str, impact: &str| Happening::Decision {
            object: object.to_owned(),
            label: label.to_owned(),
            impact: impact.to_owned(),
        };
        assert_eq!(
            told,
            [
                decision("service/default/web", "create it", "minimal"),
                decision("node/node-1", "node sync failed: no answer", ""),
            ]
        );
    }
}
