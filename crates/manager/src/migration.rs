//! The file of `--leader-migration-config`: which controllers move from one program to another, behind a second lock.

use cloudberth_core::{decide::selection::ControllerLeader, error::Error};
use cloudberth_http::yaml::{self, Value};

/// The kind of lock that exists.
pub const LEASES: &str = "leases";
/// The kind of lock that old files may name; it can be read, but nothing can be locked with it any more.
pub const ENDPOINTS: &str = "endpoints";

const GROUP: &str = "controllermanager.config.k8s.io";
const KIND: &str = "LeaderMigrationConfiguration";

/// Which controllers move, and behind which lock.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Migration {
    /// The name of the second lock.
    pub leader_name: String,
    /// What the lock is made of.
    pub resource_lock: String,
    /// The controllers that move.
    pub controller_leaders: Vec<ControllerLeader>,
}

impl Migration {
    /// What holds if migration is on and no file is given. Two of the names are not those that controllers have today,
    /// so only the node-lifecycle controller moves.
    pub fn built_in() -> Self {
        let leader = |name: &str| ControllerLeader { name: name.to_owned(), component: "*".to_owned() };
        Self {
            leader_name: "cloud-provider-extraction-migration".to_owned(),
            resource_lock: LEASES.to_owned(),
            controller_leaders: ["route-controller", "service-controller", "cloud-node-lifecycle-controller"]
                .map(leader)
                .into(),
        }
    }

    /// Reads a file. Unknown fields and fields given twice are errors: a slip here would run a controller twice.
    pub fn decode(text: &str) -> Result<Self, Vec<Error>> {
        let read = yaml::read(text, |file| {
            let (api_version, kind) = (file.optional("apiVersion"), file.optional("kind"));
            let (version, name) = (api_version.text().unwrap_or_default(), kind.text().unwrap_or_default());
            let known = version.strip_prefix(GROUP).and_then(|rest| rest.strip_prefix('/'));
            let resource_lock = match (name.as_str(), known) {
                (KIND, Some("v1alpha1" | "v1beta1")) => {
                    file.optional("resourceLock").text().unwrap_or_default()
                }
                (KIND, Some("v1")) => LEASES.to_owned(),
                _ => {
                    kind.wrong(format!(
                        "it is {name:?} and apiVersion is {version:?}; they must be {KIND} and {GROUP}/v1 (or \
                         v1beta1, v1alpha1)"
                    ));
                    return None;
                }
            };
            let leader = |entry: Value<'_>| {
                entry.fields(|entry| {
                    let mut text = |name| entry.optional(name).text().unwrap_or_default();
                    Some(ControllerLeader { name: text("name"), component: text("component") })
                })
            };
            Some(Self {
                leader_name: file.optional("leaderName").text().unwrap_or_default(),
                resource_lock,
                controller_leaders: file.optional("controllerLeaders").items(leader),
            })
        });
        read.map_err(|mistakes| mistakes.iter().map(|why| Error::user_input(why.to_string())).collect())
    }

    /// Every mistake in what was read, each naming the field.
    pub fn mistakes(&self) -> Vec<Error> {
        let mut wrong = Vec::new();
        if self.leader_name.is_empty() {
            wrong.push("leaderName is empty; it must be the name of the second lock".to_owned());
        }
        if ![LEASES, ENDPOINTS].contains(&self.resource_lock.as_str()) {
            wrong.push(format!("resourceLock is {:?}; it must be {LEASES}", self.resource_lock));
        }
        for (at, leader) in self.controller_leaders.iter().enumerate() {
            if leader.name.is_empty() {
                wrong.push(format!(
                    "controllerLeaders[{at}].name is empty; it must be the name of a controller"
                ));
            }
            if leader.component.is_empty() {
                wrong.push(format!(
                    "controllerLeaders[{at}].component is empty; it must be the name of a program, or *"
                ));
            }
        }
        wrong.into_iter().map(Error::user_input).collect()
    }

    /// Why no lock can be made of what was read, although it is well formed.
    pub fn lock_mistake(&self) -> Option<Error> {
        (self.resource_lock == ENDPOINTS).then(|| {
            Error::user_input(format!(
                "resourceLock is {ENDPOINTS:?}; nothing is locked with it any more, use {LEASES}"
            ))
        })
    }
}

#[cfg(test)]
mod tests {
    use cloudberth_core::decide::selection::{CONTROLLERS, Placement, placement};

    use super::*;

    const V1: &str = "apiVersion: controllermanager.config.k8s.io/v1\nkind: LeaderMigrationConfiguration\n";
    const BETA: &str =
        "apiVersion: controllermanager.config.k8s.io/v1beta1\nkind: LeaderMigrationConfiguration\n";

    fn texts(errors: &[Error]) -> Vec<&str> {
        errors.iter().map(Error::message).collect()
    }

