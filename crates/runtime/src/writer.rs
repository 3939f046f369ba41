//! The one way to write to a cluster: every write asks the leader's claim when it is sent (law 9) and ends by its
//! deadline (law 12).

use std::{fmt, sync::Arc, time::Duration};

use cloudberth_core::{Call, Category, Clock, Error, Result, call::Gate, lookup::Lookup, time::Tick};
use kube::{
    Client,
    api::{DeleteParams, GetParams, Patch, PatchParams, PostParams, Preconditions, Request},
};
use serde::de::DeserializeOwned;
use serde_json::Value;

use crate::{
    api_error::{is_forbidden, is_over, translate},
    informer::Informer,
    object::{Object, Watched},
};

/// A request, or why it cannot be built.
pub(crate) type Built = std::result::Result<http::Request<Vec<u8>>, kube::core::request::Error>;

/// Writes to one cluster as far as a gate allows, and reads single objects from it.
///
/// A `path` is that of a kind in a namespace, as [`Resource::url_path`](kube::Resource::url_path) gives it.
#[derive(Clone)]
pub struct Writer {
    client: Client,
    clock: Arc<dyn Clock>,
    gate: Arc<dyn Gate>,
}

impl Writer {
    /// Writes with this client as far as `gate` allows.
    pub fn new(client: Client, clock: Arc<dyn Clock>, gate: Arc<dyn Gate>) -> Self {
        Self { client, clock, gate }
    }

    /// Writes to the same cluster as far as another gate allows.
    #[must_use]
    pub fn behind(&self, gate: Arc<dyn Gate>) -> Self {
        Self { gate, ..self.clone() }
    }

    /// The client, for reads only.
    pub const fn client(&self) -> &Client {
        &self.client
    }

    /// The clock by which claims and deadlines are counted.
    pub fn clock(&self) -> &Arc<dyn Clock> {
        &self.clock
    }

    /// The gate that says until when writes may be sent.
    pub fn gate(&self) -> Arc<dyn Gate> {
        Arc::clone(&self.gate)
    }

    /// A call that may take as long as `patience`.
    pub fn call(&self, patience: Duration) -> Call {
        Call::new(self.clock.now() + patience, Arc::clone(&self.gate))
    }

    /// Reads an object from the API server, not from a store. One that cannot be decoded is unknown.
    pub async fn read<V: Watched>(&self, call: &Call, path: &str, name: &str) -> Lookup<V> {
        let request = Request::new(path).get(name, &GetParams::default());
        let answer = async {
            let until = call.read_until(self.clock.now())?;
            self.send::<Object<V>>(until, request.map_err(|why| bad_request(&why))?).await?.view
        };
        match answer.await {
            Ok(view) => Lookup::Present(view),
            Err(why) if why.category() == Category::NotFound => Lookup::Absent,
            Err(why) => Lookup::Unknown(why),
        }
    }

    /// Creates an object. If there is one of its name, the error is a conflict.
    pub async fn create(&self, call: &Call, path: &str, body: &Value) -> Result<Value> {
        Ok(self.try_create(call, path, body).await?)
    }

    /// The same, for whoever wants to know whether only a right is missing.
    pub(crate) async fn try_create(
        &self,
        call: &Call,
        path: &str,
        body: &Value,
    ) -> std::result::Result<Value, Failed> {
        let request = bytes(body).and_then(|bytes| Request::new(path).create(&PostParams::default(), bytes));
        self.attempt(call, request).await
    }

    /// Merges `body` into an object.
    pub async fn merge(&self, call: &Call, path: &str, name: &str, body: &Value) -> Result<Value> {
        Ok(self.try_merge(call, path, name, body).await?)
    }

    /// The same, for whoever wants to know whether only a right is missing.
    pub(crate) async fn try_merge(
        &self,
        call: &Call,
        path: &str,
        name: &str,
        body: &Value,
    ) -> std::result::Result<Value, Failed> {
        let request = Request::new(path).patch(name, &PatchParams::default(), &Patch::Merge(body));
        self.attempt(call, request).await
    }

    /// Replaces an object by `body`, which is the object as it was read, changed. If it changed since, or another has its
    /// name now, nothing is written and the error is a conflict.
    pub async fn replace(&self, call: &Call, path: &str, body: &Value) -> Result<Value> {
        Ok(self.attempt(call, replacement(path, body)?).await?)
    }

