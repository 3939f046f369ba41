//! A cluster with a simulated cloud and managers, and the steps that their scenarios share.

use std::collections::BTreeSet;
use std::path::PathBuf;
use std::time::Duration;

use cloudberth_e2e::{
    Account, Cluster, Manager, Program, Row, container_of, eventually, manifests_of, shipped,
};
use serde_json::{Value, json};

use crate::clouds::cloudscale::Cloudscale;
use crate::simulated_cloud::{Balancer, CardCloud, SimulatedCloud};
use crate::{Fallible, Outcome, ledger};

/// Nothing here takes longer, also on a busy machine. It ends a hang and measures nothing.
pub(crate) const SOON: Duration = Duration::from_secs(120);
pub(crate) const UNINITIALISED: &str = "node.cloudprovider.kubernetes.io/uninitialized";
pub(crate) const LEASE: &str =
    "/apis/coordination.k8s.io/v1/namespaces/kube-system/leases/cloud-controller-manager";

/// Short, so that a takeover is short as well. On a busy machine a leader has 6 s to renew, and then 4 s to notice that it
/// did not before another leads.
const ELECTION: [&str; 3] = [
    "--leader-elect-lease-duration=10s",
    "--leader-elect-renew-deadline=6s",
    "--leader-elect-retry-period=500ms",
];
/// After this many renewals without another write a manager counts as idle. A slow manager renews late as well, so
/// renewals are a better measure than seconds.
const REST: usize = 4;

/// An event that ends a scenario: the kind and name of the object, the reason, and how often.
pub(crate) type End<'a> = (&'a str, &'a str, &'a str, u64);

/// A cluster in which managers work. Scenarios about the framework have cloudscale.ch under it.
pub(crate) struct Fixture<'w, C = Cloudscale> {
    pub(crate) cluster: &'w Cluster,
    pub(crate) cloud: C,
    pub(crate) account: Account,
    /// The API server was restarted: until it has read the roles, it refuses everything.
    pub(crate) forgetful: bool,
}

impl<'w> Fixture<'w> {
    /// A fixture for a scenario that is about the framework and not about a cloud.
    pub(crate) async fn new(cluster: &'w Cluster, instances: &[&str]) -> Fallible<Self> {
        Self::at(cluster, instances).await
    }
}

impl<'w, C: CardCloud> Fixture<'w, C> {
    /// A fixture whose account has the rights of the cloud's manifest, and no others.
    pub(crate) async fn at(cluster: &'w Cluster, instances: &[&str]) -> Fallible<Self> {
        let cloud = C::over(cluster.dir(), instances).await?;
        Fixture::with(cluster, cloud, &manifests_of(&[C::NAME])?).await
    }

    /// What leads a manager to the cloud.
    fn flags(&self) -> Vec<String> {
        let config = self.cloud.config().map(|file| format!("--cloud-config={}", file.display()));
        [format!("--cloud-provider={}", C::NAME)].into_iter().chain(config).collect()
    }

    /// A manager with these further flags.
    pub(crate) async fn manager(&self, name: &str, flags: &[&str]) -> Fallible<Manager> {
        let all: Vec<String> = self.flags().into_iter().chain(flags.iter().map(owned)).collect();
        self.manager_with(name, &all, &self.cloud.env()).await
    }

    /// A manager as a kubelet starts it from the manifest: with its arguments, and with the credentials in files.
    pub(crate) async fn manager_as_installed(&self) -> Fallible<Manager> {
        let container = container_of(C::NAME)?;
        assert_eq!(container.command, ["cloudberth"]);
        let env = container.env_under(self.cluster.dir(), &self.cloud.env())?;
        let secrets = self.cloud.secrets();
        let bare = env.iter().find(|(_, value)| secrets.contains(value));
        assert_eq!(bare, None, "a credential in a variable cannot change while the program runs");
        self.start((shipped()?, container.args), &env).await
    }

    /// A manager under the name of the program that it replaces, with the further arguments of the manifest.
    pub(crate) async fn manager_by_its_old_name(&self) -> Fallible<Manager> {
        let link = self.cluster.dir().join(format!("{}-cloud-controller-manager", C::NAME));
        std::os::unix::fs::symlink(shipped()?, &link)?;
        let by_name = ["controller-manager".to_owned(), format!("--cloud-provider={}", C::NAME)];
        let mut args = container_of(C::NAME)?.args;
        args.retain(|word| !by_name.contains(word));
        self.start((link, args), &self.cloud.env()).await
    }

