//! Asks the cluster and the clouds. Nothing is judged here, and nothing is written: the questions about rights are the
//! only requests that are not plain reads, and they change nothing.

use std::{
    collections::BTreeSet,
    sync::{Arc, Mutex, PoisonError},
    time::Duration,
};

use base64::{Engine, engine::general_purpose::URL_SAFE_NO_PAD};
use cloudberth_core::{
    Call, Category, Clock, Error, NodeView, Provider, Reason, Result,
    call::ReadOnly,
    decide::{node::taints::UNINITIALISED, service::FINALIZER},
    lb::ServerVersion,
    provider_id::Reading,
    rights::Right,
};
use cloudberth_http::{Attempt, Observer};
use cloudberth_runtime::bug::caught;
use futures_util::future::{join, join_all};
use jiff::{SignedDuration, Timestamp};
use kube::{Client, Config};
use secrecy::ExposeSecret;
use serde_json::Value;

use super::facts::{
    ApiServer, CloudFacts, EventFacts, Facts, LeaseFacts, NodeFacts, Owner, ServiceFacts, Workload,
};
use crate::{
    reads::{PATIENCE, get, list},
    selfcheck,
};

/// How long everything about one cloud may take.
const CLOUD_PATIENCE: Duration = Duration::from_secs(60);

const WARNINGS: &str = "/api/v1/events?fieldSelector=involvedObject.kind%3DService%2Ctype%3DWarning";

/// A cloud that was opened, or why it was not, and what its calls tell about its clock.
pub(crate) struct CloudToLookAt {
    pub(crate) name: &'static str,
    pub(crate) opened: Result<Arc<dyn Provider>, Vec<Error>>,
    pub(crate) times: Arc<ServerTimes>,
}

/// Notes by how much the clock of a server is ahead.
pub(crate) struct ServerTimes {
    clock: Arc<dyn Clock>,
    ahead: Mutex<Option<SignedDuration>>,
}

impl ServerTimes {
    pub(crate) fn new(clock: &Arc<dyn Clock>) -> Self {
        Self { clock: Arc::clone(clock), ahead: Mutex::default() }
    }

    fn ahead(&self) -> Option<SignedDuration> {
        *self.ahead.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Observer for ServerTimes {
    fn attempted(&self, attempt: Attempt) {
        if let Some(time) = attempt.server_time {
            let ahead = time.duration_since(self.clock.wall());
            *self.ahead.lock().unwrap_or_else(PoisonError::into_inner) = Some(ahead);
        }
    }
}

/// Everything that is asked.
pub(crate) struct Gather<'a> {
    pub(crate) config: &'a Config,
    pub(crate) client: &'a Client,
    pub(crate) clock: &'a Arc<dyn Clock>,
    pub(crate) rights: &'a [Right],
    pub(crate) lease_namespace: &'a str,
    pub(crate) leader_lease: Option<String>,
    /// The load-balancer classes that the clouds serve.
    pub(crate) classes: BTreeSet<String>,
    pub(crate) clouds: Vec<CloudToLookAt>,
    pub(crate) replaced: Vec<&'static str>,
    pub(crate) reasons: Vec<Reason>,
}

impl Gather<'_> {
    pub(crate) async fn facts(self) -> Facts {
        let api = self.api().await;
        let rights = match &api {
            Ok(_) => selfcheck::missing_rights(self.client, self.rights, self.lease_namespace).await,
            Err(_) => (Vec::new(), None),
        };
        let leases = format!("/apis/coordination.k8s.io/v1/namespaces/{}/leases", self.lease_namespace);
        let cluster = async {
            // Where nobody answers, there is no use in asking again and again.
            let ask = async |path: &str| match &api {
                Ok(_) => list(self.client, path).await,
                Err(why) => Err(why.clone()),
            };
            let (nodes, services) = join(ask("/api/v1/nodes"), ask("/api/v1/services")).await;
            let (events, leases) = join(ask(WARNINGS), ask(&leases)).await;
            let (deployments, sets) =
                join(ask("/apis/apps/v1/deployments"), ask("/apis/apps/v1/daemonsets")).await;
            (nodes, services, events, leases, deployments, sets)
        };
        let clouds = join_all(self.clouds.iter().map(|cloud| look(cloud, self.clock)));
        let ((nodes, services, events, leases, deployments, sets), clouds) = join(cluster, clouds).await;
        let workloads = |list: Result<Vec<Value>>, kind| match list {
            // A server without the kind has none.
            Err(why) if why.category() == Category::NotFound => Ok(Vec::new()),
            list => list.map(|list| list.iter().map(|one| workload(kind, one)).collect::<Vec<_>>()),
        };
        let workloads = workloads(deployments, "Deployment")
            .and_then(|all| Ok([all, workloads(sets, "DaemonSet")?].concat()));
        Facts {
            now: self.clock.wall(),
            api,
            token_ends: token_ends(self.config),
            rights: rights.0,
            rights_unknown: rights.1,
            nodes: nodes.map(|list| list.iter().filter_map(|node| self.node(node)).collect()),
            services: services.map(|list| list.iter().filter_map(|one| self.service(one)).collect()),
            events: events.map(|list| list.iter().map(event).collect()),
            leases: leases.map(|list| list.iter().map(lease).collect()),
            leader_lease: self.leader_lease,
            workloads,
            clouds,
            replaced: self.replaced,
            reasons: self.reasons,
        }
    }