    /// Deletes an object as it was read. If it changed since, or another has its name now, nothing is deleted and the error
    /// is a conflict. An object that is gone is a success.
    pub async fn delete<V: Watched>(&self, call: &Call, path: &str, name: &str, read: &V) -> Result<()> {
        let preconditions = Preconditions {
            uid: Some(read.uid().to_owned()),
            resource_version: Some(read.resource_version().to_owned()),
        };
        let params = DeleteParams { preconditions: Some(preconditions), ..DeleteParams::default() };
        match self.attempt::<Value>(call, Request::new(path).delete(name, &params)).await.map_err(Error::from)
        {
            Err(why) if why.category() == Category::NotFound => Ok(()),
            answer => answer.map(|_| ()),
        }
    }

    /// Sends a write about the watched object with this UID. Its answer is known to everybody before the watch delivers
    /// it.
    pub(crate) async fn write<V: Watched>(
        &self,
        call: &Call,
        request: Built,
        known: &Informer<V>,
        uid: &str,
    ) -> Result<Arc<V>> {
        if uid.is_empty() {
            return Err(no_uid());
        }
        let view = self.attempt::<Object<V>>(call, request).await?.view?;
        // The API server compares the UIDs. Should it not, at least nothing is decided from its answer.
        if view.uid() != uid {
            return Err(another());
        }
        known.wrote(view.clone());
        Ok(Arc::new(view))
    }

    /// Sends a write; all of them go through here. The claim is checked now, and again by a client that holds the request
    /// back before it leaves.
    async fn attempt<T: DeserializeOwned>(
        &self,
        call: &Call,
        request: Built,
    ) -> std::result::Result<T, Failed> {
        let mut request = request.map_err(|why| bad_request(&why))?;
        let write = call.write(self.clock.now())?;
        request.extensions_mut().insert(write.leave(Arc::clone(&self.clock)));
        let left = write.until().since(self.clock.now());
        let Ok(answer) = tokio::time::timeout(left, self.client.request::<T>(request)).await else {
            return Err(too_slow().into());
        };
        if answer.as_ref().err().is_none_or(is_over) {
            write.answered();
        }
        answer.map_err(|why| Failed { is_forbidden: is_forbidden(&why), why: translate(&why) })
    }

    /// Sends a read.
    pub(crate) async fn send<T: DeserializeOwned>(
        &self,
        until: Tick,
        request: http::Request<Vec<u8>>,
    ) -> Result<T> {
        let left = until.since(self.clock.now());
        match tokio::time::timeout(left, self.client.request::<T>(request)).await {
            Ok(answer) => answer.map_err(|why| translate(&why)),
            Err(_) => Err(too_slow()),
        }
    }
}

/// A write that failed.
#[derive(Debug)]
pub(crate) struct Failed {
    pub(crate) why: Error,
    /// The credential is good, and lacks the right.
    pub(crate) is_forbidden: bool,
}

impl From<Error> for Failed {
    fn from(why: Error) -> Self {
        Self { why, is_forbidden: false }
    }
}

impl From<Failed> for Error {
    fn from(failed: Failed) -> Self {
        failed.why
    }
}

/// The request that replaces an object as it was read; without its version it would undo what others wrote.
pub(crate) fn replacement(path: &str, body: &Value) -> Result<Built> {
    let text = |pointer: &str| body.pointer(pointer).and_then(Value::as_str).unwrap_or_default();
    if text("/metadata/uid").is_empty() {
        return Err(no_uid());
    }
    if text("/metadata/resourceVersion").is_empty() {
        return Err(Error::permanent(
            "a replacement that does not say which version it replaces is not sent",
        ));
    }
    let name = text("/metadata/name");
    Ok(bytes(body).and_then(|bytes| Request::new(path).replace(name, &PostParams::default(), bytes)))
}

fn bytes(body: &Value) -> std::result::Result<Vec<u8>, kube::core::request::Error> {
    serde_json::to_vec(body).map_err(kube::core::request::Error::SerializeBody)
}

fn no_uid() -> Error {
    Error::permanent("a write that does not say by its UID which object it is for is not sent")
}

fn another() -> Error {
    Error::new(Category::NotFound, "the object is gone; another of its name has taken its place")
}

fn too_slow() -> Error {
    Error::temporary("the Kubernetes API did not answer in time")
}

/// A request that cannot be built, because of an invalid name.
fn bad_request(why: &kube::core::request::Error) -> Error {
    Error::permanent(why.to_string())
}

impl fmt::Debug for Writer {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Writer").finish_non_exhaustive()
    }
}