    async fn start(&self, program: (PathBuf, Vec<String>), env: &[(String, String)]) -> Fallible<Manager> {
        let config = self.cloud.config().map(|file| format!("--cloud-config={}", file.display()));
        let flags: Vec<String> = ELECTION.iter().map(owned).chain(config).collect();
        Ok(Manager::start(&self.account, C::NAME, program, &flags, env).await?)
    }

    /// What a manager would do now, and the exit code that says whether there is anything.
    pub(crate) async fn plan(&self) -> Fallible<(i32, String)> {
        let kubeconfig = format!("--kubeconfig={}", self.account.kubeconfig.display());
        let flags = self.flags();
        let args: Vec<&str> =
            ["plan", &kubeconfig].into_iter().chain(flags.iter().map(String::as_str)).collect();
        let env = self.cloud.env();
        let env: Vec<(&str, &str)> = env.iter().map(|(key, value)| (key.as_str(), value.as_str())).collect();
        let mut program = Program::start(&args, &env)?;
        let code = program.ends(SOON).await?;
        Ok((code, program.log().join("\n")))
    }

    /// A manager that leads.
    pub(crate) async fn leader(&self, flags: &[&str]) -> Fallible<Manager> {
        let mut manager = self.manager("leader", flags).await?;
        manager.leads(SOON).await?;
        Ok(manager)
    }

    /// Stops the managers, which have to end well, and checks all their requests against the role of the manifest.
    pub(crate) async fn close(&self, managers: &mut [Manager]) -> Outcome {
        self.close_with(managers, &self.cloud.secrets()).await
    }
}

impl<'w, C> Fixture<'w, C> {
    /// A fixture with any cloud, whose account has the rights of these manifests, and no others.
    pub(crate) async fn with(cluster: &'w Cluster, cloud: C, manifests: &str) -> Fallible<Self> {
        let account = cluster.account("kube-system", "cloud-controller-manager", manifests).await?;
        Ok(Self { cluster, cloud, account, forgetful: false })
    }

    /// A manager with these flags, which lead it to its clouds.
    pub(crate) async fn manager_with(
        &self,
        name: &str,
        flags: &[String],
        env: &[(String, String)],
    ) -> Fallible<Manager> {
        let flags: Vec<String> = flags.iter().cloned().chain(ELECTION.iter().map(owned)).collect();
        let program = (shipped()?, vec!["controller-manager".to_owned()]);
        Ok(Manager::start(&self.account, name, program, &flags, env).await?)
    }

    /// As [`Fixture::close`], with the secrets of the clouds.
    pub(crate) async fn close_with(&self, managers: &mut [Manager], secrets: &[String]) -> Outcome {
        for manager in managers.iter_mut() {
            assert_eq!(manager.stop(SOON).await?, 0, "{} did not end well", manager.name());
            let log = manager.log();
            let tells = |line: &&String| {
                secrets.iter().chain([&self.account.token]).any(|secret| line.contains(secret.as_str()))
            };
            let tells = log.iter().find(tells);
            assert_eq!(tells, None, "L10-42 L10-811: the log of {} has a secret", manager.name());
            let bug = log.iter().find(|line| line.contains("panicked at"));
            assert_eq!(bug, None, "{} met a bug", manager.name());
        }
        let rows = self.cluster.settled_calls_of(&self.account.user).await?;
        for row in &rows {
            assert!(self.account.rights.allow(&self.account.user, &row.action()), "not in its role: {row:?}");
            let refused = matches!(row.status, 401 | 403) && !self.forgetful;
            assert!(!refused, "refused, though in its role: {row:?}");
        }
        ledger::enter(self.cluster.kind(), &self.account, rows);
        Ok(())
    }

    /// A kubelet registers its node. It waits for its cloud, unless `over` says otherwise.
    pub(crate) async fn join(&self, name: &str, over: Value) -> Fallible<Value> {
        let mut node = json!({ "apiVersion": "v1", "kind": "Node",
            "metadata": { "name": name, "labels": { "kubernetes.io/hostname": name } },
            "spec": { "taints": [{ "key": UNINITIALISED, "value": "true", "effect": "NoSchedule" }] } });
        merge(&mut node, over);
        Ok(self.cluster.create("/api/v1/nodes", &node).await?)
    }

