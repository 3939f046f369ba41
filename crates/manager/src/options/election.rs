//! How the leader is found.

use std::{path::Path, time::Duration};

use cloudberth_core::{decide::election, error::Error};

use super::checks::{Checks, file};
use crate::{flags::Flags, migration::Migration};

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Election {
    pub namespace: String,
    pub name: String,
    /// How long others leave an unchanged lease alone.
    pub lease_duration: Duration,
    /// How long a leader tries to renew.
    pub renew_deadline: Duration,
    pub retry_period: Duration,
    /// The second lock, if controllers move from another program.
    pub migration: Option<Migration>,
}

impl Election {
    pub fn config(&self, identity: &str) -> election::Config {
        election::Config {
            namespace: self.namespace.clone(),
            name: self.name.clone(),
            identity: identity.to_owned(),
            lease_duration: self.lease_duration,
            renew_deadline: self.renew_deadline,
            retry_period: self.retry_period,
        }
    }

    /// The election for the second lock, which lies beside the first.
    pub fn migration_config(&self, identity: &str) -> Option<election::Config> {
        let name = self.migration.as_ref()?.leader_name.clone();
        Some(election::Config { name, ..self.config(identity) })
    }
}

/// Reads a file that a flag names; the error says why it cannot be read.
pub type ReadFile<'a> = &'a dyn Fn(&Path) -> Result<String, String>;

pub(super) fn election(flags: &Flags, read: ReadFile<'_>, checks: &mut Checks) -> Option<Election> {
    if !flags.leader_elect.get() {
        if *flags.enable_leader_migration.get() {
            checks.notice(&flags.enable_leader_migration, "has no effect: --leader-elect is off");
        }
        return None;
    }
    let lock = &flags.leader_elect_resource_lock;
    if lock.get() != "leases" {
        checks.wrong(lock, "resourceLock value must be \"leases\"");
    }
    for flag in [&flags.leader_elect_resource_name, &flags.leader_elect_resource_namespace] {
        if flag.get().is_empty() {
            checks.wrong(flag, "it must not be empty while --leader-elect is on");
        }
    }
    let election = Election {
        namespace: flags.leader_elect_resource_namespace.get().clone(),
        name: flags.leader_elect_resource_name.get().clone(),
        lease_duration: checks.duration(&flags.leader_elect_lease_duration),
        renew_deadline: checks.duration(&flags.leader_elect_renew_deadline),
        retry_period: checks.duration(&flags.leader_elect_retry_period),
        migration: migration(flags, read, checks),
    };
    checks.mistakes.extend(election.config("this replica").mistakes());
    Some(election)
}

fn migration(flags: &Flags, read: ReadFile<'_>, checks: &mut Checks) -> Option<Migration> {
    let flag = &flags.leader_migration_config;
    let path = file(flag);
    match (*flags.enable_leader_migration.get(), path) {
        (false, None) => None,
        (false, Some(_)) => {
            checks.notice(flag, "has no effect: --enable-leader-migration is off");
            None
        }
        (true, None) => Some(Migration::built_in()),
        (true, Some(path)) => {
            let text = read(&path).map_err(|why| vec![Error::user_input(why)]);
            let file = text.and_then(|text| Migration::decode(&text));
            let wrong = match &file {
                Ok(file) => file.mistakes().into_iter().chain(file.lock_mistake()).collect(),
                Err(wrong) => wrong.clone(),
            };
            let doing = format!("{}={}", flag.flag(), path.display());
            checks.mistakes.extend(wrong.into_iter().map(|why| why.context(&doing)));
            file.ok()
        }
    }
}

#[cfg(test)]
mod tests {
    use super::{
        super::tests::{options, options_with_file},
        *,
    };

    const CLOUD: &str = "--cloud-provider=cloudscale";
    const FILE: &str = "apiVersion: controllermanager.config.k8s.io/v1\nkind: LeaderMigrationConfiguration\n\
                        leaderName: lock\n";

    #[test]
    fn the_defaults_are_those_of_every_component() {
        let election = options(&[CLOUD]).options.election.unwrap();
        assert_eq!(election.config("me"), election::Config::with_defaults("me"), "FW-310");
        assert_eq!((election.migration.as_ref(), election.migration_config("me")), (None, None));
    }

