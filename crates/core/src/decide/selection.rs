//! Which controllers run, with how many workers, and behind which lock.
//!
//! The lists of `--controllers` and `--webhooks` are read alike: the first entry that names a thing decides, `-name`
//! switches it off, `*` stands for everything that is on by default.

use crate::error::{Error, Result};

/// A controller and the names that it goes by.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Controller {
    /// The name in `--controllers`, in health checks and in migration files.
    pub name: &'static str,
    /// The older, shorter name that `--controllers` also takes.
    pub alias: &'static str,
    /// The service account and the suffix of the user agent.
    pub client: &'static str,
    /// The label in `running_managed_controllers`.
    pub metric: &'static str,
}

/// The controllers, in the order in which they are started.
pub const CONTROLLERS: [Controller; 4] = [
    Controller {
        name: "cloud-node-controller",
        alias: "cloud-node",
        client: "node-controller",
        metric: "cloud-node",
    },
    Controller {
        name: "cloud-node-lifecycle-controller",
        alias: "cloud-node-lifecycle",
        client: "node-controller",
        metric: "cloud-node-lifecycle",
    },
    Controller {
        name: "service-lb-controller",
        alias: "service",
        client: "service-controller",
        metric: "service",
    },
    Controller { name: "node-route-controller", alias: "route", client: "route-controller", metric: "route" },
];

/// An older name and the one that it stands for.
pub type Alias<'a> = (&'a str, &'a str);

/// The aliases of [`CONTROLLERS`].
pub fn aliases() -> Vec<Alias<'static>> {
    CONTROLLERS.iter().map(|controller| (controller.alias, controller.name)).collect()
}

/// The list with every alias replaced by what it stands for, a leading `-` kept.
pub fn resolve(list: &[String], aliases: &[Alias<'_>]) -> Vec<String> {
    let full = |name: &str| {
        aliases.iter().find(|(alias, _)| *alias == name).map_or(name, |(_, name)| *name).to_owned()
    };
    list.iter()
        .map(|entry| match entry.strip_prefix('-') {
            Some(name) => format!("-{}", full(name)),
            None => full(entry),
        })
        .collect()
}

/// Whether the (resolved) list switches `name` on.
///
/// The first entry that names it decides. With none, it runs if `*` stands anywhere and it is `on_by_default`.
/// An empty list switches everything off.
pub fn is_enabled(list: &[String], name: &str, on_by_default: bool) -> bool {
    for entry in list {
        if entry == name {
            return true;
        }
        if entry.strip_prefix('-') == Some(name) {
            return false;
        }
    }
    on_by_default && list.iter().any(|entry| entry == "*")
}

/// Every entry that names nothing known, each as one error; `kind` is `controllers` or `webhooks`.
pub fn unknown_names(list: &[String], known: &[&str], aliases: &[Alias<'_>], kind: &str) -> Vec<Error> {
    list.iter()
        .filter(|entry| *entry != "*")
        .map(|entry| entry.strip_prefix('-').unwrap_or(entry))
        .filter(|name| !known.contains(name) && !aliases.iter().any(|(alias, _)| alias == name))
        .map(|name| Error::user_input(format!("{name:?} is not in the list of known {kind}")))
        .collect()
}

/// The controllers that `--controllers` asks for, or every mistake in it.
pub fn controllers(list: &[String]) -> Result<Vec<Controller>, Vec<Error>> {
    let known = CONTROLLERS.map(|controller| controller.name);
    let wrong = unknown_names(list, &known, &aliases(), "controllers");
    if !wrong.is_empty() {
        return Err(wrong);
    }
    let list = resolve(list, &aliases());
    Ok(CONTROLLERS.into_iter().filter(|controller| is_enabled(&list, controller.name, true)).collect())
}

/// The webhooks of `registered` that `--webhooks` asks for, or every mistake in it. An empty list asks for none.
pub fn webhooks<'a>(list: &[String], registered: &[&'a str]) -> Result<Vec<&'a str>, Vec<Error>> {
    let wrong = unknown_names(list, registered, &[], "webhooks");
    if !wrong.is_empty() {
        return Err(wrong);
    }
    Ok(registered.iter().copied().filter(|name| is_enabled(list, name, true)).collect())
}

/// How many nodes the status loop works on at once: `--concurrent-node-status-updates`, or
/// `--concurrent-node-syncs` where that is not set.
pub const fn status_workers(status_updates: i32, syncs: i32) -> i32 {
    if status_updates > 0 { status_updates } else { syncs }
}

/// Every mistake in the worker counts of the node controller.
pub fn node_worker_mistakes(syncs: i32, status_updates: i32) -> Vec<Error> {
    let mut wrong = Vec::from_iter(worker_mistake("--concurrent-node-syncs", syncs));
    if status_updates < 0 {
        wrong.push(Error::user_input(format!(
            "--concurrent-node-status-updates is {status_updates}; it must be 0 (as many as \
             --concurrent-node-syncs) or more"
        )));
    }
    wrong
}

