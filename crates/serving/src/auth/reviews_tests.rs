//! Reviews against an API that follows a script.

use std::sync::Mutex;

use k8s_openapi::api::authentication::v1::UserInfo;
use kube::core::{Status, response::StatusDetails};

use super::*;

fn somebody() -> Peer {
    Peer::of([192, 0, 2, 1].into())
}

#[test]
fn what_the_review_of_a_token_means() {
    let user = |name: &str| {
        Some(UserInfo {
            username: Some(name.to_owned()),
            groups: Some(vec!["g".to_owned()]),
            ..UserInfo::default()
        })
    };
    let bob = Identity { name: "bob".to_owned(), groups: vec!["g".to_owned()], ..Identity::default() };
    let broken = |why: &str| AuthResult::Rejected(why.to_owned());
    let status = |authenticated, user, error: Option<&str>| TokenReviewStatus {
        authenticated,
        user,
        error: error.map(str::to_owned),
        audiences: None,
    };
    let table = [
        ("authenticated", status(Some(true), user("bob"), None), AuthResult::Accepted(bob)),
        ("not", status(Some(false), user("bob"), None), broken("invalid bearer token")),
        ("not, and why", status(None, None, Some("expired")), broken("expired")),
        ("an empty answer", TokenReviewStatus::default(), broken("invalid bearer token")),
        ("nobody", status(Some(true), user(""), None), broken("the review of the token names no user")),
    ];
    for (case, status, want) in table {
        assert_eq!(proof(status), want, "{case}");
    }
}

#[test]
fn only_what_may_pass_is_asked_again() {
    let api = |code, wait| {
        let details: StatusDetails =
            serde_json::from_value(serde_json::json!({"retryAfterSeconds": wait})).unwrap();
        kube::Error::Api(Box::new(Status { code, details: Some(details), ..Status::default() }))
    };
    let wire = |kind: io::ErrorKind| kube::Error::Service(Box::new(io::Error::from(kind)));
    let table = [
        ("throttled", api(429, 0), Some(0)),
        ("throttled, with a request", api(429, 3), Some(3)),
        ("broken", api(500, 0), Some(0)),
        ("away, with a request", api(503, 2), Some(2)),
        ("away", api(503, 0), None),
        ("not allowed to ask", api(403, 0), None),
        ("cut off", wire(io::ErrorKind::ConnectionReset), Some(0)),
        ("nobody there", wire(io::ErrorKind::ConnectionRefused), None),
    ];
    for (case, error, want) in table {
        assert_eq!(worth_repeating(&error), want.map(Duration::from_secs), "{case}");
    }
}

/// An API that answers from a list of what happens, one entry for each request, and then the last one for ever.
#[derive(Clone)]
struct Script {
    what: &'static [What],
    asked: Arc<Mutex<Vec<Duration>>>,
    began: tokio::time::Instant,
}

#[derive(Clone, Copy)]
enum What {
    Answer(&'static str),
    Code(u16),
    Throttle(u32),
    Silence,
    Refused,
}

impl Script {
    fn new(what: &'static [What]) -> Self {
        Self { what, asked: Arc::default(), began: tokio::time::Instant::now() }
    }

    async fn answer(self) -> Result<http::Response<kube::client::Body>, tower::BoxError> {
        let at = {
            let mut asked = self.asked.lock().unwrap();
            asked.push(self.began.elapsed());
            (asked.len() - 1).min(self.what.len() - 1)
        };
        let (code, body) = match self.what[at] {
            What::Answer(status) => {
                (201, format!("{{\"metadata\": {{}}, \"spec\": {{\"token\": \"\"}}, \"status\": {status}}}"))
            }
            What::Code(code) => (code, format!("{{\"status\": \"Failure\", \"code\": {code}}}")),
            What::Throttle(wait) => (
                429,
                format!(
                    "{{\"status\": \"Failure\", \"code\": 429, \"details\": {{\"retryAfterSeconds\": {wait}}}}}"
                ),
            ),
            What::Silence => std::future::pending().await,
            What::Refused => return Err(Box::new(io::Error::from(io::ErrorKind::ConnectionRefused))),
        };
        Ok(http::Response::builder().status(code).body(kube::client::Body::from(body.into_bytes())).unwrap())
    }

    fn reviewer<V: Clone>(&self, which: Review) -> Reviewer<V> {
        let script = self.clone();
        let service = tower::service_fn(move |_: http::Request<kube::client::Body>| script.clone().answer());
        let metrics = Metrics::register(&mut prometheus_client::registry::Registry::default());
        let clock =
            Arc::new(cloudberth_http::surroundings::SystemClock::starting_at(jiff::Timestamp::UNIX_EPOCH));
        Reviewer::new(Client::new(service, "default"), which, clock, Arc::new(Random::seeded(1)), metrics)
    }