    /// Sets the Ready condition of a node, as its kubelet does.
    pub(crate) async fn say_ready(&self, name: &str, ready: bool) -> Outcome {
        let status = if ready { "True" } else { "Unknown" };
        let conditions = json!([{ "type": "Ready", "status": status, "reason": "Kubelet", "message": "",
            "lastHeartbeatTime": "2026-01-01T00:00:00Z", "lastTransitionTime": "2026-01-01T00:00:00Z" }]);
        let path = format!("/api/v1/nodes/{name}/status");
        self.cluster.patch(&path, &json!({ "status": { "conditions": conditions } })).await?;
        Ok(())
    }

    pub(crate) async fn node(&self, name: &str) -> Fallible<Value> {
        Ok(self.cluster.get(&format!("/api/v1/nodes/{name}")).await?)
    }

    /// Waits until `so` accepts the object at `path`; its error is in the message if it never does.
    pub(crate) async fn until(&self, what: &str, path: &str, so: impl Fn(&Value) -> bool) -> Fallible<Value> {
        Ok(eventually(SOON, what, async || {
            let found = self.cluster.get(path).await.map_err(|why| why.to_string())?;
            if so(&found) { Ok(found) } else { Err(found.to_string()) }
        })
        .await?)
    }

    /// Waits until a node is in service, and gives it as it is then.
    pub(crate) async fn initialised(&self, name: &str) -> Fallible<Value> {
        let what = format!("node {name} is initialised");
        self.until(&what, &format!("/api/v1/nodes/{name}"), |node| !waits(node)).await
    }

    async fn events_about(&self, kind: &str, name: &str) -> Fallible<Vec<Value>> {
        let all = self.cluster.get("/api/v1/events").await?;
        // The API server tells of its own repairs of addresses and ports, now and then and about any Service.
        let is_of_a_repair = |event: &Value| {
            let sources = ["/source/component", "/reportingComponent"];
            sources.iter().any(|source| text(event, source).ends_with("-repair-controller"))
        };
        let about = |event: &&Value| {
            text(event, "/involvedObject/kind") == kind
                && text(event, "/involvedObject/name") == name
                && !is_of_a_repair(event)
        };
        Ok(all["items"].as_array().unwrap().iter().filter(about).cloned().collect())
    }

    /// The events about an object so far, as `reason: message`, in the order in which they first happened.
    pub(crate) async fn events(&self, kind: &str, name: &str) -> Fallible<Vec<String>> {
        let mut found = self.events_about(kind, name).await?;
        found.sort_by_key(|event| text(event, "/metadata/resourceVersion").parse::<u64>().unwrap_or(0));
        Ok(found
            .iter()
            .map(|event| format!("{}: {}", text(event, "/reason"), text(event, "/message")))
            .collect())
    }

