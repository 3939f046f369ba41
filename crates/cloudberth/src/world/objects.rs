//! What the Kubernetes API tells about itself: the newest version of every object that is looked at.

use std::{
    collections::{BTreeMap, BTreeSet},
    sync::{Arc, Mutex, MutexGuard, PoisonError},
};

use cloudberth_core::{NodeView, ObjectKey, ServiceView, view::ServiceType};
use futures_util::{Stream, StreamExt as _, stream::select_all};
use kube::{
    Api, Client,
    api::{ApiResource, DynamicObject},
    runtime::watcher::{self, watcher},
};
use serde_json::Value;
use tokio::sync::{mpsc, watch};

use super::{contract::Happening, journal::Journal};

/// A kind of object that is looked at.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
#[expect(missing_docs, reason = "the names of Kubernetes")]
pub enum Kind {
    Node,
    Service,
    Event,
    Lease,
}

impl Kind {
    /// All of them.
    pub const ALL: [Self; 4] = [Self::Node, Self::Service, Self::Event, Self::Lease];

    /// How a client finds it.
    pub fn resource(self) -> ApiResource {
        let (group, kind, plural) = match self {
            Self::Node => ("", "Node", "nodes"),
            Self::Service => ("", "Service", "services"),
            Self::Event => ("", "Event", "events"),
            Self::Lease => ("coordination.k8s.io", "Lease", "leases"),
        };
        let api_version = if group.is_empty() { "v1".to_owned() } else { format!("{group}/v1") };
        let (group, version) = (group.to_owned(), "v1".to_owned());
        ApiResource { group, version, api_version, kind: kind.to_owned(), plural: plural.to_owned() }
    }

    fn objects(self, client: &Client) -> Api<DynamicObject> {
        match self {
            // Kubelets have Leases too; only that of the manager is looked at.
            Self::Lease => Api::namespaced_with(client.clone(), "kube-system", &self.resource()),
            _ => Api::all_with(client.clone(), &self.resource()),
        }
    }
}

/// A version of an object that a watch has shown.
#[derive(Clone, Debug)]
pub struct Sighting {
    /// What it is.
    pub kind: Kind,
    /// It does not exist any more; this is what it was last.
    pub gone: bool,
    /// The object.
    pub object: Arc<Value>,
}

/// The text at a place of an object; empty if there is none.
pub fn text<'a>(object: &'a Value, path: &str) -> &'a str {
    object.pointer(path).and_then(Value::as_str).unwrap_or_default()
}

/// `node/worker-1`: what an event is about.
pub fn subject(event: &Value) -> String {
    let kind = text(event, "/involvedObject/kind").to_lowercase();
    format!("{kind}/{}", text(event, "/involvedObject/name"))
}

fn key(object: &Value) -> ObjectKey {
    ObjectKey::new(text(object, "/metadata/namespace"), text(object, "/metadata/name"))
}

/// The newest version of every object that is looked at.
pub(crate) struct Objects {
    journal: Arc<Journal>,
    inner: Mutex<Inner>,
    /// Nodes and Services have changed.
    changed: watch::Sender<u64>,
}

#[derive(Default)]
struct Inner {
    all: BTreeMap<(Kind, ObjectKey), Arc<Value>>,
    /// What a listing that is under way has shown.
    listed: BTreeMap<Kind, BTreeSet<ObjectKey>>,
    warnings: BTreeMap<ObjectKey, Warnings>,
    listeners: Vec<mpsc::UnboundedSender<Sighting>>,
    complete: BTreeSet<Kind>,
    trouble: Option<String>,
}

/// What warnings have said about a Service since its specification or its annotations were last changed.
#[derive(Default)]
struct Warnings {
    wanted: Option<Value>,
    said: Vec<String>,
}

impl Objects {
    pub(crate) fn new(journal: Arc<Journal>) -> Self {
        Self { journal, inner: Mutex::default(), changed: watch::Sender::new(0) }
    }

    fn lock(&self) -> MutexGuard<'_, Inner> {
        self.inner.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Watches until it is dropped. A watch that breaks begins again by itself.
    pub(crate) async fn follow(&self, client: &Client) {
        let mut events = watches(client);
        while let Some((kind, event)) = events.next().await {
            self.hear(kind, event);
        }
    }

    fn hear(&self, kind: Kind, event: watcher::Result<watcher::Event<DynamicObject>>) {
        let (gone, object) = match event {
            Ok(watcher::Event::Init) => {
                self.lock().listed.insert(kind, BTreeSet::new());
                return;
            }
            Ok(watcher::Event::InitDone) => return self.listing_ends(kind),
            Ok(watcher::Event::InitApply(object) | watcher::Event::Apply(object)) => (false, object),
            Ok(watcher::Event::Delete(object)) => (true, object),
            Err(why) => {
                self.lock().trouble = Some(why.to_string());
                return;
            }
        };
        if let Ok(object) = serde_json::to_value(&object) {
            self.see(kind, gone, object);
        }
    }