    fn asked(&self) -> Vec<Duration> {
        self.asked.lock().unwrap().clone()
    }
}

const BOB: What = What::Answer(r#"{"authenticated": true, "user": {"username": "bob"}}"#);
const NOT: What = What::Answer(r#"{"error": "invalid bearer token"}"#);

#[tokio::test(start_paused = true)]
async fn what_may_pass_is_asked_five_times_and_no_more() {
    use What::{Code, Refused, Silence, Throttle};
    let table: [(&str, &'static [What], usize, bool); 7] = [
        ("an answer", &[BOB], 1, true),
        ("at last", &[Code(500), Code(504), Throttle(0), Silence, BOB], 5, true),
        ("too late", &[Code(500), Code(500), Code(500), Code(500), Code(500), BOB], 5, false),
        ("never", &[Silence], 5, false),
        ("not allowed to ask", &[Code(403)], 1, false),
        ("nobody there", &[Refused], 1, false),
        ("throttled", &[Throttle(7), BOB], 2, true),
    ];
    let token = Secret::new("t0ken").unwrap();
    for (case, what, times, known) in table {
        let script = Script::new(what);
        let proof = script.reviewer(Review::Token).whose(somebody(), &token, Duration::from_secs(10)).await;
        assert_eq!(
            (script.asked().len(), matches!(proof, AuthResult::Accepted(_))),
            (times, known),
            "{case}: {proof:?}"
        );
        assert!(!format!("{proof:?}").contains("t0ken"), "{case}");
    }
}

#[tokio::test(start_paused = true)]
async fn waits_grow_and_heed_the_server() {
    let token = Secret::new("t").unwrap();
    let waits = async |what: &'static [What]| {
        let script = Script::new(what);
        script.reviewer(Review::Token).whose(somebody(), &token, Duration::ZERO).await;
        script.asked().windows(2).map(|pair| pair[1].saturating_sub(pair[0]).as_millis()).collect::<Vec<_>>()
    };
    let got = waits(&[What::Code(500)]).await;
    for (wait, base) in got.iter().zip([500, 750, 1125, 1687]) {
        assert!((base..=base * 12 / 10 + 2).contains(wait), "{got:?}");
    }
    let got = waits(&[What::Throttle(7), What::Throttle(600), BOB]).await;
    assert!(
        (7_000..7_100).contains(&got[0]) && (10_000..10_100).contains(&got[1]),
        "a request has a limit: {got:?}"
    );
    let got = waits(&[What::Silence, BOB]).await;
    assert!((10_500..10_700).contains(&got[0]), "silence ends after ten seconds: {got:?}");
}

#[tokio::test(start_paused = true)]
async fn answers_are_remembered_and_failures_are_not() {
    let ttl = Duration::from_secs(10);
    let token = Secret::new("t").unwrap();
    for (case, what, within, after) in
        [("known", &[BOB][..], 1, 2), ("unknown", &[NOT], 1, 2), ("not answered", &[What::Code(403)], 2, 3)]
    {
        let script = Script::new(what);
        let reviewer = script.reviewer(Review::Token);
        let first = reviewer.whose(somebody(), &token, ttl).await;
        assert_eq!(reviewer.whose(somebody(), &token, ttl).await, first, "{case}");
        assert_eq!(script.asked().len(), within, "{case}");
        tokio::time::advance(ttl).await;
        reviewer.whose(somebody(), &token, ttl).await;
        assert_eq!(script.asked().len(), after, "{case}");
    }
    let yes = &[What::Answer(r#"{"allowed": true}"#)][..];
    let no = &[What::Answer(r#"{"allowed": false}"#)];
    let both = &[What::Answer(r#"{"allowed": true, "denied": true}"#)];
    for (case, what, asked) in [
        ("allowed for 20 s", yes, [1, 1, 2]),
        ("refused for 5 s", no, [1, 2, 3]),
        ("nonsense", both, [2, 3, 4]),
    ] {
        let script = Script::new(what);
        let reviewer = script.reviewer(Review::Access);
        let may = || reviewer.may(somebody(), SubjectAccessReviewSpec::default(), ttl * 2, ttl / 2);
        assert_eq!(may().await, may().await, "{case}");
        let mut got = vec![script.asked().len()];
        for _ in 0..2 {
            tokio::time::advance(ttl).await;
            may().await;
            got.push(script.asked().len());
        }
        assert_eq!(got, asked, "{case}");
    }
}
