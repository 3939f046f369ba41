//! Who may see what, over real TLS.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, clippy::indexing_slicing, missing_docs)]

mod fixture;

use std::{sync::Arc, time::Duration};

use cloudberth_serving::{AlwaysAllow, Authentication, Authorization, Check, CheckFn};
use embedded_kube::{Fault, Harm};
use fixture::{Caller, PATIENCE, Wants, cluster, delegated, start, unusable};
use prometheus_client::encoding::text::encode;
use serde_json::{Value, json};

fn unusable_both(always_allow: &[&str]) -> Wants {
    let paths: Vec<_> = always_allow.iter().map(|path| (*path).to_owned()).collect();
    Wants {
        authentication: Authentication {
            client: Some(unusable()),
            skip_lookup: true,
            ..Authentication::default()
        },
        authorization: Authorization {
            client: Some(unusable()),
            always_allow: AlwaysAllow::parse(&paths).unwrap(),
            ..Authorization::default()
        },
        ..Wants::default()
    }
}

#[tokio::test]
async fn without_a_cluster_only_health_is_open() {
    let usual = ["/healthz", "/readyz", "/livez"];
    let table = [
        ("FW-339 no auth configuration", Wants::default(), "/healthz", 200),
        ("FW-340 no auth configuration", Wants::default(), "/metrics", 403),
        ("no auth configuration: not even a 404", Wants::default(), "/nothing", 403),
        ("FW-341 unusable delegates", unusable_both(&usual), "/healthz", 200),
        ("FW-342 unusable delegates", unusable_both(&usual), "/metrics", 500),
        ("FW-343 unusable delegates, but always allowed", unusable_both(&["/metrics"]), "/metrics", 200),
        ("a cleared list closes health too", unusable_both(&[]), "/healthz", 500),
    ];
    for (case, wants, path, want) in table {
        let port = start(wants).await;
        assert_eq!(port.status(path, &Caller::nobody()).await, want, "{case}");
    }
    let port = start(Wants::default()).await;
    assert_eq!(
        port.status("/healthz", &Caller::token("any")).await,
        200,
        "without reviews a token means nothing"
    );
    let port = start(unusable_both(&usual)).await;
    assert_eq!(
        port.status("/healthz", &Caller::token("any")).await,
        401,
        "a token that cannot be reviewed proves nothing"
    );
}

#[tokio::test]
async fn the_cluster_decides() {
    let (api, client) = cluster();
    let port = start(delegated(&client)).await;
    let table = [
        ("nobody at an open page", Caller::nobody(), "/healthz", 200),
        ("nobody elsewhere", Caller::nobody(), "/metrics", 403),
        ("a token that nobody knows", Caller::token("x"), "/metrics", 401),
        ("even at an open page", Caller::token("x"), "/healthz", 401),
        ("somebody who may", Caller::token("prometheus"), "/metrics", 200),
        ("somebody who may not", Caller::token("eve"), "/metrics", 403),
        ("no page there", Caller::token("prometheus"), "/nothing", 404),
        ("one check is not an open page", Caller::nobody(), "/healthz/leaderElection", 403),
        ("but somebody may", Caller::token("prometheus"), "/healthz/leaderElection", 200),
    ];
    for http2 in [false, true] {
        for (case, caller, path, want) in &table {
            let caller = Caller { http2, ..caller.clone() };
            assert_eq!(port.status(path, &caller).await, *want, "{case}, HTTP/2: {http2}");
        }
    }
    let asked = |resource: &str| api.calls(0).iter().filter(|call| call.resource == resource).count();
    assert_eq!((asked("tokenreviews"), asked("subjectaccessreviews")), (3, 6), "each question is asked once");
    let mut figures = String::new();
    encode(&mut figures, &port.registry).unwrap();
    for line in [
        "apiserver_delegated_authn_request_total{code=\"201\"} 3",
        "apiserver_delegated_authz_request_total{code=\"201\"} 6",
        "authentication_attempts{result=\"error\"} 4",
        "authentication_attempts{result=\"success\"} 14",
        "authenticated_user_requests{username=\"other\"} 14",
        "authorization_attempts_total{result=\"no-opinion\"} 6",
        "authorization_attempts_total{result=\"allowed\"} 8",
    ] {
        assert!(figures.lines().any(|l| l == line), "{line} in\n{figures}");
    }
}

#[tokio::test]
async fn refusals_are_worded_as_programs_expect() {
    let (api, client) = cluster();
    let port = start(delegated(&client)).await;
    let status = |code: u16, reason: &str, message: &str| {
        json!({
            "kind": "Status", "apiVersion": "v1", "metadata": {}, "status": "Failure",
            "message": message, "reason": reason, "code": code,
        })
    };
    let mut nobody =
        status(403, "Forbidden", "forbidden: User \"system:anonymous\" cannot get path \"/metrics\"");
    nobody["details"] = json!({});
    let mut eve =
        status(403, "Forbidden", "forbidden: User \"eve\" cannot get path \"/metrics\": not for eve");
    eve["details"] = json!({});
    let table = [
        (Caller::nobody(), nobody),
        (Caller::token("eve"), eve),
        (Caller::token("x"), status(401, "Unauthorized", "Unauthorized")),
    ];
    for (caller, want) in table {
        let got = port.get("/metrics", &caller).await;
        assert_eq!(serde_json::from_str::<Value>(&got.body).unwrap(), want);
        assert_eq!(got.headers["content-type"], "application/json");
        assert_eq!(got.headers["cache-control"], "no-cache, private");
        assert_eq!(got.headers["x-content-type-options"], "nosniff");
    }
    let mut fault = Fault::new(Harm::Status { code: 403, retry_after: None });
    "subjectaccessreviews".clone_into(&mut fault.resource);
    api.add_fault(fault);
    let got = port.get("/configz", &Caller::token("prometheus")).await;
    assert_eq!(got.status, 500);
    assert!(got.body.starts_with("Internal Server Error: \"/configz\": "), "{}", got.body);
    assert!(!got.body.contains("prometheus-token"), "{}", got.body);
}

#[tokio::test]
async fn a_slow_review_holds_up_nobody_else() {
    let (api, client) = cluster();
    let port = start(delegated(&client)).await;
    let mut slow = Fault::new(Harm::Latency { millis: 3_600_000 });
    "tokenreviews".clone_into(&mut slow.resource);
    api.add_fault(slow);
    let (caller, nobody) = (Caller::token("prometheus"), Caller::nobody());
    let waiting = port.get("/metrics", &caller);
    tokio::pin!(waiting);
    tokio::select! {
        biased;
        _ = &mut waiting => panic!("the review is slow"),
        () = tokio::time::sleep(Duration::from_millis(200)) => {}
    }
    let quick = tokio::time::timeout(PATIENCE, port.status("/healthz", &nobody)).await;
    assert_eq!(quick, Ok(200));
}

#[tokio::test]
async fn a_bug_behind_a_page_stays_there() {
    let (_, client) = cluster();
    let port = start(delegated(&client)).await;
    let bug = CheckFn::new("bug", |_| panic!("a check that should never have been written"));
    port.healthz.add([Arc::new(bug) as Arc<dyn Check>]);
    for http2 in [false, true] {
        let caller = Caller { http2, ..Caller::token("prometheus") };
        let got = (port.status("/healthz", &caller).await, port.status("/metrics", &caller).await);
        assert_eq!(got, (500, 200), "HTTP/2: {http2}");
    }
}