    /// The version and the clock of the API server.
    async fn api(&self) -> Result<ApiServer> {
        let said = get(self.client, "/version").await?;
        let text = |key: &str| said.get(key).and_then(Value::as_str).unwrap_or_default();
        let name = [text("gitVersion"), "of an unknown version"].into_iter().find(|name| !name.is_empty());
        Ok(ApiServer {
            version: ServerVersion::read(text("major"), text("minor")),
            name: name.unwrap_or_default().to_owned(),
            ahead: self.ahead().await,
        })
    }

    async fn ahead(&self) -> Option<SignedDuration> {
        let request = http::Request::get("/version").body(kube::client::Body::empty()).ok()?;
        let answer = tokio::time::timeout(PATIENCE, self.client.send(request)).await.ok()?.ok()?;
        let date = answer.headers().get(http::header::DATE)?.to_str().ok()?;
        let said = Timestamp::try_from(httpdate::parse_http_date(date).ok()?).ok()?;
        Some(said.duration_since(self.clock.wall()))
    }

    fn node(&self, json: &Value) -> Option<NodeFacts> {
        let view = NodeView::from_json(json).ok()?;
        let owner = view.provider_id.as_ref().map_or(Owner::Nobody, |id| self.owner(id));
        Some(NodeFacts {
            owner,
            uninitialised: view.has_taint(UNINITIALISED),
            created: view.created,
            provider_id: view.provider_id,
            name: view.name,
        })
    }

    fn owner(&self, id: &str) -> Owner {
        let opened = self.clouds.iter().filter_map(|cloud| Some((cloud.name, cloud.opened.as_ref().ok()?)));
        let mut malformed = None;
        for (name, provider) in opened {
            match caught(|| provider.read_id(id)) {
                Ok(Reading::Mine(id)) => return Owner::Cloud(name.to_owned(), id.to_string()),
                Ok(Reading::Malformed) | Err(_) => malformed = malformed.or(Some(name)),
                Ok(Reading::Foreign) => {}
            }
        }
        malformed.map_or(Owner::Foreign, |name| Owner::Malformed(name.to_owned()))
    }

    /// A Service that has, wants or holds a load balancer.
    fn service(&self, json: &Value) -> Option<ServiceFacts> {
        let text = |path: &str| json.pointer(path).and_then(Value::as_str);
        let finalizers = json.pointer("/metadata/finalizers").and_then(Value::as_array);
        let held = finalizers.is_some_and(|all| all.iter().any(|one| one.as_str() == Some(FINALIZER)));
        let deleting = time(text("/metadata/deletionTimestamp")).filter(|_| held);
        if text("/spec/type") != Some("LoadBalancer") && deleting.is_none() {
            return None;
        }
        let ingress = json.pointer("/status/loadBalancer/ingress").and_then(Value::as_array);
        Some(ServiceFacts {
            namespace: text("/metadata/namespace").unwrap_or_default().to_owned(),
            name: text("/metadata/name").unwrap_or_default().to_owned(),
            created: time(text("/metadata/creationTimestamp")),
            deleting,
            has_address: ingress.is_some_and(|list| !list.is_empty()),
            foreign_class: text("/spec/loadBalancerClass").is_some_and(|class| !self.classes.contains(class)),
        })
    }
}

