//! The log. Alone in its program: what is listened to is remembered for the whole process.

#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, clippy::indexing_slicing, missing_docs)]

use std::sync::{Arc, Mutex};

use cloudberth_manager::{
    logging::{Verbosity, log},
    options::LogFormat,
};

#[derive(Clone, Default)]
struct Sink(Arc<Mutex<Vec<u8>>>);

impl std::io::Write for Sink {
    fn write(&mut self, bytes: &[u8]) -> std::io::Result<usize> {
        self.0.lock().unwrap().write(bytes)
    }

    fn flush(&mut self) -> std::io::Result<()> {
        Ok(())
    }
}

impl Sink {
    fn take(&self) -> String {
        String::from_utf8(std::mem::take(&mut *self.0.lock().unwrap())).unwrap()
    }
}

fn speak() {
    tracing::info!(target: "cloudberth_x", node = "a", "at info");
    tracing::debug!(target: "cloudberth_x", "at debug");
    tracing::trace!(target: "cloudberth_x", "at trace");
    tracing::info!(target: "hyper", "theirs at info");
    tracing::warn!(target: "hyper", "theirs at warn");
    tracing::error!(target: "kube_client::client::builder", "once more");
}

#[test]
fn the_level_can_be_changed_while_it_runs() {
    let (sink, verbosity) = (Sink::default(), Verbosity::new(0));
    let writer = sink.clone();
    let guard = tracing::subscriber::set_default(log(LogFormat::Text, &verbosity, move || writer.clone()));
    let table = [
        (0, vec!["at info", "theirs at warn"]),
        (5, vec!["at info", "at debug", "theirs at warn"]),
        (9, vec!["at info", "at debug", "at trace", "theirs at info", "theirs at warn", "once more"]),
        (2, vec!["at info", "theirs at warn"]),
    ];
    for (level, want) in table {
        verbosity.set(level);
        speak();
        let text = sink.take();
        let lines: Vec<_> = text.lines().collect();
        assert_eq!(lines.len(), want.len(), "{level}: {text}");
        assert!(lines.iter().zip(&want).all(|(line, want)| line.contains(want)), "{level}: {text}");
    }
    drop(guard);

    let writer = sink.clone();
    let verbosity = Verbosity::new(0).with_modules(vec![("cloudberth_x".into(), 5), ("hyper".into(), 2)]);
    let guard = tracing::subscriber::set_default(log(LogFormat::Text, &verbosity, move || writer.clone()));
    speak();
    let lines = sink.take();
    let said = |text: &str| lines.contains(text);
    assert!(said("at debug") && !said("at trace") && said("theirs at info"), "{lines}");
    drop(guard);

    let writer = sink.clone();
    let _guard =
        tracing::subscriber::set_default(log(LogFormat::Json, &Verbosity::new(0), move || writer.clone()));
    speak();
    let first: serde_json::Value = serde_json::from_str(sink.take().lines().next().unwrap()).unwrap();
    assert_eq!(
        (&first["message"], &first["node"], &first["level"]),
        (&"at info".into(), &"a".into(), &"INFO".into())
    );
}