    #[test]
    fn the_lock_is_a_lease() {
        let lock = "--leader-elect-resource-lock=configmapsleases";
        let want =
            "--leader-elect-resource-lock is \"configmapsleases\"; resourceLock value must be \"leases\"";
        assert_eq!(options(&[CLOUD, lock]).texts(), [want], "FW-314");
        let off = options(&[CLOUD, lock, "--leader-elect=false"]);
        assert_eq!(off.texts(), Vec::<String>::new(), "FW-314 election off");
        assert_eq!(off.options.election, None);
    }

    #[test]
    fn all_mistakes_are_named() {
        let args = [
            CLOUD,
            "--leader-elect-resource-name=",
            "--leader-elect-lease-duration=-15s",
            "--leader-elect-renew-deadline=20s",
            "--leader-elect-retry-period=0",
        ];
        let want = [
            "--leader-elect-resource-name is \"\"; it must not be empty while --leader-elect is on",
            "--leader-elect-lease-duration is \"-15s\"; it must not be negative",
            "--leader-elect-retry-period is 0s; it must be more",
            "--leader-elect-lease-duration is 15s; it must be more than --leader-elect-renew-deadline, which is 20s",
        ];
        assert_eq!(options(&args).texts(), want);
    }

    #[test]
    fn a_lease_that_would_never_allow_a_write_is_refused() {
        let flags = ["--leader-elect-lease-duration=3s", "--leader-elect-renew-deadline=2500ms"];
        let want = "--leader-elect-lease-duration is 3s; with a --leader-elect-retry-period of 2s it must be at least 6s, \
                    because nothing is written in the last 3s of it";
        assert_eq!(options(&[&[CLOUD][..], &flags].concat()).texts(), [want], "L9-529");
        let enough =
            options(&[CLOUD, "--leader-elect-lease-duration=6s", "--leader-elect-renew-deadline=5s"]);
        assert_eq!(enough.texts(), Vec::<String>::new(), "L9-529 what is said to be enough is enough");
    }

    #[test]
    fn migration_needs_both_switches() {
        let on = "--enable-leader-migration";
        let file = "--leader-migration-config=/etc/migration.yaml";
        let migration = |args: &[&str]| {
            let read = options_with_file(&[&[CLOUD], args].concat(), "/etc/migration.yaml", FILE);
            assert_eq!(read.texts(), Vec::<String>::new(), "{args:?}");
            let notices: Vec<_> = read.notices.iter().map(|notice| notice.flag).collect();
            (read.options.election.and_then(|election| election.migration), notices)
        };
        assert_eq!(migration(&[on]), (Some(Migration::built_in()), vec![]), "FW-333");
        assert_eq!(migration(&[on, "--leader-elect=false"]), (None, vec!["enable-leader-migration"]));
        assert_eq!(migration(&[file]), (None, vec!["leader-migration-config"]));
        let (from_file, _) = migration(&[on, file]);
        assert_eq!(from_file.unwrap().leader_name, "lock");
        let read = options_with_file(&[CLOUD, on, file], "/etc/migration.yaml", FILE);
        let election = read.options.election.unwrap();
        let second = election.migration_config("me").unwrap();
        assert_eq!((second.namespace.as_str(), second.name.as_str()), ("kube-system", "lock"));
    }

    #[test]
    fn mistakes_in_the_file_name_it() {
        let args = [CLOUD, "--enable-leader-migration", "--leader-migration-config=/m"];
        let texts = |path: &str, file: &str| options_with_file(&args, path, file).texts();
        assert_eq!(texts("/other", FILE), ["--leader-migration-config=/m: no such file"]);
        let empty = FILE.replace("leaderName: lock\n", "");
        assert_eq!(
            texts("/m", &empty),
            ["--leader-migration-config=/m: leaderName is empty; it must be the name of the second lock"]
        );
        let old = FILE.replace("/v1", "/v1beta1");
        assert_eq!(
            texts("/m", &format!("{old}resourceLock: endpoints\n")),
            [
                "--leader-migration-config=/m: resourceLock is \"endpoints\"; nothing is locked with it any more, use \
              leases"
            ]
        );
        assert_eq!(texts("/m", &format!("{FILE}more: 1\n")).len(), 1, "FW-329");
    }
}
