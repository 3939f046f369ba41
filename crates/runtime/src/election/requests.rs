//! The requests of an election: get, create, replace.

use std::sync::Arc;

use cloudberth_core::{
    Category, Clock, Error, Lookup, Result,
    decide::election::{Action, Config, Input, Lease},
    time::Tick,
};
use kube::{
    Client,
    api::{GetParams, PostParams, Request},
};
use serde_json::Value;

use crate::api_error::translate;

#[derive(Clone)]
pub(super) struct LeaseApi {
    pub(super) client: Client,
    pub(super) clock: Arc<dyn Clock>,
    path: String,
    pub(super) name: String,
}

impl LeaseApi {
    pub(super) fn new(client: Client, clock: Arc<dyn Clock>, config: &Config) -> Self {
        let path = format!("/apis/coordination.k8s.io/v1/namespaces/{}/leases", config.namespace);
        Self { client, clock, path, name: config.name.clone() }
    }

    /// Sends the candidate's request, within its deadline. Other actions do nothing.
    pub(super) async fn carry_out(self, action: Action) -> Input {
        match action {
            Action::Get { ticket, until } => Input::Read(ticket, self.get(until).await),
            Action::Create { ticket, until, lease } => {
                let request = || Request::new(&*self.path).create(&PostParams::default(), bytes(&lease)?);
                Input::Wrote(ticket, self.send(until, request()).await)
            }
            Action::Update { ticket, until, lease } => {
                let put =
                    || Request::new(&*self.path).replace(&self.name, &PostParams::default(), bytes(&lease)?);
                Input::Wrote(ticket, self.send(until, put()).await)
            }
            Action::Wait(_) | Action::Stopped { .. } => Input::Wake,
        }
    }

    /// Reads the Lease from the API server. One that cannot be decoded is unknown, not absent.
    pub(super) async fn get(&self, until: Tick) -> Lookup<Lease> {
        let request = Request::new(&*self.path).get(&self.name, &GetParams::default());
        match self.send(until, request).await {
            Ok(lease) => Lookup::Present(lease),
            Err(why) if why.category() == Category::NotFound => Lookup::Absent,
            Err(why) => Lookup::Unknown(why),
        }
    }

    async fn send(
        &self,
        until: Tick,
        request: std::result::Result<http::Request<Vec<u8>>, kube::core::request::Error>,
    ) -> Result<Lease> {
        let request = request.map_err(|why| Error::permanent(format!("internal error: {why}")))?;
        let left = until.since(self.clock.now());
        match tokio::time::timeout(left, self.client.request::<Value>(request)).await {
            Ok(Ok(object)) => Lease::decode(object),
            Ok(Err(why)) => Err(translate(&why)),
            Err(_) => Err(Error::temporary("the Kubernetes API did not answer in time")),
        }
    }
}

fn bytes(lease: &Lease) -> std::result::Result<Vec<u8>, kube::core::request::Error> {
    serde_json::to_vec(lease.object()).map_err(kube::core::request::Error::SerializeBody)
}
