//! Stand-ins for kube-proxy and the pods behind it: a small HTTP server at every node port of every running instance.

use std::{
    collections::{BTreeMap, BTreeSet},
    convert::Infallible,
    net::SocketAddr,
    sync::{
        Arc, Mutex, PoisonError,
        atomic::{AtomicBool, Ordering},
    },
};

use bytes::Bytes;
use cloudberth_core::{ServiceView, view::ServiceProtocol};
use http::{HeaderValue, Request, Response};
use http_body_util::Full;
use sim_kit::{Disconnected, Served, serve};
use tokio::net::TcpListener;

use super::clouds::WorldCloud;

/// The header in which a stand-in says which node it is.
pub(crate) const NODE_HEADER: &str = "x-node";

/// The servers that are open.
#[derive(Default)]
pub(crate) struct NodePorts {
    open: Mutex<BTreeMap<SocketAddr, Served>>,
    dead: AtomicBool,
}

/// A node port that should answer.
type Wanted = BTreeMap<SocketAddr, String>;

/// Which node ports should answer, and for which node.
fn wanted(cloud: &dyn WorldCloud, services: &[ServiceView]) -> Wanted {
    let ports: BTreeSet<u16> = services
        .iter()
        .filter(|service| !service.deleting)
        .flat_map(|service| {
            let tcp = service.ports.iter().filter(|port| port.protocol == ServiceProtocol::Tcp);
            tcp.map(|port| port.node_port).chain([service.health_check_node_port]).collect::<Vec<_>>()
        })
        .filter_map(|port| u16::try_from(port).ok().filter(|port| *port > 0))
        .collect();
    let running = cloud.instances().into_iter().filter(|instance| instance.running);
    running
        .filter_map(|instance| Some((cloud.node_address(&instance.name)?, instance.name)))
        .flat_map(|(address, name)| {
            ports.iter().map(move |port| (SocketAddr::new(address, *port), name.clone())).collect::<Vec<_>>()
        })
        .collect()
}

impl NodePorts {
    /// Opens and closes servers until the right ones are open. Says what could not be opened.
    pub(crate) async fn follow(
        &self,
        cloud: &dyn WorldCloud,
        services: &[ServiceView],
    ) -> Result<(), String> {
        let wanted = if self.dead.load(Ordering::Relaxed) { Wanted::new() } else { wanted(cloud, services) };
        let missing: Vec<_> = {
            let mut open = self.open.lock().unwrap_or_else(PoisonError::into_inner);
            open.retain(|address, _| wanted.contains_key(address));
            wanted.into_iter().filter(|(address, _)| !open.contains_key(address)).collect()
        };
        let mut wrong = None;
        for (address, node) in missing {
            match open(address, node).await {
                Ok(server) => {
                    self.open.lock().unwrap_or_else(PoisonError::into_inner).insert(address, server);
                }
                Err(why) => wrong = wrong.or(Some(format!("node port {address} does not open: {why}"))),
            }
        }
        wrong.map_or(Ok(()), Err)
    }

    /// From now on no node port answers, although the instances run.
    pub(crate) fn die(&self) {
        self.dead.store(true, Ordering::Relaxed);
        self.open.lock().unwrap_or_else(PoisonError::into_inner).clear();
    }
}

async fn open(address: SocketAddr, node: String) -> std::io::Result<Served> {
    let listener = TcpListener::bind(address).await?;
    let node: Arc<str> = node.into();
    let service = tower::service_fn(move |request: Request<hyper::body::Incoming>| {
        let answer = hello(&node, request.uri().path());
        std::future::ready(Ok::<_, Disconnected>(answer))
    });
    serve(service, listener, None)
}

fn hello(node: &str, path: &str) -> Response<http_body_util::combinators::UnsyncBoxBody<Bytes, Infallible>> {
    use http_body_util::BodyExt as _;
    let text = format!("hello from {node}, you asked for {path}\n");
    let mut answer = Response::new(Full::new(Bytes::from(text)).boxed_unsync());
    if let Ok(node) = HeaderValue::from_str(node) {
        answer.headers_mut().insert(NODE_HEADER, node);
    }
    answer
}
