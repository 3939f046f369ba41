//! The Cloudlycke service behind the front of simulated clouds: its own API and state, with latency, faults and a journal.

use std::{path::PathBuf, sync::Arc, time::Duration};

use bytes::Bytes;
use cloudberth_core::{Clock, Secret};
use cloudberth_lycke::{
    api::Api,
    control::{Control, Parts},
    events::EventLog,
    inventory,
    plane::BalancerKey,
    state::{Balancers, Put},
    store::NoStore,
    testing::MemoryPlane,
};
use futures_util::FutureExt as _;
use http::{Method, Request};
use http_body_util::{BodyExt as _, Full};
use serde_json::{Value, json};
use sim_kit::{Incoming, Moment, Reply, RestCloud};
use tower::Service as _;

/// Two clusters; machines come at run time.
const INVENTORY: &str = "
version: 1
allowEmpty: true
clusters:
  c1: { kubernetesName: kubernetes-1, managed: false }
  c2: { kubernetesName: test }
types:
  vbox.vm.512mb.1cpu: { cpus: 1, memoryMiB: 512 }
  vbox.vm.1g.2cpu: { cpus: 2, memoryMiB: 1024 }
loadBalancers: { pool: 127.77.0.0/28 }
";

/// The service. With a memory plane and without a file every request is answered at once.
pub(crate) struct LyckeService {
    pub(crate) control: Control,
    pub(crate) plane: MemoryPlane,
    api: Api,
    pub(crate) latency: Duration,
    /// An address that is not given out any more.
    pub(crate) withdrawn: Option<String>,
}

pub(crate) fn key(id: &str) -> BalancerKey {
    let parts: Vec<_> = id.split('/').map(str::to_owned).collect();
    let [cluster, namespace, name] = parts.try_into().unwrap();
    BalancerKey { cluster, namespace, name }
}

/// Does at once what it can, and the rest later.
pub(crate) fn at_once<T>(work: impl Future<Output = T> + Send + 'static) {
    let mut work = Box::pin(work);
    if (&mut work).now_or_never().is_none() {
        tokio::spawn(async move {
            work.await;
        });
    }
}

impl LyckeService {
    pub(crate) fn new(clock: &Arc<dyn Clock>, token: &str) -> Self {
        let events = EventLog::new(Arc::clone(clock));
        let plane = MemoryPlane::new(Arc::new(events.clone()), Arc::clone(clock));
        let file = PathBuf::from("inventory.yaml");
        let parts = Parts {
            inventory: inventory::read(INVENTORY, &file).unwrap(),
            file,
            balancers: Balancers::default(),
            plane: Arc::new(plane.clone()),
            store: Arc::new(NoStore),
            events,
        };
        let control = Control::new(parts, Arc::clone(clock));
        let api = Api::new(control.clone(), Some(Secret::new(token).unwrap()));
        Self { control, plane, api, latency: Duration::from_millis(20), withdrawn: None }
    }

    /// What the API shows at the path of a request.
    fn get(&mut self, request: &Incoming) -> Reply {
        let query = request.query.as_ref().filter(|_| !self.mutates(request));
        let query = query.map_or_else(String::new, |query| format!("?{query}"));
        let mut sent = Request::builder().uri(format!("{}{query}", request.path));
        for (name, value) in &request.headers {
            sent = sent.header(name, value);
        }
        let sent = sent.body(Full::new(Bytes::new())).unwrap();
        let answer = self.api.call(sent).now_or_never().expect("nothing here waits").unwrap();
        let status = answer.status().as_u16();
        let body = answer.into_body().collect().now_or_never().unwrap().unwrap().to_bytes();
        Reply::new(status, serde_json::from_slice(&body).ok())
    }

    /// Carries a change out at once. The API would do it in a task of its own, and a simulated cloud does not wait.
    fn change(&mut self, request: &Incoming, key: &BalancerKey) -> Reply {
        let control = self.control.clone();
        let at_once = "nothing here waits";
        let done = if request.method == Method::PUT {
            let spec: Value = serde_json::from_slice(&request.body).unwrap_or_default();
            let wanted = spec["requestedAddress"].as_str();
            if wanted.is_some() && wanted == self.withdrawn.as_deref() {
                let body = json!({"code": "address_not_in_pool", "message": "its pool is another one"});
                return Reply::new(422, Some(body));
            }
            let put = control.put(key, &spec).now_or_never().expect(at_once);
            put.map(|(put, _)| (if put == Put::Created { 201 } else { 200 }, self.get(request).body))
        } else {
            let uid = request.query.as_deref().and_then(|query| query.strip_prefix("uid="));
            let deleted = control.delete(key, uid).now_or_never().expect(at_once);
            deleted.map(|deleted| (200, Some(json!({"deleted": deleted}))))
        };
        match done {
            Ok((status, body)) => Reply::new(status, body),
            Err(why) => Reply::new(why.status, Some(json!({"code": why.code, "message": why.message}))),
        }
    }

    fn parts(request: &Incoming) -> Vec<&str> {
        request.path.trim_start_matches("/v1/").split('/').collect()
    }
}

impl RestCloud for LyckeService {
    fn operation(&self, request: &Incoming) -> String {
        let get = request.method == Method::GET;
        let known = match (Self::parts(request).as_slice(), get) {
            (["clusters"], true) => "clusters.list",
            (["machines"], true) => "machines.list",
            (["machines", _], true) => "machines.get",
            (["loadbalancers"], true) => "loadbalancers.list",
            (["loadbalancers", _, _, _], true) => "loadbalancers.get",
            (["loadbalancers", cluster, namespace, name], false) => {
                let there = self.control.balancer(&key(&format!("{cluster}/{namespace}/{name}"))).is_some();
                match (request.method == Method::PUT, there) {
                    (true, false) => "loadbalancers.create",
                    (true, true) => "loadbalancers.update",
                    (false, _) => "loadbalancers.delete",
                }
            }
            _ => "unknown",
        };
        known.to_owned()
    }

    fn latency(&self) -> (Duration, f64) {
        (self.latency, 0.0)
    }

    fn handle(&mut self, request: &Incoming, _: Moment) -> Reply {
        let seen = self.get(request);
        let changes = self.mutates(request) && seen.status != 401;
        match Self::parts(request).as_slice() {
            ["loadbalancers", cluster, namespace, name] if changes => {
                self.change(request, &key(&format!("{cluster}/{namespace}/{name}")))
            }
            _ => seen,
        }
    }

    fn refuse(&self, _: &Incoming, status: u16) -> Reply {
        Reply::new(status, Some(json!({"code": "ordered", "message": "ordered by the test"})))
    }

    fn items<'a>(&self, _: &Incoming, body: &'a mut Value) -> Option<&'a mut Vec<Value>> {
        body.get_mut("items").and_then(Value::as_array_mut)
    }

    fn state(&mut self, _: &str, _: Moment) -> Value {
        Value::Null
    }

    fn reset(&mut self, _: Moment) {}
}
