use std::{sync::Arc, time::Duration};

use cloudberth_core::{
    Clock,
    decide::queue::{ItemExponential, Requeue, WorkQueue},
    metric::{MetricKind, Stability},
    time::Tick,
};
use jiff::Timestamp;

use super::{rest::VerbLabels, *};
use crate::worker_pool::WorkerPool;

struct Paused(tokio::time::Instant);

impl Clock for Paused {
    fn now(&self) -> Tick {
        Tick(self.0.elapsed())
    }

    fn wall(&self) -> Timestamp {
        Timestamp::UNIX_EPOCH
    }
}

fn clock() -> Arc<dyn Clock> {
    Arc::new(Paused(tokio::time::Instant::now()))
}

/// The lines of one metric: its explanation, its type, its samples.
fn about<'a>(page: &'a str, name: &str) -> Vec<&'a str> {
    let of = |line: &&str| {
        let rest = line.trim_start_matches("# HELP ").trim_start_matches("# TYPE ");
        let word = rest.split([' ', '{']).next().unwrap_or_default();
        ["", "_bucket", "_sum", "_count"].iter().any(|end| word.strip_suffix(end) == Some(name))
    };
    page.lines().filter(of).collect()
}

/// The bounds of a histogram's buckets as they are spelled.
fn bounds(page: &str, name: &str) -> String {
    let lines = about(page, name).into_iter().filter_map(|line| line.split("le=\"").nth(1));
    lines.filter_map(|rest| rest.split('"').next()).collect::<Vec<_>>().join(" ")
}

#[tokio::test(start_paused = true)]
async fn every_series_bears_the_name_type_and_stability_that_is_looked_for() {
    let mut registry = Registry::default();
    let metrics = Metrics::new(&mut registry);
    let cloud = metrics.clouds.cloud(&mut registry, "Cloud-Scale");
    cloud.attempted("server_list", Some(429), "answered", Duration::from_millis(20));
    let _queue = metrics.queues.queue("service", &clock());
    metrics.lifecycle.called("exists", "error");
    metrics.route.synced("noop", "periodic");
    metrics.election.leads("cloud-controller-manager", false);
    metrics.election.went_slowly("cloud-controller-manager");
    metrics.manager.set_running("service-lb-controller", true);
    metrics.manager.set_build(&BuildInfo { major: "0".into(), ..BuildInfo::default() });
    let get = VerbLabels { verb: "GET".into(), host: "h".into() };
    metrics.rest.ended(get, Some(200), Some(Duration::ZERO), Some(1));
    let page = render(&registry);

    let delay = "1 4 16 64 256 1024 +Inf";
    let doubling = "1 2 4 8 16 32 64 128 256 512 1024 2048 4096 8192 16384 +Inf";
    let pass =
        "0.001 0.002 0.004 0.008 0.016 0.032 0.064 0.128 0.256 0.512 1.024 2.048 4.096 8.192 16.384 +Inf";
    let queue = "1e-08 1e-07 1e-06 1e-05 0.0001 0.001 0.01 0.1 1 10 +Inf";
    let cloud = "0.005 0.01 0.025 0.05 0.1 0.25 0.5 1 2.5 5 10 +Inf";
    for metric in TABLE {
        let name = &metric.name.replace("{cloud}", "cloud_scale");
        let lines = about(&page, name);
        let texts =
            [format!("# HELP {name} {}.", metric.help()), format!("# TYPE {name} {}", metric.kind.name())];
        assert!(lines.len() > 2 && lines[..2] == texts, "{name}: {lines:?}");
        // A label's name is what stands between a comma or a brace and the next quotation mark.
        let names = lines[2].split('"').step_by(2).filter_map(|part| part.strip_suffix('='));
        let labels = names.filter_map(|part| part.rsplit(['{', ',']).next()).filter(|label| *label != "le");
        assert_eq!(labels.collect::<Vec<_>>(), metric.labels, "{name}");
        let buckets = match metric.name {
            "rest_client_request_duration_seconds" => "0.005 0.025 0.1 0.25 0.5 1 2 4 8 15 30 60 +Inf",
            "rest_client_request_size_bytes" => {
                "64 256 512 1024 4096 16384 65536 262144 1.048576e+06 4.194304e+06 1.6777216e+07 +Inf"
            }
            "cloud_node_lifecycle_controller_monitor_nodes_duration_seconds" => pass,
            name if name.starts_with("node_controller_") => delay,
            name if name.starts_with("service_controller_") => doubling,
            name if name.starts_with("workqueue_") => queue,
            _ => cloud,
        };
        let buckets = if metric.kind == MetricKind::Histogram { buckets } else { "" };
        assert_eq!(bounds(&page, name), buckets, "{name}");
    }
    let printed = page.lines().filter(|line| line.starts_with("# TYPE ")).count();
    assert_eq!(printed, TABLE.len(), "a metric is not in the table:\n{page}");
    let betas = TABLE.iter().filter(|metric| metric.stability == Stability::Beta).count();
    assert_eq!(betas, 9, "what is beta stays so");
    let samples = [
        "cloud_node_lifecycle_controller_cloud_provider_calls_total{operation=\"exists\",result=\"error\"} 1",
        "route_controller_route_sync_total{outcome=\"noop\",trigger=\"periodic\"} 1",
        "running_managed_controllers{name=\"service-lb-controller\",manager=\"cloud-controller-manager\"} 1",
        "leader_election_master_status{name=\"cloud-controller-manager\"} 0",
        "cloudberth_cloud_requests_total{provider=\"Cloud-Scale\",operation=\"server_list\",outcome=\"answered\",code=\"429\"} 1",
        "cloudberth_cloud_throttles_total{provider=\"Cloud-Scale\"} 1",
        "cloudprovider_cloud_scale_api_request_errors{request=\"server_list\"} 1",
        "cloudprovider_cloud_scale_api_request_duration_seconds_bucket{le=\"0.025\",request=\"server_list\"} 1",
    ];
    for sample in samples {
        assert!(page.lines().any(|line| line == sample), "{sample}\n{page}");
    }
    assert!(!page.contains("_total_total") && !page.contains("# EOF"));
}

