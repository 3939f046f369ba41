//! Which controllers run, how often and with how many workers.

use std::time::Duration;

use cloudberth_core::decide::{
    lifecycle::Cap,
    selection::{self, Controller},
};

use super::checks::Checks;
use crate::flags::{Flags, Setting};

/// Which controllers run, how often and with how many workers.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Controllers {
    /// Those that run, in the order in which they are started.
    pub run: Vec<Controller>,
    /// The pause after the start of each, to which chance adds up to as much again.
    pub start_interval: Duration,
    /// How often every object is looked at again, to which chance adds up to as much again; zero means never.
    pub min_resync_period: Duration,
    /// How often initialised nodes are compared with the cloud.
    pub node_status_update_frequency: Duration,
    /// How often nodes that are not ready are checked.
    pub node_monitor_period: Duration,
    /// How often routes are compared with nodes.
    pub route_reconciliation_period: Duration,
    /// Whether routes are made at all.
    pub configure_cloud_routes: bool,
    /// The pod networks as given; the route controller reads them if it runs.
    pub cluster_cidr: String,
    pub deletions: Cap,
    /// How many things are worked on at once.
    pub workers: Workers,
}

/// The most that is worked on at once. `None`: as many as turn out to be right.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Workers {
    pub node_syncs: Option<u32>,
    pub node_status_updates: Option<u32>,
    pub node_lifecycle_syncs: Option<u32>,
    pub service_syncs: Option<u32>,
}

pub(super) fn controllers(flags: &Flags, checks: &mut Checks) -> Controllers {
    let run = selection::controllers(&flags.controllers.get().0).unwrap_or_else(|wrong| {
        checks.mistakes.extend(wrong.into_iter().map(|error| error.context(flags.controllers.flag())));
        Vec::new()
    });
    Controllers {
        run,
        start_interval: checks.duration(&flags.controller_start_interval),
        min_resync_period: checks.duration(&flags.min_resync_period),
        node_status_update_frequency: checks.period(&flags.node_status_update_frequency),
        node_monitor_period: checks.period(&flags.node_monitor_period),
        route_reconciliation_period: checks.period(&flags.route_reconciliation_period),
        configure_cloud_routes: *flags.configure_cloud_routes.get(),
        cluster_cidr: flags.cluster_cidr.get().clone(),
        deletions: Cap { share: *flags.max_node_deletions.get(), ..Cap::LAW },
        workers: workers(flags, checks),
    }
}

fn workers(flags: &Flags, checks: &mut Checks) -> Workers {
    let (syncs, updates) = (&flags.concurrent_node_syncs, &flags.concurrent_node_status_updates);
    checks.mistakes.extend(selection::node_worker_mistakes(*syncs.get(), *updates.get()));
    for flag in [&flags.concurrent_node_lifecycle_syncs, &flags.concurrent_service_syncs] {
        checks.mistakes.extend(selection::worker_mistake(&flag.flag(), *flag.get()));
    }
    let given = |flag: &Setting<i32>| flag.given().copied().unwrap_or_default();
    let ceiling = |workers: i32| u32::try_from(workers).ok().filter(|workers| *workers > 0);
    Workers {
        node_syncs: ceiling(given(syncs)),
        node_status_updates: ceiling(selection::status_workers(given(updates), given(syncs))),
        node_lifecycle_syncs: ceiling(given(&flags.concurrent_node_lifecycle_syncs)),
        service_syncs: ceiling(given(&flags.concurrent_service_syncs)),
    }
}

#[cfg(test)]
mod tests {
    use super::{super::tests::options, *};

    const CLOUD: &str = "--cloud-provider=cloudscale";

    fn read(args: &[&str]) -> (Controllers, Vec<String>) {
        let read = options(&[&[CLOUD], args].concat());
        (read.options.controllers.clone(), read.texts())
    }

    #[test]
    fn the_flag_says_which_controllers_run() {
        let names = |args: &[&str]| -> Vec<_> { read(args).0.run.iter().map(|one| one.alias).collect() };
        let table: [(&str, &[&str], &[&str]); 4] = [
            ("all", &[], &["cloud-node", "cloud-node-lifecycle", "service", "route"]),
            (
                "FW-316 aliases",
                &["--controllers=*,-route", "--controllers=-service"],
                &["cloud-node", "cloud-node-lifecycle"],
            ),
            ("one", &["--controllers=service-lb-controller"], &["service"]),
            ("none", &["--controllers="], &[]),
        ];
        for (case, args, want) in table {
            assert_eq!(names(args), want, "{case}");
        }
        let says = |name: &str| format!("--controllers: {name:?} is not in the list of known controllers");
        assert_eq!(read(&["--controllers=*,nodes,-routes"]).1, [says("nodes"), says("routes")], "FW-315");
    }

