//! Every request that is sent, and what is made of every answer, against a scripted API.

use std::{sync::Arc, time::Duration};

use cloudberth_binarylane::{BinaryLaneProvider, FileSettings, Settings, Sources, Surroundings};
use cloudberth_core::{
    Call, Category, Clock, InstanceState, Instances, Lookup, Provider, ProviderId, Random, Secret, Zones,
    call::Unguarded,
};
use cloudberth_http::{
    Env, GivenFlags, TokenSource, Unobserved,
    surroundings::SystemClock,
    testing::{Reply, ScriptedCloud},
    yaml,
};
use serde_json::{Value, json};

const TOKEN: &str = "t0k3n-of-the-account";
const LIST: &str = "GET /v2/servers?per_page=200";

struct Script {
    cloud: ScriptedCloud,
    provider: BinaryLaneProvider,
    clock: Arc<SystemClock>,
}

impl Script {
    fn new(file: &str) -> Self {
        let cloud = ScriptedCloud::new();
        let clock = Arc::new(SystemClock::default());
        let token = Ok(Some(TokenSource::fixed(Secret::new(TOKEN).unwrap())));
        let (env, given) = (Env::default(), GivenFlags::default());
        let file = yaml::read(file, FileSettings::read).unwrap();
        let settings =
            Settings::read(Sources { token, env: &env, file, given: &given, cluster: "prod" }).unwrap();
        let around = Surroundings {
            transport: cloud.transport(),
            clock: Arc::clone(&clock) as Arc<dyn Clock>,
            random: Arc::new(Random::seeded(1)),
            observer: Arc::new(Unobserved),
        };
        Self { cloud, provider: BinaryLaneProvider::new(settings, around), clock }
    }

    fn call(&self) -> Call {
        Call::new(self.clock.now() + Duration::from_secs(120), Arc::new(Unguarded))
    }

    fn instances(&self) -> &dyn Instances {
        self.provider.instances().unwrap()
    }

    async fn names(&self) -> Result<(Vec<String>, bool), String> {
        let listing = self.instances().list(&self.call()).await.map_err(|why| why.message().to_owned())?;
        Ok((listing.items.iter().map(|one| one.name.clone()).collect(), listing.is_complete()))
    }
}

fn server(id: i64, name: &str) -> Value {
    json!({"id": id, "name": name, "status": "active", "region": {"slug": "mel"}, "size_slug": "std-min", "vpc_id": null,
           "networks": {"v4": [{"ip_address": "198.51.100.1", "type": "public"}], "v6": []}})
}

fn page(servers: &[Value], total: usize, next: Option<&str>) -> Reply {
    let links = next.map(|next| json!({"pages": {"next": next}}));
    Reply::json(200, &json!({"servers": servers, "meta": {"total": total}, "links": links}))
}

fn id(number: i64) -> ProviderId {
    format!("binarylane://{number}").parse().unwrap()
}

#[tokio::test(start_paused = true)]
async fn a_listing_asks_for_large_pages_with_the_token() {
    let script = Script::new("");
    let next = "https://api.binarylane.com.au/v2/servers?page=2&per_page=200";
    script.cloud.on(LIST, [page(&[server(1, "a")], 2, Some(next))]);
    script.cloud.on("GET /v2/servers?page=2&per_page=200", [page(&[server(2, "B")], 2, None)]);
    assert_eq!(script.names().await, Ok((vec!["a".to_owned(), "b".to_owned()], true)), "BL-22");
    let received = script.cloud.received();
    assert!(received.iter().all(|one| one.header("authorization") == format!("Bearer {TOKEN}")), "BL-1");
    assert!(received[0].header("user-agent").starts_with("cloudberth/"));
}

#[tokio::test(start_paused = true)]
async fn what_is_not_a_listing_is_an_error_or_short() {
    let elsewhere = "https://evil.example.org/v2/servers?page=2";
    let same = "https://api.binarylane.com.au/v2/servers?per_page=200";
    let html = || Reply::text(200, "<html><title>hello</title></html>");
    let table = [
        ("BL-24", html(), None),
        ("BL-128 empty", Reply::empty(200), None),
        ("BL-128 no key", Reply::json(200, &json!({"meta": {"total": 0}})), None),
        ("BL-126", Reply::empty(401), None),
        ("BL-129", page(&[server(1, "a")], 2, Some(elsewhere)), Some(false)),
        ("BL-130", page(&[server(1, "a")], 2, Some(same)), Some(false)),
        ("BL-150", page(&[server(1, "a")], 2, None), Some(false)),
        ("all", page(&[server(1, "a")], 1, None), Some(true)),
    ];
    for (case, reply, complete) in table {
        let script = Script::new("");
        script.cloud.always(LIST, reply);
        let names = script.names().await;
        assert_eq!(names.as_ref().ok().map(|(_, complete)| *complete), complete, "{case} {names:?}");
        assert!(script.cloud.received().iter().all(|one| one.line.starts_with("GET /v2/servers")), "{case}");
        if let Err(why) = names {
            assert!(!why.contains(TOKEN), "BL-132 {why}");
        }
    }
}

