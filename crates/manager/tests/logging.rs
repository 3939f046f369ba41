//! The log. Alone in its program: what is listened to is remembered for the whole process.

#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, clippy::indexing_slicing, missing_docs)]

use std::sync::{Arc, Mutex};

use cloudberth_manager::{
    logging::{Verbosity, log},
    options::LogFormat,
};
use http::{Request, Response};
use kube::{Client, client::Body};
use tower::service_fn;

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

/// Reviews of a token, answered with something else, and refused with something else.
fn review_that_cannot_be_read() {
    let runtime = tokio::runtime::Builder::new_current_thread().build().unwrap();
    runtime.block_on(async {
        for status in [201, 500] {
            let wire = service_fn(move |_: Request<Body>| async move {
                let text = r#"{"kind":"TokenReview","spec":{"token":"s3cr3t"},"status":"odd"}"#;
                Response::builder().status(status).body(Body::from(text.as_bytes().to_vec()))
            });
            let client = Client::new(wire, "default");
            let question =
                Request::post("/apis/authentication.k8s.io/v1/tokenreviews").body(Vec::new()).unwrap();
            assert!(client.request::<u32>(question).await.is_err());
        }
    });
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

    for verbosity in
        [Verbosity::new(0), Verbosity::new(9), Verbosity::new(0).with_modules(vec![("client".into(), 9)])]
    {
        let writer = sink.clone();
        let guard =
            tracing::subscriber::set_default(log(LogFormat::Text, &verbosity, move || writer.clone()));
        review_that_cannot_be_read();
        let text = sink.take();
        assert!(!text.contains("s3cr3t"), "L10-500 {verbosity:?}: {text}");
        drop(guard);
    }

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