/// Asks one cloud: whether it can be worked with, its instances, its quotas.
async fn look(cloud: &CloudToLookAt, clock: &Arc<dyn Clock>) -> CloudFacts {
    let mut facts = CloudFacts {
        name: cloud.name.to_owned(),
        mistakes: Vec::new(),
        start: None,
        instances: None,
        ahead: None,
        quotas: Ok(Vec::new()),
    };
    let provider = match &cloud.opened {
        Ok(provider) => provider,
        Err(mistakes) => return CloudFacts { mistakes: mistakes.clone(), ..facts },
    };
    let call = Call::new(clock.now() + CLOUD_PATIENCE, Arc::new(ReadOnly));
    let start = provider.start(&call).await;
    if start == cloudberth_core::provider::Start::Ready {
        if let Some(instances) = provider.instances() {
            let ids = instances.list(&call).await.and_then(cloudberth_core::Listing::all);
            facts.instances = Some(ids.map(|all| all.iter().map(|one| one.id.to_string()).collect()));
        }
        facts.quotas = provider.quotas(&call).await;
    }
    facts.start = Some(start);
    facts.ahead = cloud.times.ahead();
    provider.stop(&call).await;
    facts
}

fn time(text: Option<&str>) -> Option<Timestamp> {
    text?.parse().ok()
}

fn event(json: &Value) -> EventFacts {
    let text = |path: &str| json.pointer(path).and_then(Value::as_str);
    let own = |path: &str| text(path).unwrap_or_default().to_owned();
    let seen = ["/series/lastObservedTime", "/lastTimestamp", "/eventTime", "/metadata/creationTimestamp"];
    EventFacts {
        namespace: own("/involvedObject/namespace"),
        name: own("/involvedObject/name"),
        reason: own("/reason"),
        message: own("/message"),
        seen: seen.iter().find_map(|path| time(text(path))),
    }
}

fn lease(json: &Value) -> LeaseFacts {
    let text = |path: &str| json.pointer(path).and_then(Value::as_str);
    let own = |path: &str| text(path).unwrap_or_default().to_owned();
    LeaseFacts {
        namespace: own("/metadata/namespace"),
        name: own("/metadata/name"),
        holder: own("/spec/holderIdentity"),
        renewed: time(text("/spec/renewTime")),
        seconds: json.pointer("/spec/leaseDurationSeconds").and_then(Value::as_i64).unwrap_or_default(),
    }
}

fn workload(kind: &'static str, json: &Value) -> Workload {
    let own = |path: &str| json.pointer(path).and_then(Value::as_str).unwrap_or_default().to_owned();
    let containers = json.pointer("/spec/template/spec/containers").and_then(Value::as_array);
    let mut runs = Vec::new();
    for container in containers.into_iter().flatten() {
        for key in ["image", "command", "args"] {
            match container.get(key) {
                Some(Value::String(text)) => runs.push(text.clone()),
                Some(Value::Array(items)) => {
                    runs.extend(items.iter().filter_map(Value::as_str).map(str::to_owned));
                }
                _ => {}
            }
        }
    }
    Workload { kind, namespace: own("/metadata/namespace"), name: own("/metadata/name"), runs }
}

/// When the token of the kubeconfig ends, if it says so itself. One in a file is renewed by whoever writes the file.
fn token_ends(config: &Config) -> Option<Timestamp> {
    ends(config.auth_info.token.as_ref()?.expose_secret())
}

/// When a token ends that says so itself, as those of service accounts do.
fn ends(token: &str) -> Option<Timestamp> {
    let claims = URL_SAFE_NO_PAD.decode(token.split('.').nth(1)?).ok()?;
    let claims: Value = serde_json::from_slice(&claims).ok()?;
    Timestamp::from_second(claims.get("exp")?.as_i64()?).ok()
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn a_token_may_say_when_it_ends() {
        let claims = URL_SAFE_NO_PAD.encode(br#"{"exp":1893456000}"#);
        assert_eq!(ends(&format!("e30.{claims}.x")), "2030-01-01T00:00:00Z".parse().ok());
        for opaque in ["", "plain", "a.b.c", "e30.e30.x"] {
            assert_eq!(ends(opaque), None, "{opaque}");
        }
    }

    #[test]
    fn an_event_was_seen_when_it_was_last_seen() {
        let json = json!({
            "metadata": {"creationTimestamp": "2026-01-01T00:00:00Z"},
            "involvedObject": {"namespace": "n", "name": "web"}, "reason": "R", "message": "m",
            "lastTimestamp": null, "eventTime": "2026-01-01T00:00:05.000000Z",
        });
        let seen = event(&json);
        assert_eq!(seen.seen, "2026-01-01T00:00:05Z".parse().ok());
        assert_eq!((seen.name.as_str(), seen.reason.as_str()), ("web", "R"));
    }

    #[test]
    fn a_workload_is_known_by_all_that_its_containers_run() {
        let json = json!({
            "metadata": {"namespace": "kube-system", "name": "x"},
            "spec": {"template": {"spec": {"containers": [{"image": "i", "command": ["c"], "args": ["a", 1]}, {}]}}},
        });
        assert_eq!(workload("Deployment", &json).runs, ["i", "c", "a"]);
    }
}