    #[test]
    fn a_file_is_read_strictly() {
        let table = [
            ("FW-329 empty", String::new()),
            ("FW-329 only blanks", "\n---\n".to_owned()),
            ("FW-329 wrong kind", V1.replace("LeaderMigration", "KubeControllerManager")),
            ("FW-329 wrong group", V1.replace("controllermanager.config", "config")),
            ("FW-329 unknown version", V1.replace("/v1", "/v2")),
            ("FW-329 no kind", "apiVersion: controllermanager.config.k8s.io/v1\nleaderName: a\n".to_owned()),
            ("FW-329 unknown field", format!("{V1}leaderName: a\nleader: b\n")),
            (
                "FW-329 unknown field of an entry",
                format!("{V1}controllerLeaders: [{{name: a, program: b}}]\n"),
            ),
            ("FW-329 duplicate field", format!("{V1}leaderName: a\nleaderName: b\n")),
            ("FW-329 duplicate field of an entry", format!("{V1}controllerLeaders:\n- name: a\n  name: b\n")),
            ("FW-329 a field that v1 lacks", format!("{V1}leaderName: a\nresourceLock: leases\n")),
            ("FW-329 another spelling", format!("{V1}leadername: a\n")),
            ("a second document", format!("{V1}leaderName: a\n---\n{V1}leaderName: b\n")),
            ("no mapping", "- a\n".to_owned()),
            ("no YAML", "{".to_owned()),
        ];
        for (case, text) in table {
            assert!(Migration::decode(&text).is_err(), "{case}: {:?}", Migration::decode(&text));
        }
        let kind = Migration::decode("apiVersion: v1\nkind: Pod\nspec: {}\n").unwrap_err();
        assert!(
            kind.len() == 1 && kind[0].message().starts_with("line 2, field kind: it is \"Pod\""),
            "{kind:?}"
        );
        let slips = "leadername: a\nresourceLock: leases\ncontrollerLeaders:\n- name: a\n  name: b\n";
        let wrong = Migration::decode(&format!("{V1}{slips}")).unwrap_err();
        let want = [
            "line 3, field leadername: there is no such field; did you mean leaderName?",
            "line 4, field resourceLock: there is no such field",
            "line 7, field controllerLeaders[0].name: it is given already on line 6",
        ];
        assert_eq!(texts(&wrong), want);
    }

    #[test]
    fn all_versions_are_read() {
        let body = "leaderName: lock\ncontrollerLeaders:\n- name: service-lb-controller\n  component: '*'\n";
        let want = Migration {
            leader_name: "lock".to_owned(),
            resource_lock: "leases".to_owned(),
            controller_leaders: vec![ControllerLeader {
                name: "service-lb-controller".to_owned(),
                component: "*".to_owned(),
            }],
        };
        let alpha = BETA.replace("v1beta1", "v1alpha1");
        let table = [
            ("FW-330 v1 has no resourceLock", format!("{V1}{body}")),
            ("v1beta1", format!("{BETA}{body}resourceLock: leases\n")),
            ("v1alpha1", format!("{alpha}{body}resourceLock: leases\n")),
            (
                "as JSON",
                "{\"apiVersion\": \"controllermanager.config.k8s.io/v1\", \"kind\": \"LeaderMigrationConfiguration\", \
                 \"leaderName\": \"lock\", \"controllerLeaders\": [{\"name\": \"service-lb-controller\", \
                 \"component\": \"*\"}]}"
                    .to_owned(),
            ),
        ];
        for (case, text) in table {
            let got = Migration::decode(&text).unwrap();
            assert_eq!(got, want, "{case}");
            assert_eq!(got.mistakes(), [], "{case}");
        }
    }

    #[test]
    fn what_was_read_is_checked_all_at_once() {
        let read = |text: &str| Migration::decode(&format!("{BETA}{text}")).unwrap();
        let no_name = "leaderName is empty; it must be the name of the second lock";
        let bad_lock = "resourceLock is \"configmaps\"; it must be leases";
        let table: [(&str, &str, &[&str]); 6] = [
            ("FW-331 no name", "resourceLock: leases\n", &[no_name]),
            ("FW-331 bad lock", "leaderName: a\nresourceLock: configmaps\n", &[bad_lock]),
            ("FW-331 no lock", "leaderName: a\n", &["resourceLock is \"\"; it must be leases"]),
            ("FW-332 empty list", "leaderName: a\nresourceLock: leases\ncontrollerLeaders: []\n", &[]),
            ("FW-332 endpoints", "leaderName: a\nresourceLock: endpoints\n", &[]),
            (
                "everything",
                "resourceLock: configmaps\ncontrollerLeaders: [{name: a}, {component: b}]\n",
                &[
                    no_name,
                    bad_lock,
                    "controllerLeaders[0].component is empty; it must be the name of a program, or *",
                    "controllerLeaders[1].name is empty; it must be the name of a controller",
                ],
            ),
        ];
        for (case, text, want) in table {
            assert_eq!(texts(&read(text).mistakes()), want, "{case}");
        }
        assert!(read("leaderName: a\nresourceLock: endpoints\n").lock_mistake().is_some());
        assert_eq!(read("leaderName: a\nresourceLock: leases\n").lock_mistake(), None);
    }

    #[test]
    fn the_built_in_file_moves_the_lifecycle_controller() {
        let built_in = Migration::built_in();
        assert_eq!((built_in.mistakes(), built_in.lock_mistake()), (vec![], None));
        let moved: Vec<_> = CONTROLLERS
            .iter()
            .filter(|one| placement(one.name, &built_in.controller_leaders) == Placement::MigrationLock)
            .map(|one| one.name)
            .collect();
        assert_eq!(moved, ["cloud-node-lifecycle-controller"], "FW-333");
        assert_eq!(built_in.leader_name, "cloud-provider-extraction-migration", "FW-333");
    }
}