    /// What was there before and is not in the listing is gone.
    fn listing_ends(&self, kind: Kind) {
        let gone: Vec<_> = {
            let mut inner = self.lock();
            inner.complete.insert(kind);
            inner.trouble = None;
            let listed = inner.listed.remove(&kind).unwrap_or_default();
            let left_out = inner.all.iter().filter(|((of, key), _)| *of == kind && !listed.contains(key));
            left_out.map(|(_, object)| Value::clone(object)).collect()
        };
        for object in gone {
            self.see(kind, true, object);
        }
        self.changed.send_modify(|number| *number += 1);
        self.journal.touch();
    }

    fn see(&self, kind: Kind, gone: bool, object: Value) {
        let object = Arc::new(object);
        let key = key(&object);
        {
            let mut inner = self.lock();
            if let Some(listed) = inner.listed.get_mut(&kind) {
                listed.insert(key.clone());
            }
            if kind == Kind::Service {
                inner.note_service(&key, &object, gone);
            }
            if kind == Kind::Event && !gone {
                inner.note_event(&object);
            }
            if gone {
                inner.all.remove(&(kind, key));
            } else {
                inner.all.insert((kind, key), Arc::clone(&object));
            }
            let sighting = Sighting { kind, gone, object: Arc::clone(&object) };
            inner.listeners.retain(|listener| listener.send(sighting.clone()).is_ok());
        }
        match kind {
            Kind::Event if !gone => self.journal.add(Happening::Event {
                object: subject(&object),
                reason: text(&object, "/reason").to_owned(),
                message: text(&object, "/message").to_owned(),
                warning: text(&object, "/type") == "Warning",
            }),
            Kind::Node | Kind::Service => {
                self.changed.send_modify(|number| *number += 1);
                self.journal.touch();
            }
            _ => {}
        }
    }

    /// What every watch shows from now on.
    pub(crate) fn listen(&self) -> mpsc::UnboundedReceiver<Sighting> {
        let (sender, receiver) = mpsc::unbounded_channel();
        self.lock().listeners.push(sender);
        receiver
    }

    /// Whether every watch has shown what there is; otherwise why not, if that is known.
    pub(crate) fn complete(&self) -> Result<bool, String> {
        let inner = self.lock();
        match &inner.trouble {
            Some(why) if inner.complete.len() < Kind::ALL.len() => Err(why.clone()),
            _ => Ok(inner.complete.len() == Kind::ALL.len()),
        }
    }

    /// Says when nodes or Services have changed.
    pub(crate) fn changes(&self) -> watch::Receiver<u64> {
        self.changed.subscribe()
    }

    pub(crate) fn all(&self, kind: Kind) -> Vec<Arc<Value>> {
        let inner = self.lock();
        inner.all.iter().filter(|((of, _), _)| *of == kind).map(|(_, object)| Arc::clone(object)).collect()
    }

    pub(crate) fn nodes(&self) -> Vec<NodeView> {
        self.all(Kind::Node).iter().filter_map(|node| NodeView::from_json(node).ok()).collect()
    }

    pub(crate) fn has_node(&self, name: &str) -> bool {
        self.lock().all.contains_key(&(Kind::Node, ObjectKey::new("", name)))
    }

    /// The Services of type `LoadBalancer`.
    pub(crate) fn services(&self) -> Vec<ServiceView> {
        let all = self.all(Kind::Service);
        let read = all.iter().filter_map(|service| ServiceView::from_json(service).ok());
        read.filter(|service| service.service_type == ServiceType::LoadBalancer).collect()
    }

    pub(crate) fn service(&self, key: &ObjectKey) -> Option<ServiceView> {
        let object = self.lock().all.get(&(Kind::Service, key.clone())).cloned()?;
        ServiceView::from_json(&object).ok()
    }

    /// What warnings have said about a Service since it was last changed.
    pub(crate) fn warnings(&self, key: &ObjectKey) -> Vec<String> {
        self.lock().warnings.get(key).map(|warnings| warnings.said.clone()).unwrap_or_default()
    }

    /// Who holds the Lease of the manager.
    pub(crate) fn leader(&self) -> Option<String> {
        self.lease().map(|(holder, _)| holder)
    }

    /// Who holds the Lease of the manager, and when it was renewed.
    pub(crate) fn lease(&self) -> Option<(String, String)> {
        let key = (Kind::Lease, ObjectKey::new("kube-system", "cloud-controller-manager"));
        let lease = self.lock().all.get(&key).cloned()?;
        let field = |path: &str| text(&lease, path).to_owned();
        Some((field("/spec/holderIdentity"), field("/spec/renewTime")))
            .filter(|(holder, _)| !holder.is_empty())
    }
}