    /// Waits until all of these events were published.
    pub(crate) async fn over(&self, ends: &[End<'_>]) -> Outcome {
        for (kind, name, reason, times) in ends {
            eventually(SOON, &format!("{reason} is told of {kind} {name}, {times} times"), async || {
                let events = self.events_about(kind, name).await.map_err(|why| why.to_string())?;
                let told = events.iter().filter(|event| text(event, "/reason") == *reason);
                let told: u64 = told.map(|event| event["count"].as_u64().unwrap_or(1)).sum();
                if told >= *times { Ok(()) } else { Err(format!("{told} times: {events:#?}")) }
            })
            .await?;
        }
        Ok(())
    }

    /// Waits until an object has exactly these events, in any order.
    pub(crate) async fn has_events(&self, kind: &str, name: &str, want: &[&str]) -> Outcome {
        let mut want: Vec<String> = want.iter().map(|event| (*event).to_owned()).collect();
        want.sort();
        eventually(SOON, &format!("the events of {kind} {name} are {want:#?}"), async || {
            let mut found = self.events(kind, name).await.map_err(|why| why.to_string())?;
            found.sort();
            if found == want { Ok(()) } else { Err(format!("{found:#?}")) }
        })
        .await?;
        Ok(())
    }

    /// The holder of the managers' Lease.
    pub(crate) async fn holder(&self) -> Fallible<String> {
        Ok(text(&self.cluster.get(LEASE).await?, "/spec/holderIdentity").to_owned())
    }

    /// Successful writes of the account to what `wanted` picks, as `verb resource/part`; all that were answered before.
    pub(crate) async fn writes(&self, wanted: impl Fn(&Row) -> bool) -> Fallible<Vec<String>> {
        let rows = self.cluster.settled_calls_of(&self.account.user).await?;
        let picked = rows.iter().filter(|row| row.is_write() && row.status < 300 && wanted(row));
        Ok(picked
            .map(|row| match row.subresource.as_str() {
                "" => format!("{} {}", row.verb, row.resource),
                part => format!("{} {}/{part}", row.verb, row.resource),
            })
            .collect())
    }
}

impl<C: SimulatedCloud> Fixture<'_, C> {
    /// Waits for the events that end the scenario and for the last write, and then checks that nothing changes in the cloud
    /// and nothing but the Lease is written to the cluster, while the leader goes on renewing.
    pub(crate) async fn rests(&self, ends: &[End<'_>]) -> Outcome {
        self.over(ends).await?;
        let is_lease = |row: &Row| row.resource == "leases";
        let look = || {
            let rows = self.cluster.calls_of(&self.account.user);
            let (leases, others): (Vec<&Row>, Vec<&Row>) =
                rows.iter().filter(|row| row.is_write()).partition(|row| is_lease(row));
            let done = others.iter().filter(|row| (200..300).contains(&row.status)).count();
            let open = self.cluster.writes_in_flight(&self.account.user, |row| !is_lease(row));
            let renewals = leases.iter().filter(|row| (200..300).contains(&row.status)).count();
            ((done, open, self.cloud.mutations().len()), renewals)
        };
        let (mut settled, mut since) = look();
        eventually(SOON, "writing ends", async || {
            let (now, renewals) = look();
            if now != settled {
                (settled, since) = (now, renewals);
            }
            if renewals >= since + REST { Ok(()) } else { Err(format!("{now:?}, {renewals} after {since}")) }
        })
        .await?;
        since = look().1;
        let stirred = eventually(SOON, "the Lease is renewed again and again", async || {
            let (now, renewals) = look();
            let done = now != settled || renewals >= since + REST;
            if done { Ok(now) } else { Err(format!("{renewals} times after {since}")) }
        })
        .await?;
        assert_eq!(
            stirred, settled,
            "L4-41 (written, under way, changed in the cloud) after everything was done"
        );
        Ok(())
    }
}

/// Waits until there is one load balancer in a cloud that opens these ports, each to all of these instances on the
/// Service's node port, and the Service shows its addresses.
pub(crate) async fn is_served(
    cluster: &Cluster,
    service: &str,
    cloud: &(impl SimulatedCloud + ?Sized),
    ports: &[u16],
    instances: &[&str],
) -> Fallible<Balancer> {
    let instances: BTreeSet<String> = instances.iter().map(|name| (*name).to_owned()).collect();
    let what = format!("ports {ports:?} of {service} lead to {instances:?}");
    Ok(eventually(SOON, &what, async || {
        let service = cluster.get(service).await.map_err(|why| why.to_string())?;
        let node_port = |port: u16| {
            let all = service["spec"]["ports"].as_array().unwrap().iter();
            let found = all.filter(|one| one["port"] == json!(port)).find_map(|one| one["nodePort"].as_u64());
            found.and_then(|port| u16::try_from(port).ok()).unwrap_or_default()
        };
        let leads = |port: u16| (instances.clone(), BTreeSet::from([cloud.target(port, node_port(port))]));
        let want = ports.iter().map(|port| (*port, leads(*port))).collect();
        let shown: BTreeSet<String> = service["status"]["loadBalancer"]["ingress"]
            .as_array()
            .into_iter()
            .flatten()
            .flat_map(|one| [text(one, "/ip"), text(one, "/hostname")])
            .filter(|address| !address.is_empty())
            .map(str::to_owned)
            .collect();
        match cloud.balancers().as_slice() {
            [one] if one.ports == want && one.addresses == shown && !shown.is_empty() => Ok(one.clone()),
            instead => Err(format!("{instead:#?}\n{service}")),
        }
    })
    .await?)
}

fn owned(text: &&str) -> String {
    (*text).to_owned()
}

/// Whether a node waits for its cloud.
pub(crate) fn waits(node: &Value) -> bool {
    taints(node).contains(&UNINITIALISED)
}

pub(crate) fn taints(node: &Value) -> Vec<&str> {
    let all = node.pointer("/spec/taints").and_then(Value::as_array).map_or(&[][..], Vec::as_slice);
    all.iter().map(|taint| text(taint, "/key")).collect()
}

pub(crate) fn text<'v>(value: &'v Value, pointer: &str) -> &'v str {
    value.pointer(pointer).and_then(Value::as_str).unwrap_or_default()
}

/// Merges `over` into `base`, object by object.
fn merge(base: &mut Value, over: Value) {
    match (base, over) {
        (Value::Object(base), Value::Object(over)) => {
            for (key, value) in over {
                merge(base.entry(key).or_insert(Value::Null), value);
            }
        }
        (base, over) => *base = over,
    }
}