#[tokio::test(start_paused = true)]
async fn a_queue_tells_how_it_is_doing() {
    let mut registry = Registry::default();
    let metrics = QueueMetrics::default();
    metrics.register(&mut registry);
    let limiter = ItemExponential::new(Duration::from_secs(100), Duration::from_secs(100));
    let pool = WorkerPool::<_>::new("service", WorkQueue::new(3, limiter), clock()).metered(&metrics);
    for key in [1, 2, 2, 3, 4] {
        pool.add(key);
    }
    let number = |name: &str| {
        let page = render(&registry);
        let line =
            page.lines().find(|line| line.starts_with(&format!("{name}{{"))).unwrap_or_default().to_owned();
        line.split(' ').nth(1).and_then(|text| text.parse::<f64>().ok()).unwrap_or(-1.0)
    };
    let now = || {
        let names = ["depth", "adds_total", "retries_total", "unfinished_work_seconds"];
        let mut all = names.map(|name| number(&format!("workqueue_{name}"))).to_vec();
        all.push(number("workqueue_longest_running_processor_seconds"));
        all.push(number("workqueue_work_duration_seconds_count"));
        all.push(number("cloudberth_worker_panics_total"));
        all
    };
    assert_eq!(now(), [3.0, 3.0, 0.0, 0.0, 0.0, 0.0, 0.0], "a repetition and a refusal are no additions");
    assert_eq!(vec![number("cloudberth_workqueue_refused_total")], [1.0]);
    {
        let work = async |key: u32, _| {
            assert_ne!(key, 1, "unlucky");
            tokio::time::sleep(Duration::from_secs(10 * u64::from(key))).await;
            Requeue::Forget
        };
        let mut run = std::pin::pin!(pool.run(2, work, |_, _| (), || ()));
        // 1 panics at once; 2 works from 0 s to 20 s, 3 from 0 s to 30 s.
        assert!(tokio::time::timeout(Duration::from_secs(5), &mut run).await.is_err());
        assert_eq!(now(), [0.0, 3.0, 1.0, 10.0, 5.0, 1.0, 1.0]);
        assert!(tokio::time::timeout(Duration::from_secs(20), &mut run).await.is_err());
        assert_eq!(now(), [0.0, 3.0, 1.0, 25.0, 25.0, 2.0, 1.0]);
    }
    pool.add(9);
    assert_eq!(now()[..2].to_vec(), [1.0, 4.0]);
    pool.close();
    assert_eq!(now()[..2].to_vec(), [0.0, 4.0], "what will never be handed out does not wait");
    drop(pool);
    assert_eq!(now(), [0.0, 4.0, 1.0, 0.0, 0.0, 2.0, 1.0], "nothing is in progress in a pool that is gone");
}

#[test]
fn a_page_is_the_same_whatever_the_order_in_which_things_happened() {
    let page = |order: [&'static str; 3]| {
        let (mut registry, metrics) = (Registry::default(), RouteMetrics::default());
        metrics.register(&mut registry);
        for outcome in order {
            metrics.synced(outcome, "periodic");
        }
        render(&registry)
    };
    assert_eq!(page(["error", "noop", "changed"]), page(["changed", "error", "noop"]));
    assert_eq!(render(&Registry::default()), "", "a family without series is not printed");
}