impl Inner {
    /// A Service that was changed by a person is judged anew.
    fn note_service(&mut self, key: &ObjectKey, object: &Value, gone: bool) {
        if gone {
            self.warnings.remove(key);
            return;
        }
        let annotations = object.pointer("/metadata/annotations").and_then(Value::as_object);
        let theirs = annotations.into_iter().flatten().filter(|(name, _)| !name.contains("cloudberth.dev/"));
        let theirs: BTreeMap<_, _> = theirs.filter(|(name, _)| !name.starts_with("kubectl.")).collect();
        let wanted = serde_json::json!([object.get("spec"), theirs.keys().collect::<Vec<_>>(), theirs]);
        let known = self.warnings.entry(key.clone()).or_default();
        if known.wanted.as_ref() != Some(&wanted) {
            *known = Warnings { wanted: Some(wanted), said: Vec::new() };
        }
    }

    fn note_event(&mut self, event: &Value) {
        if text(event, "/involvedObject/kind") != "Service" {
            return;
        }
        let about =
            ObjectKey::new(text(event, "/involvedObject/namespace"), text(event, "/involvedObject/name"));
        let Some(known) = self.warnings.get_mut(&about) else { return };
        let (reason, message) = (text(event, "/reason"), text(event, "/message"));
        if text(event, "/type") == "Warning" {
            let said = format!("{reason}: {message}");
            if !known.said.contains(&said) {
                known.said.push(said);
            }
        } else if reason == "EnsuredLoadBalancer" {
            // What failed has been made good. A refusal stays: it is not carried out.
            known.said.retain(|said| !said.starts_with("SyncLoadBalancerFailed"));
        }
    }
}

type Heard = (Kind, watcher::Result<watcher::Event<DynamicObject>>);

fn watches(client: &Client) -> impl Stream<Item = Heard> + Send + Unpin + use<> {
    select_all(Kind::ALL.map(|kind| {
        let config = watcher::Config::default();
        watcher(kind.objects(client), config).map(move |event| (kind, event)).boxed()
    }))
}

#[cfg(test)]
mod tests {
    use cloudberth_http::surroundings::SystemClock;
    use serde_json::json;

    use super::*;

    fn objects() -> Objects {
        Objects::new(Arc::new(Journal::new(Arc::new(SystemClock::new()))))
    }

    fn service(annotation: &str, ours: &str) -> Value {
        json!({
            "metadata": {"name": "web", "namespace": "default",
                "annotations": {"example.org/x": annotation, "cloudberth.dev/intent": ours}},
            "spec": {"type": "LoadBalancer", "ports": [{"port": 80}]},
        })
    }

    fn event(name: &str, level: &str, reason: &str) -> Value {
        json!({
            "metadata": {"name": name, "namespace": "default"}, "type": level, "reason": reason, "message": "it",
            "involvedObject": {"kind": "Service", "name": "web", "namespace": "default"},
        })
    }

    #[tokio::test]
    async fn a_service_keeps_its_warnings_until_somebody_changes_it() {
        let objects = objects();
        let web = ObjectKey::new("default", "web");
        objects.see(Kind::Service, false, service("a", "1"));
        objects.see(Kind::Event, false, event("e1", "Warning", "InvalidAnnotation"));
        objects.see(Kind::Event, false, event("e1", "Warning", "InvalidAnnotation"));
        objects.see(Kind::Event, false, event("e2", "Warning", "SyncLoadBalancerFailed"));
        objects.see(Kind::Service, false, service("a", "2"));
        assert_eq!(objects.warnings(&web), ["InvalidAnnotation: it", "SyncLoadBalancerFailed: it"]);
        objects.see(Kind::Event, false, event("e3", "Normal", "EnsuredLoadBalancer"));
        assert_eq!(objects.warnings(&web), ["InvalidAnnotation: it"], "what failed was made good");
        objects.see(Kind::Service, false, service("b", "2"));
        assert!(objects.warnings(&web).is_empty(), "a person has changed it");
    }

    #[tokio::test]
    async fn what_a_new_listing_lacks_is_gone() {
        let objects = objects();
        let mut seen = objects.listen();
        let node = |name: &str| json!({"metadata": {"name": name}});
        objects.see(Kind::Node, false, node("node-1"));
        objects.see(Kind::Node, false, node("node-2"));
        objects.lock().listed.insert(Kind::Node, BTreeSet::new());
        objects.see(Kind::Node, false, node("node-2"));
        objects.listing_ends(Kind::Node);
        assert!(!objects.has_node("node-1") && objects.has_node("node-2"));
        let told: Vec<_> = std::iter::from_fn(|| seen.try_recv().ok()).map(|one| one.gone).collect();
        assert_eq!(told, [false, false, false, true]);
    }
}