#[tokio::test(start_paused = true)]
async fn a_page_that_fails_makes_the_listing_short() {
    let script = Script::new("");
    let next = "https://api.binarylane.com.au/v2/servers?page=2&per_page=200";
    script.cloud.on(LIST, [page(&[server(1, "a")], 2, Some(next))]);
    script.cloud.always("GET /v2/servers?page=2&per_page=200", Reply::empty(500));
    assert_eq!(script.names().await, Ok((vec!["a".to_owned()], false)), "BL-25");
}

#[tokio::test(start_paused = true)]
async fn a_read_waits_as_long_as_the_api_asks() {
    let script = Script::new("");
    script.cloud.on(LIST, [Reply::empty(429).header("retry-after", "3"), page(&[], 0, None)]);
    assert_eq!(script.names().await, Ok((vec![], true)), "BL-127");
    let times = script.cloud.times();
    assert!(times[1] - times[0] >= 3_000, "BL-127 {times:?}");
    let script = Script::new("");
    script.cloud.on(LIST, [Reply::empty(429), Reply::empty(503), Reply::empty(500), page(&[], 0, None)]);
    assert_eq!(script.names().await, Ok((vec![], true)), "BL-127");
    let times = script.cloud.times();
    let waits: Vec<_> = times.windows(2).map(|pair| pair[1] - pair[0]).collect();
    assert!(
        waits.len() == 3 && waits[0] >= 500 && waits[1] >= 1_000 && waits[2] >= 2_000,
        "BL-127 {waits:?}"
    );
}

#[tokio::test(start_paused = true)]
async fn an_id_is_asked_for_itself() {
    let script = Script::new("");
    let problem =
        json!({"type": "about:blank", "title": "Not Found", "status": 404, "traceId": "00-5d1c-01"});
    script.cloud.always("GET /v2/servers/1", Reply::json(200, &json!({"server": server(1, "a")})));
    script.cloud.always("GET /v2/servers/2", Reply::json(404, &problem));
    script.cloud.always("GET /v2/servers/3", Reply::empty(404));
    script.cloud.always("GET /v2/servers/4", Reply::empty(401));
    script.cloud.always("GET /v2/servers/5", Reply::text(200, "<html>"));
    script.cloud.always("GET /v2/servers/6", Reply::json(200, &json!({"servers": []})));
    let (instances, call) = (script.instances(), script.call());
    let get = async |number| instances.get(&call, &id(number)).await;
    assert!(matches!(get(1).await, Lookup::Present(one) if one.name == "a"), "BL-12");
    let three: ProviderId = "binarylane:///1".parse().unwrap();
    assert!(instances.get(&call, &three).await.is_present(), "BL-13");
    assert!(get(2).await.is_absent());
    for number in [3, 4, 5, 6] {
        assert!(matches!(get(number).await, Lookup::Unknown(_)), "BL-126 BL-128 {number}");
    }
    let foreign: ProviderId = "invalid://1".parse().unwrap();
    let before = script.cloud.received().len();
    assert!(matches!(instances.get(&call, &foreign).await, Lookup::Unknown(_)), "BL-14");
    assert_eq!(script.cloud.received().len(), before, "BL-14");
}

#[tokio::test(start_paused = true)]
async fn a_name_is_compared_whatever_the_api_filtered() {
    let line = |name: &str| format!("GET /v2/servers?hostname={name}&per_page=200");
    let script = Script::new("");
    script.cloud.always(&line("kube-w1"), page(&[server(1, "other"), server(2, "Kube-W1")], 2, None));
    script.cloud.always(&line("nobody"), page(&[server(1, "other")], 1, None));
    script.cloud.always(&line("a%20b"), page(&[], 0, None));
    let (instances, call) = (script.instances(), script.call());
    assert!(
        matches!(instances.find(&call, "kube-w1").await, Lookup::Present(one) if one.id == id(2)),
        "BL-18 BL-20"
    );
    assert!(instances.find(&call, "nobody").await.is_absent(), "BL-20");
    assert!(instances.find(&call, "a b").await.is_absent(), "it is encoded");
    let before = script.cloud.received().len();
    assert!(matches!(instances.find(&call, "").await, Lookup::Unknown(_)), "an empty name is not sent");
    assert_eq!(script.cloud.received().len(), before);
}

