//! The pages and their paths.

use std::{fmt, sync::Arc};

use cloudberth_core::{Clock, Tick};
use http::{Method, StatusCode, request::Parts};
use percent_encoding::percent_decode_str;
use serde_json::Value;

use crate::{
    answer::{Answer, answer, json, not_found, text},
    health::{Checks, HealthQuery},
    slis::Slis,
};

/// How much is logged, changed while the program runs.
pub trait Verbosity: Send + Sync {
    /// Logs up to this level from now on; an error says what is wrong with it.
    fn set(&self, level: i32) -> Result<(), String>;
}

/// What the pages show, computed at each request.
#[derive(Clone)]
pub struct Pages {
    /// `/healthz`: the election and the controllers that started.
    pub healthz: Checks,
    /// `/livez`: progress of lease and watches. Never the cloud: a restart does not repair a cloud.
    pub livez: Checks,
    /// `/readyz`: one check for each provider.
    pub readyz: Checks,
    /// `/metrics`, in the text format.
    pub metrics: Arc<dyn Fn() -> String + Send + Sync>,
    /// What strangers must not see; a server without a guard leaves it out.
    pub guarded: Option<GuardedPages>,
}

/// The pages that show settings or change something.
#[derive(Clone)]
pub struct GuardedPages {
    /// `/configz`.
    pub configz: Arc<dyn Fn() -> Value + Send + Sync>,
    /// Behind `/debug/flags/v`.
    pub verbosity: Arc<dyn Verbosity>,
    /// `--profiling`: whether there is anything under `/debug/`.
    pub profiling: bool,
}

impl fmt::Debug for GuardedPages {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("GuardedPages").field("profiling", &self.profiling).finish_non_exhaustive()
    }
}

impl fmt::Debug for Pages {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Pages")
            .field("healthz", &self.healthz)
            .field("livez", &self.livez)
            .field("readyz", &self.readyz)
            .finish_non_exhaustive()
    }
}

const METRICS_TEXT: &str = "text/plain; version=0.0.4; charset=utf-8";
const NO_PROFILES: &str = "There are no profiles here: this program has no runtime that could be looked into this way. \
                           Use perf or a heap profiler from outside.\n";

pub(crate) struct Router {
    pages: Pages,
    slis: Slis,
    clock: Arc<dyn Clock>,
}

impl Router {
    pub(crate) fn new(pages: Pages, clock: Arc<dyn Clock>) -> Self {
        Self { pages, slis: Slis::new(clock.wall()), clock }
    }

    /// Whether the page reads the request's body.
    pub(crate) fn reads_body(&self, request: &Parts) -> bool {
        self.pages.guarded.is_some()
            && request.method == Method::PUT
            && request.uri.path() == "/debug/flags/v"
    }

    pub(crate) fn page(&self, request: &Parts, body: &[u8]) -> Answer {
        let path = request.uri.path();
        if path == "/metrics" {
            return metrics((self.pages.metrics)());
        }
        let guarded = self.pages.guarded.as_ref().and_then(|pages| self.guarded(pages, request, body));
        guarded
            .or_else(|| self.health(path, request.uri.query().unwrap_or_default()))
            .unwrap_or_else(not_found)
    }

    fn guarded(&self, pages: &GuardedPages, request: &Parts, body: &[u8]) -> Option<Answer> {
        let path = request.uri.path();
        Some(match path {
            "/metrics/slis" if request.method == Method::DELETE => {
                self.slis.reset();
                text(StatusCode::OK, "metrics reset\n")
            }
            "/metrics/slis" => metrics(self.slis.text()),
            "/configz" => json(&(pages.configz)()),
            _ if path.starts_with("/debug/") || path == "/debug" => pages.debug(request, body),
            _ => return None,
        })
    }

    fn health(&self, path: &str, query: &str) -> Option<Answer> {
        let (page, single) = match path.strip_prefix('/')?.split_once('/') {
            Some((page, single)) => (page, Some(single)),
            None => (path.strip_prefix('/')?, None),
        };
        let checks = match page {
            "healthz" => &self.pages.healthz,
            "livez" => &self.pages.livez,
            "readyz" => &self.pages.readyz,
            _ => return None,
        };
        let now = self.clock.now();
        match single {
            None => Some(self.all(page, checks, query, now)),
            Some(name) => checks.one(name, now).map(|result| match result {
                Ok(()) => text(StatusCode::OK, "ok"),
                Err(why) => {
                    text(StatusCode::INTERNAL_SERVER_ERROR, format!("internal server error: {why}\n"))
                }
            }),
        }
    }