/// The mistake in the worker count that `flag` sets.
pub fn worker_mistake(flag: &str, workers: i32) -> Option<Error> {
    (workers < 1).then(|| Error::user_input(format!("{flag} is {workers}; it must be at least 1")))
}

/// The name of this program in migration files.
pub const COMPONENT: &str = "cloud-controller-manager";

/// One entry of a migration file: which program runs a controller.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ControllerLeader {
    /// The controller's canonical name; aliases are not understood here.
    pub name: String,
    /// The program, or `*` for whichever holds the migration lock.
    pub component: String,
}

/// Behind which lock a controller runs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Placement {
    /// Behind this program's own lock.
    MainLock,
    /// Behind the lock that it shares with the program that ran the controller before.
    MigrationLock,
    /// Not here: another program runs it.
    NotRun,
}

/// Behind which lock this program runs the controller called `name`. The first entry that names it decides.
pub fn placement(name: &str, leaders: &[ControllerLeader]) -> Placement {
    match leaders.iter().find(|leader| leader.name == name) {
        None => Placement::MainLock,
        Some(leader) if leader.component == COMPONENT || leader.component == "*" => Placement::MigrationLock,
        Some(_) => Placement::NotRun,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn list(entries: &[&str]) -> Vec<String> {
        entries.iter().map(|&entry| entry.to_owned()).collect()
    }

    fn names(entries: &[&str]) -> Result<Vec<&'static str>, Vec<String>> {
        match controllers(&list(entries)) {
            Ok(on) => Ok(on.iter().map(|controller| controller.name).collect()),
            Err(wrong) => Err(wrong.iter().map(ToString::to_string).collect()),
        }
    }

    #[test]
    fn all_unknown_names_are_refused_at_once() {
        let wrong = names(&["*", "cloud-node", "nodes", "-routes", "-service"]).unwrap_err();
        let says = |name: &str| format!("{name:?} is not in the list of known controllers");
        assert_eq!(wrong, [says("nodes"), says("routes")], "FW-315");
        assert_eq!(names(&["-*"]).unwrap_err(), [says("*")]);
        assert_eq!(names(&[""]).unwrap_err(), [says("")]);
    }

    #[test]
    fn aliases_are_accepted_with_and_without_a_dash() {
        let [node, lifecycle, service, route] = CONTROLLERS.map(|controller| controller.name);
        let table: [(&str, &[&str], &[&str]); 7] = [
            ("FW-316 alias", &["service"], &[service]),
            ("FW-316 alias switched off", &["*", "-service", "-cloud-node"], &[lifecycle, route]),
            ("full names", &["node-route-controller", "cloud-node-controller"], &[node, route]),
            ("everything", &["*"], &[node, lifecycle, service, route]),
            ("an empty list", &[], &[]),
            (
                "the first entry decides: off",
                &["*", "-route", "node-route-controller"],
                &[node, lifecycle, service],
            ),
            ("the first entry decides: on", &["node-route-controller", "-route"], &[route]),
        ];
        for (case, entries, want) in table {
            assert_eq!(names(entries).unwrap(), want, "{case}");
        }
    }

    #[test]
    fn resolving_keeps_order_and_dashes() {
        let colours = [("crimson", "red"), ("pink", "red"), ("ultramarine", "blue")];
        let got = resolve(&list(&["green", "-crimson", "ultramarine", "-pink"]), &colours);
        assert_eq!(got, ["green", "-red", "blue", "-red"], "FW-317");
    }

    #[test]
    fn an_entry_or_the_star_switches_a_name_on() {
        let table: [(&str, &[&str], &str, bool, bool); 8] = [
            ("FW-318 listed", &["alpha", "bravo", "-charlie"], "bravo", true, true),
            ("FW-318 switched off", &["alpha", "bravo", "-charlie"], "charlie", true, false),
            ("FW-318 not listed", &["alpha", "bravo", "-charlie"], "foxtrot", true, false),
            ("FW-319 on by default", &["*"], "alpha", true, true),
            ("FW-319 off by default", &["*"], "delta", false, false),
            ("FW-320 the star", &["*", "-charlie"], "alpha", true, true),
            ("FW-320 the star, but switched off", &["*", "-charlie"], "charlie", true, false),
            ("off by default, but named", &["*", "delta"], "delta", false, true),
        ];
        for (case, entries, name, on_by_default, want) in table {
            assert_eq!(is_enabled(&list(entries), name, on_by_default), want, "{case}");
        }
    }

    #[test]
    fn webhooks_are_chosen_like_controllers() {
        let table: [(&[&str], &[&str]); 6] = [
            (&["a", "b"], &["a", "b"]),
            (&["*"], &["a", "b"]),
            (&["a"], &["a"]),
            (&["a", "-b"], &["a"]),
            (&["-b"], &[]),
            (&[], &[]),
        ];
        for (entries, want) in table {
            assert_eq!(webhooks(&list(entries), &["a", "b"]).unwrap(), want, "FW-325 {entries:?}");
        }
        let wrong = webhooks(&list(&["c", "-d", "a"]), &["a", "b"]).unwrap_err();
        let texts: Vec<_> = wrong.iter().map(Error::message).collect();
        assert_eq!(
            texts,
            ["\"c\" is not in the list of known webhooks", "\"d\" is not in the list of known webhooks"]
        );
    }

    #[test]
    fn the_status_loop_borrows_the_sync_count() {
        for (case, updates, syncs, want) in
            [("FW-321", 0, 5, 5), ("FW-322", 2, 1, 2), ("negative", -3, 4, 4), ("one", 1, 7, 1)]
        {
            assert_eq!(status_workers(updates, syncs), want, "{case}");
        }
    }

    #[test]
    fn worker_counts_are_checked_and_named() {
        let syncs = |n: i32| format!("--concurrent-node-syncs is {n}; it must be at least 1");
        let updates = "--concurrent-node-status-updates is -1; it must be 0 (as many as \
                       --concurrent-node-syncs) or more";
        let table = [
            ("FW-323 negative", (-5, 0), vec![syncs(-5)]),
            ("FW-323 none", (0, 0), vec![syncs(0)]),
            ("FW-323 negative updates", (1, -1), vec![updates.to_owned()]),
            ("FW-323 good", (5, 0), vec![]),
            ("FW-323 good, both set", (5, 5), vec![]),
            ("both wrong, both said", (0, -1), vec![syncs(0), updates.to_owned()]),
        ];
        for (case, (syncs, updates), want) in table {
            let got: Vec<_> = node_worker_mistakes(syncs, updates).iter().map(ToString::to_string).collect();
            assert_eq!(got, want, "{case}");
        }
        for (case, syncs, good) in
            [("FW-324", 0, false), ("FW-134", -5, false), ("FW-133", 5, true), ("the least", 1, true)]
        {
            let mistake = worker_mistake("--concurrent-node-lifecycle-syncs", syncs).map(|e| e.to_string());
            let text = format!("--concurrent-node-lifecycle-syncs is {syncs}; it must be at least 1");
            assert_eq!(mistake, (!good).then_some(text), "{case}");
        }
    }

    #[test]
    fn controller_names_have_the_agreed_form() {
        let has_the_form = |name: &str| {
            let stem = name.strip_suffix("-controller").unwrap_or_default();
            stem.starts_with(|c: char| c.is_ascii_lowercase())
                && stem.chars().all(|c| c == '-' || c.is_ascii_lowercase())
        };
        for controller in CONTROLLERS {
            assert!(has_the_form(controller.name), "FW-326 {}", controller.name);
            assert!(!has_the_form(controller.alias), "FW-326 {}", controller.alias);
        }
    }

    #[test]
    fn the_names_are_those_that_dashboards_and_roles_use() {
        let rows: Vec<_> = CONTROLLERS.iter().map(|c| (c.name, c.alias, c.client, c.metric)).collect();
        assert_eq!(
            rows,
            [
                ("cloud-node-controller", "cloud-node", "node-controller", "cloud-node"),
                (
                    "cloud-node-lifecycle-controller",
                    "cloud-node-lifecycle",
                    "node-controller",
                    "cloud-node-lifecycle"
                ),
                ("service-lb-controller", "service", "service-controller", "service"),
                ("node-route-controller", "route", "route-controller", "route"),
            ]
        );
    }

    #[test]
    fn a_migration_file_moves_only_the_names_that_it_lists() {
        let owned_by = |component: &str| {
            ["service-lb-controller", "node-route-controller"]
                .map(|name| ControllerLeader { name: name.to_owned(), component: component.to_owned() })
        };
        let table = [
            (
                "FW-327 listed, run elsewhere",
                "kube-controller-manager",
                "service-lb-controller",
                Placement::NotRun,
            ),
            ("FW-327 not listed", "kube-controller-manager", "cloud-node-controller", Placement::MainLock),
            ("FW-328 ours", COMPONENT, "node-route-controller", Placement::MigrationLock),
            ("FW-328 anybody's", "*", "service-lb-controller", Placement::MigrationLock),
            ("FW-328 not listed", "*", "cloud-node-controller", Placement::MainLock),
            ("an alias is not understood", "*", "service", Placement::MainLock),
        ];
        for (case, component, name, want) in table {
            assert_eq!(placement(name, &owned_by(component)), want, "{case}");
        }
    }
}
