//! The service in the process of the manager: one command, and nothing else to install. Requests to it never leave the
//! process, so it needs neither a port nor a token.

use std::{
    collections::BTreeMap,
    convert::Infallible,
    fmt,
    path::PathBuf,
    pin::Pin,
    sync::{Arc, OnceLock},
    task::{Context, Poll},
};

use cloudberth_core::{Clock, Error, Result, provider::Boxed};
use cloudberth_http::{Env, RequestBody, Transport, TransportError};
use cloudberth_lycke::{
    api::{Api, ApiResponse},
    control::Control,
    plane::{
        PlaneObserver,
        socket::{InheritedSockets, PlaneSettings, SocketPlane},
    },
    serve::{Prepared, follow},
    store::default_directory,
    vagrant::VagrantCommand,
};
use http::Request;
use tokio::{sync::Notify, task::AbortHandle};
use tower::Service;

use crate::provider::OwnService;

/// The service, before and after its start.
pub(crate) struct EmbeddedService {
    inventory: PathBuf,
    state: PathBuf,
    clock: Arc<dyn Clock>,
    running: Arc<OnceLock<Running>>,
}

struct Running {
    api: Api,
    control: Control,
    /// Reads the inventory again when it changes.
    following: AbortHandle,
}

impl EmbeddedService {
    /// A service that is not started yet.
    pub(crate) fn new(
        inventory: PathBuf,
        state: Option<PathBuf>,
        env: &Env,
        clock: Arc<dyn Clock>,
    ) -> Result<Self> {
        let usual = || {
            let named = ["XDG_STATE_HOME", "HOME"].into_iter();
            let named = named.filter_map(|name| Some((name.to_owned(), env.get(name)?.to_owned())));
            default_directory(&named.collect::<BTreeMap<_, _>>())
        };
        let missing = || {
            let text =
                "neither HOME nor CLOUDLYCKE_STATE_DIR is set, so there is no place for the service's state";
            Error::user_input(text)
        };
        let state = state.or_else(usual).ok_or_else(missing)?;
        Ok(Self { inventory, state, clock, running: Arc::default() })
    }

    /// What requests are sent through.
    pub(crate) fn transport(&self) -> Transport {
        Transport::new(InProcess(Arc::clone(&self.running)))
    }

    async fn run(&self) -> Result<()> {
        if self.running.get().is_some() {
            return Ok(());
        }
        let prepared = Prepared::new(&self.inventory, &self.state, Arc::clone(&self.clock));
        let prepared = prepared.map_err(|why| Error::user_input(format!("CLOUDLYCKE_INVENTORY: {why}")))?;
        let observer: Arc<dyn PlaneObserver> = Arc::new(prepared.events().clone());
        let settings =
            PlaneSettings { connections: prepared.connections_total(), ..PlaneSettings::default() };
        let inherited = InheritedSockets::of_this_process();
        let plane = SocketPlane::start_with(settings, inherited, observer, Arc::clone(&self.clock));
        let plane = plane.map_err(|why| Error::permanent(format!("the data plane does not start: {why}")))?;
        let control = prepared.start(Arc::new(plane));
        control.restore().await;
        let followed = control.clone();
        let following = tokio::spawn(async move { follow(&followed, &VagrantCommand, &Notify::new()).await });
        let api = Api::new(control.clone(), None);
        let running = Running { api, control, following: following.abort_handle() };
        if let Err(second) = self.running.set(running) {
            second.following.abort();
        }
        Ok(())
    }
}

impl OwnService for EmbeddedService {
    fn start(&self) -> Boxed<'_, Result<()>> {
        Box::pin(self.run())
    }

    /// Listeners are closed at once; connections may end for as long as the caller waits.
    fn stop(&self) -> Boxed<'_, ()> {
        Box::pin(async {
            if let Some(running) = self.running.get() {
                running.following.abort();
                running.control.close().await;
            }
        })
    }
}

impl fmt::Debug for EmbeddedService {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("EmbeddedService").field("inventory", &self.inventory).finish_non_exhaustive()
    }
}

/// The API of a service in this process.
#[derive(Clone)]
struct InProcess(Arc<OnceLock<Running>>);

impl Service<Request<RequestBody>> for InProcess {
    type Response = ApiResponse;
    type Error = TransportError;
    type Future = Pin<Box<dyn Future<Output = Result<ApiResponse, TransportError>> + Send>>;

    fn poll_ready(&mut self, _: &mut Context<'_>) -> Poll<Result<(), TransportError>> {
        Poll::Ready(Ok(()))
    }

    fn call(&mut self, request: Request<RequestBody>) -> Self::Future {
        match self.0.get() {
            None => Box::pin(async { Err(TransportError::not_sent("the service has not started yet")) }),
            Some(running) => {
                let answer = running.api.clone().call(request);
                Box::pin(async move { answer.await.map_err(|never: Infallible| match never {}) })
            }
        }
    }
}