    fn all(&self, page: &str, checks: &Checks, query: &str, now: Tick) -> Answer {
        let report = checks.report(page, &ask(query), now);
        self.slis.observe(page, &report);
        for (check, why) in &report.outcomes {
            if let Some(why) = why {
                tracing::warn!(page, check, why, "health check failed");
            }
        }
        text(if report.well { StatusCode::OK } else { StatusCode::INTERNAL_SERVER_ERROR }, report.text)
    }
}

impl GuardedPages {
    fn debug(&self, request: &Parts, body: &[u8]) -> Answer {
        if !self.profiling {
            return not_found();
        }
        match request.uri.path() {
            "/debug/flags/v" if request.method == Method::PUT => self.set_verbosity(body),
            "/debug/flags/v" => text(StatusCode::NOT_ACCEPTABLE, "unsupported http method"),
            "/debug/flags" | "/debug/flags/" => {
                text(StatusCode::OK, "PUT a number to /debug/flags/v to change how much is logged\n")
            }
            path if path == "/debug/pprof" || path.starts_with("/debug/pprof/") => {
                text(StatusCode::NOT_FOUND, NO_PROFILES)
            }
            _ => not_found(),
        }
    }

    fn set_verbosity(&self, body: &[u8]) -> Answer {
        let given = String::from_utf8_lossy(body);
        let level = given.trim().parse::<i32>().map_err(|error| error.to_string());
        match level.and_then(|level| self.verbosity.set(level).map(|()| level)) {
            Ok(level) => text(StatusCode::OK, format!("successfully set klog.logging.verbosity to {level}")),
            Err(why) => {
                text(StatusCode::BAD_REQUEST, format!("failed set klog.logging.verbosity {given}: {why}"))
            }
        }
    }
}

/// Scrapers ask for `OpenMetrics` first and take plain text as well. What is called by a format that it does not have is
/// refused as a whole.
fn metrics(body: String) -> Answer {
    answer(StatusCode::OK, METRICS_TEXT, body)
}

fn ask(query: &str) -> HealthQuery {
    let decode = |part: &str| percent_decode_str(&part.replace('+', " ")).decode_utf8_lossy().into_owned();
    let mut ask = HealthQuery::default();
    for pair in query.split('&') {
        let (key, value) = pair.split_once('=').unwrap_or((pair, ""));
        match decode(key).as_str() {
            "verbose" => ask.verbose = true,
            "exclude" => {
                ask.exclude.insert(decode(value));
            }
            _ => {}
        }
    }
    ask
}

#[cfg(test)]
mod tests {
    use std::sync::Mutex;

    use cloudberth_http::surroundings::SystemClock;
    use http::Request;
    use http_body_util::BodyExt as _;

    use super::*;
    use crate::health::CheckFn;

    #[derive(Default)]
    struct Level(Mutex<i32>);

    impl Verbosity for Level {
        fn set(&self, level: i32) -> Result<(), String> {
            if level < 0 {
                return Err("below zero".to_owned());
            }
            *self.0.lock().unwrap() = level;
            Ok(())
        }
    }

    fn router(profiling: bool) -> (Router, Arc<Level>) {
        let level = Arc::new(Level::default());
        let pages = Pages {
            healthz: Checks::default(),
            livez: Checks::default(),
            readyz: Checks::default(),
            metrics: Arc::new(|| "m 1\n".to_owned()),
            guarded: Some(GuardedPages {
                configz: Arc::new(|| serde_json::json!({"a": 1})),
                verbosity: level.clone(),
                profiling,
            }),
        };
        let bad = || Arc::new(CheckFn::new("bad one", |_| Err("broken".to_owned()))) as Arc<dyn crate::Check>;
        pages.readyz.add([bad()]);
        (Router::new(pages, Arc::new(SystemClock::starting_at(Timestamp::UNIX_EPOCH))), level)
    }

    use jiff::Timestamp;

    async fn fetch(router: &Router, method: &str, uri: &str, body: &str) -> (u16, String) {
        let (parts, ()) = Request::builder().method(method).uri(uri).body(()).unwrap().into_parts();
        let answer = router.page(&parts, body.as_bytes());
        let headers = answer.headers();
        assert_eq!(headers["cache-control"], "no-cache, private", "{uri}");
        assert_eq!(headers["x-content-type-options"], "nosniff", "{uri}");
        let status = answer.status().as_u16();
        (status, String::from_utf8(answer.into_body().collect().await.unwrap().to_bytes().to_vec()).unwrap())
    }