    #[test]
    fn worker_counts_are_ceilings_only_if_given() {
        let none = Workers {
            node_syncs: None,
            node_status_updates: None,
            node_lifecycle_syncs: None,
            service_syncs: None,
        };
        let table: [(&str, &[&str], Workers); 7] = [
            ("not given", &[], none),
            (
                "FW-321 the status loop borrows",
                &["--concurrent-node-syncs=5"],
                Workers { node_syncs: Some(5), node_status_updates: Some(5), ..none },
            ),
            (
                "FW-321 an explicit zero borrows too",
                &["--concurrent-node-syncs=5", "--concurrent-node-status-updates=0"],
                Workers { node_syncs: Some(5), node_status_updates: Some(5), ..none },
            ),
            (
                "FW-322",
                &["--concurrent-node-syncs=1", "--concurrent-node-status-updates=2"],
                Workers { node_syncs: Some(1), node_status_updates: Some(2), ..none },
            ),
            (
                "FW-133",
                &["--concurrent-node-lifecycle-syncs=5"],
                Workers { node_lifecycle_syncs: Some(5), ..none },
            ),
            ("services", &["--concurrent-service-syncs=2"], Workers { service_syncs: Some(2), ..none }),
            (
                "the default, but given",
                &["--concurrent-service-syncs=1"],
                Workers { service_syncs: Some(1), ..none },
            ),
        ];
        for (case, args, want) in table {
            let (got, mistakes) = read(args);
            assert_eq!((got.workers, mistakes), (want, vec![]), "{case}");
        }
    }

    #[test]
    fn too_few_workers_are_refused() {
        let low = |flag: &str, n: i32| format!("--{flag} is {n}; it must be at least 1");
        let args = [
            "--concurrent-node-syncs=0",
            "--concurrent-node-status-updates=-1",
            "--concurrent-node-lifecycle-syncs=0",
            "--concurrent-service-syncs=-5",
        ];
        let want = [
            low("concurrent-node-syncs", 0),
            "--concurrent-node-status-updates is -1; it must be 0 (as many as --concurrent-node-syncs) or more"
                .to_owned(),
            low("concurrent-node-lifecycle-syncs", 0),
            low("concurrent-service-syncs", -5),
        ];
        assert_eq!(read(&args).1, want, "FW-134 FW-323 FW-324");
    }

    #[test]
    fn periods_are_positive() {
        let (defaults, _) = read(&[]);
        for flag in ["node-status-update-frequency", "node-monitor-period", "route-reconciliation-period"] {
            for (value, shown) in [("0s", "0s"), ("-5s", "-5s"), ("0", "0s")] {
                let (got, mistakes) = read(&[&format!("--{flag}={value}")]);
                assert_eq!(mistakes, [format!("--{flag} is \"{shown}\"; it must be more than 0s")]);
                assert_eq!(got, defaults, "{flag}");
            }
        }
        for flag in ["controller-start-interval", "min-resync-period"] {
            assert_eq!(read(&[&format!("--{flag}=0")]).1, Vec::<String>::new());
            let want = format!("--{flag} is \"-1s\"; it must not be negative");
            assert_eq!(read(&[&format!("--{flag}=-1s")]).1, [want]);
        }
        let seconds = |span: Duration| span.as_secs();
        let (got, _) =
            read(&["--node-monitor-period=1m", "--min-resync-period=1h", "--controller-start-interval=2s"]);
        assert_eq!(
            (seconds(got.node_monitor_period), seconds(got.min_resync_period), seconds(got.start_interval)),
            (60, 3_600, 2)
        );
    }

    #[test]
    fn the_cap_of_deletions_keeps_its_window() {
        use cloudberth_core::decide::lifecycle::Share;
        assert_eq!(read(&[]).0.deletions, Cap::LAW);
        let (got, _) = read(&["--max-node-deletions=3"]);
        assert_eq!(got.deletions, Cap { share: Share::Count(3), window: Cap::LAW.window });
    }
}
