//! The network between a program and the embedded API.
//!
//! The world owns the task that handles a request: a program that dies while it waits loses the answer, and what it
//! asked for still happens, perhaps after its successor has started.

use std::{
    pin::Pin,
    sync::{Arc, Mutex},
    task::{Context, Poll},
    time::Duration,
};

use cloudberth_core::{Random, lb::INTENT_ANNOTATION};
use embedded_kube::{Body, KubeService};
use http::{HeaderValue, Method, Request, header::USER_AGENT};
use tokio::{
    sync::{Notify, mpsc, oneshot},
    time,
};
use tower::Service;

use crate::{
    lock,
    people::node_name,
    witness::{Witness, is_lease},
    world::Alarm,
};

type BoxError = Box<dyn std::error::Error + Send + Sync>;

/// How a client is cut off from the API.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Cut {
    /// It learns so at once.
    Refused,
    /// It hears nothing until the cut is over, and then that the connection broke.
    Silent,
}

/// What can cut a client off.
#[derive(Default)]
pub(crate) struct Partition {
    cut: Mutex<Option<Cut>>,
    mended: Notify,
}

impl Partition {
    pub(crate) fn cut(&self, how: Cut) {
        *lock(&self.cut) = Some(how);
    }

    pub(crate) fn is_cut(&self) -> bool {
        lock(&self.cut).is_some()
    }

    pub(crate) fn mend(&self) {
        *lock(&self.cut) = None;
        self.mended.notify_waiters();
    }

    /// Passes while there is no cut. Otherwise fails, sooner or later: nothing crosses a cut.
    async fn cross(&self) -> Result<(), BoxError> {
        loop {
            let mut mended = std::pin::pin!(self.mended.notified());
            mended.as_mut().enable();
            let cut = *lock(&self.cut);
            match cut {
                None => return Ok(()),
                Some(Cut::Refused) => return Err("no route to the API server".into()),
                Some(Cut::Silent) => mended.await,
            }
            if lock(&self.cut).is_none() {
                return Err("the connection broke".into());
            }
        }
    }
}

/// Holds up the next write to a node until the world has done something about it.
pub(crate) struct Snare {
    set: Mutex<Option<(u8, bool)>>,
    alarm: mpsc::UnboundedSender<Alarm>,
}

impl Snare {
    pub(crate) fn new(alarm: mpsc::UnboundedSender<Alarm>) -> Self {
        Self { set: Mutex::default(), alarm }
    }

    pub(crate) fn set(&self, node: u8, knows_id: bool) {
        *lock(&self.set) = Some((node, knows_id));
    }

    pub(crate) fn clear(&self) {
        *lock(&self.set) = None;
    }

    async fn pass(&self, patched: Option<&str>) {
        let caught =
            lock(&self.set).take_if(|(node, _)| patched.is_some_and(|name| name == node_name(*node)));
        if let Some((node, knows_id)) = caught {
            let (go_on, waiting) = oneshot::channel();
            let _ = self.alarm.send(Alarm::Snared { node, knows_id, go_on });
            // Nobody listens once the turmoil is over.
            let _ = waiting.await;
        }
    }
}

/// The node that a request patches, or whose status.
pub(crate) fn patched_node<B>(request: &Request<B>) -> Option<&str> {
    let path = request.uri().path().strip_prefix("/api/v1/nodes/");
    path.filter(|_| request.method() == Method::PATCH)?.split('/').next()
}

/// What is left out of the requests of a careless program.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Loss {
    /// The intent.
    Intent,
    /// The UID of the node that a patch is meant for.
    NodeUid,
}

/// A client's connection.
#[derive(Clone)]
pub(crate) struct Wire {
    pub(crate) api: KubeService,
    pub(crate) who: HeaderValue,
    pub(crate) random: Arc<Random>,
    pub(crate) latency: Duration,
    pub(crate) partition: Arc<Partition>,
    /// Whether the API server is there at all.
    pub(crate) power: Arc<Partition>,
    pub(crate) witness: Option<Arc<Witness>>,
    pub(crate) snare: Option<Arc<Snare>>,
    /// What it carries arrives without this.
    pub(crate) loses: Option<Loss>,
}

impl Wire {
    fn leg(&self) -> Duration {
        self.latency.mul_f64(self.random.fraction())
    }
}

impl Service<Request<kube::client::Body>> for Wire {
    type Response = http::Response<Body>;
    type Error = BoxError;
    type Future = Pin<Box<dyn Future<Output = Result<Self::Response, BoxError>> + Send>>;

    fn poll_ready(&mut self, _: &mut Context<'_>) -> Poll<Result<(), BoxError>> {
        Poll::Ready(Ok(()))
    }

    fn call(&mut self, mut request: Request<kube::client::Body>) -> Self::Future {
        request.headers_mut().insert(USER_AGENT, self.who.clone());
        if let Some(witness) = &self.witness {
            witness.sends(self.who.to_str().unwrap_or_default(), &request);
        }
        let (there, back) = (self.leg(), self.leg());
        let mut wire = self.clone();
        let (answer, waiting) = oneshot::channel();
        tokio::spawn(async move {
            let result = async {
                wire.partition.cross().await?;
                wire.power.cross().await?;
                time::sleep(there).await;
                let about_lease = is_lease(&request);
                let patched = patched_node(&request).map(str::to_owned);
                if let Some(snare) = &wire.snare {
                    snare.pass(patched.as_deref()).await;
                }
                let doomed = wire.witness.as_ref().and_then(|witness| witness.doomed(&request));
                let request = match wire.loses {
                    Some(loss) => without(loss, request).await?,
                    None => request,
                };
                let result = wire.api.call(request).await;
                if let Some(witness) = &wire.witness {
                    if about_lease {
                        witness.looks();
                    }
                    if let Some(doomed) = doomed {
                        witness.deleted(wire.who.to_str().unwrap_or_default(), doomed);
                    }
                    if let Some(name) = patched {
                        witness.patched(wire.who.to_str().unwrap_or_default(), &name);
                    }
                }
                time::sleep(back).await;
                wire.partition.cross().await?;
                wire.power.cross().await?;
                Ok(result?)
            };
            // Nobody waiting any more is no concern of the server.
            let _ = answer.send(result.await);
        });
        Box::pin(async move { waiting.await? })
    }
}

/// What a careless program would have sent.
async fn without(
    loss: Loss,
    request: Request<kube::client::Body>,
) -> Result<Request<kube::client::Body>, BoxError> {
    let about_node = patched_node(&request).is_some();
    if request.method() != Method::PATCH || (loss == Loss::NodeUid) != about_node {
        return Ok(request);
    }
    let (head, body) = request.into_parts();
    let bytes = body.collect_bytes().await?;
    let mut named_cloud: serde_json::Value = serde_json::from_slice(&bytes)?;
    let (parent, key) = match loss {
        Loss::Intent => ("/metadata/annotations", INTENT_ANNOTATION),
        Loss::NodeUid => ("/metadata", "uid"),
    };
    if let Some(parent) = named_cloud.pointer_mut(parent).and_then(|parent| parent.as_object_mut()) {
        parent.remove(key);
    }
    Ok(Request::from_parts(head, serde_json::to_vec(&named_cloud)?.into()))
}