    #[test]
    fn metrics_are_called_plain_text_also_where_a_scraper_would_like_another_format() {
        let (router, _) = router(false);
        for uri in ["/metrics", "/metrics/slis"] {
            let request = Request::get(uri).header("accept", "application/openmetrics-text;version=1.0.0");
            let (parts, ()) = request.body(()).unwrap().into_parts();
            assert_eq!(router.page(&parts, b"").headers()["content-type"], METRICS_TEXT, "{uri}");
        }
    }

    #[tokio::test]
    async fn every_page_is_where_it_belongs() {
        let nothing = "404 page not found\n";
        let ready = "[-]bad one failed: reason withheld\nreadyz check failed\n";
        let table = [
            ("GET", "/healthz", "", 200, "ok"),
            ("GET", "/healthz?verbose", "", 200, "[+]ping ok\nhealthz check passed\n"),
            ("GET", "/healthz/ping", "", 200, "ok"),
            ("GET", "/healthz/other", "", 404, nothing),
            ("GET", "/livez?verbose=1", "", 200, "[+]ping ok\nlivez check passed\n"),
            ("GET", "/readyz", "", 500, ready),
            ("GET", "/readyz?exclude=bad+one", "", 200, "ok"),
            (
                "GET",
                "/readyz?exclude=bad%20one&verbose",
                "",
                200,
                "[+]bad one excluded: ok\nreadyz check passed\n",
            ),
            ("GET", "/metrics", "", 200, "m 1\n"),
            ("GET", "/configz", "", 200, "{\"a\":1}"),
            ("GET", "/", "", 404, nothing),
            ("GET", "/version", "", 404, nothing),
            ("GET", "/metrics/", "", 404, nothing),
            ("GET", "/debug/pprof/heap", "", 404, NO_PROFILES),
            ("GET", "/debug/flags/v", "", 406, "unsupported http method"),
            (
                "PUT",
                "/debug/flags/v",
                "x",
                400,
                "failed set klog.logging.verbosity x: invalid digit found in string",
            ),
            ("PUT", "/debug/flags/v", "-1", 400, "failed set klog.logging.verbosity -1: below zero"),
            ("PUT", "/debug/flags/v", "4", 200, "successfully set klog.logging.verbosity to 4"),
            ("GET", "/debug/flags/other", "", 404, nothing),
        ];
        let (router, level) = router(true);
        for (method, uri, body, status, want) in table {
            assert_eq!(fetch(&router, method, uri, body).await, (status, want.to_owned()), "{method} {uri}");
        }
        assert_eq!(*level.0.lock().unwrap(), 4);
        let (router, level) = self::router(false);
        for (method, uri) in [("PUT", "/debug/flags/v"), ("GET", "/debug/pprof/")] {
            assert_eq!(
                fetch(&router, method, uri, "4").await,
                (404, nothing.to_owned()),
                "without profiling"
            );
        }
        assert_eq!(*level.0.lock().unwrap(), 0);
    }

    #[tokio::test]
    async fn asked_checks_are_counted_until_somebody_resets() {
        let (router, _) = router(true);
        for uri in ["/healthz", "/healthz", "/readyz", "/readyz?exclude=bad+one"] {
            fetch(&router, "GET", uri, "").await;
        }
        let (_, page) = fetch(&router, "GET", "/metrics/slis", "").await;
        for line in [
            "kubernetes_healthcheck{name=\"ping\",type=\"healthz\"} 1",
            "kubernetes_healthcheck{name=\"bad one\",type=\"readyz\"} 0",
            "kubernetes_healthchecks_total{name=\"ping\",type=\"healthz\",status=\"success\"} 2",
            "kubernetes_healthchecks_total{name=\"bad one\",type=\"readyz\",status=\"error\"} 1",
            "process_start_time_seconds 0.0",
        ] {
            assert!(page.lines().any(|l| l == line), "{line} in\n{page}");
        }
        assert_eq!(fetch(&router, "DELETE", "/metrics/slis", "").await, (200, "metrics reset\n".to_owned()));
        let (_, page) = fetch(&router, "GET", "/metrics/slis", "").await;
        assert!(!page.contains("name="), "{page}");
    }
}