#[tokio::test(start_paused = true)]
async fn whether_a_server_runs_is_asked_and_followed() {
    let job = |status: &str, more: Value| {
        let mut job =
            json!({"id": 9, "type": "is_running", "status": status, "resource_id": 1, "result_data": null});
        job.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
        Reply::json(200, &json!({"action": job}))
    };
    let ask = "POST /v2/servers/1/actions";
    let done = json!({"completed_at": "2026-03-02T04:05:06+00:00"});
    let table = [
        (
            "BL-49",
            job("in-progress", json!({})),
            Some(job("errored", done.clone())),
            Some(InstanceState::Stopped),
        ),
        (
            "it runs",
            job("in-progress", json!({})),
            Some(job("completed", done.clone())),
            Some(InstanceState::Running),
        ),
        ("at once", job("completed", done), None, Some(InstanceState::Running)),
        ("BL-50", Reply::empty(202), None, None),
        ("an invoice", job("in-progress", json!({"blocking_invoice_id": 3})), None, None),
        ("for ever", job("in-progress", json!({})), Some(job("in-progress", json!({}))), None),
        ("a word of tomorrow", job("in-progress", json!({})), Some(job("parked", json!({}))), None),
        ("it is lost", job("in-progress", json!({})), Some(Reply::json(404, &json!({"status": 404}))), None),
    ];
    for (case, first, second, want) in table {
        let script = Script::new("nodes: {askWhetherRunning: true}");
        assert_eq!(script.instances().ask_every(), Some(Duration::from_secs(300)), "BL-49");
        script.cloud.on(ask, [first]);
        if let Some(second) = second {
            script.cloud.always("GET /v2/actions/9", second);
        }
        let said = script.instances().runs(&script.call(), &id(1)).await;
        assert_eq!(said.known().ok().flatten(), want, "{case}");
        assert_eq!(script.cloud.received()[0].body, r#"{"type":"is_running"}"#, "{case}");
    }
    assert_eq!(Script::new("").instances().ask_every(), None, "it is an option");
}

#[tokio::test(start_paused = true)]
async fn a_zone_is_the_region_of_the_server() {
    let script = Script::new("region: syd");
    script.cloud.always("GET /v2/servers/1", Reply::json(200, &json!({"server": server(1, "a")})));
    script.cloud.always("GET /v2/servers/2", Reply::json(404, &json!({"title": "Not Found"})));
    script.cloud.always("GET /v2/servers?hostname=a&per_page=200", page(&[server(1, "a")], 1, None));
    let regions = json!({"regions": [{"slug": "mel"}, {"slug": "syd"}], "meta": {"total": 2}, "links": null});
    script.cloud.always("GET /v2/regions?per_page=200", Reply::json(200, &regions));
    let (provider, call) = (&script.provider, script.call());
    let both = |place: cloudberth_core::provider::Place| {
        (place.region.to_string(), place.zone.map(|zone| zone.to_string()).unwrap_or_default())
    };
    let mel = ("mel".to_owned(), "mel".to_owned());
    assert_eq!(both(provider.zone_by_id(&call, &id(1)).await.unwrap()), mel, "BL-114");
    assert_eq!(both(provider.zone_by_name(&call, "a").await.unwrap()), mel, "BL-114");
    let own = provider.own_zone(&call, "a").await.unwrap();
    assert_eq!(both(own), ("syd".to_owned(), "syd".to_owned()), "BL-115");
    assert_eq!(
        provider.zone_by_id(&call, &id(2)).await.unwrap_err().category(),
        Category::NotFound,
        "BL-115"
    );
    let all = Zones::list(provider, &call).await.unwrap();
    assert_eq!(all.items.len(), 2, "BL-114");
    let unset = Script::new("");
    unset.cloud.always("GET /v2/servers?hostname=a&per_page=200", page(&[server(1, "a")], 1, None));
    assert_eq!(both(unset.provider.own_zone(&unset.call(), "a").await.unwrap()), mel, "BL-115");
}

#[tokio::test(start_paused = true)]
async fn problems_are_told_by_their_fields() {
    let script = Script::new("");
    let body = json!({"title": "One or more validation errors occurred.", "status": 400,
                      "errors": {"per_page": ["The value must be at most 200."]}});
    script.cloud.always(LIST, Reply::json(400, &body).header("content-type", "application/problem+json"));
    let why = script.names().await.unwrap_err();
    assert!(why.contains("per_page: The value must be at most 200."), "BL-131 BL-142 {why}");
    assert!(!why.contains("validation errors occurred") && !why.contains(TOKEN), "BL-142 BL-132 {why}");
}
