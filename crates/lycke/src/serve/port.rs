//! The API on a port.

use std::{sync::Arc, time::Duration};

use hyper::{body::Incoming, server::conn::http1, service::service_fn};
use hyper_util::rt::{TokioIo, TokioTimer};
use tokio::{
    net::{TcpListener, TcpStream},
    sync::{Semaphore, watch},
    task::JoinSet,
    time::{sleep, timeout},
};
use tower::Service as _;

use crate::api::Api;

/// Connections that are open at once; more wait.
const CONNECTIONS: usize = 512;
/// For the header of a request, and from one request of a connection to the next.
const HEADER: Duration = Duration::from_secs(75);
/// For requests in flight when the service ends.
const GRACE: Duration = Duration::from_secs(5);
/// The wait after a connection could not be accepted, which happens when files run out.
const ACCEPT_AGAIN: Duration = Duration::from_millis(100);

/// Serves until `stop` completes; then requests in flight may finish.
pub async fn accept(api: Api, listener: TcpListener, stop: impl Future<Output = ()>) {
    let (close, closing) = watch::channel(false);
    let mut connections = JoinSet::new();
    let room = Arc::new(Semaphore::new(CONNECTIONS));
    let serving = async {
        loop {
            let Ok(slot) = Arc::clone(&room).acquire_owned().await else { return };
            match listener.accept().await {
                Ok((stream, _)) => {
                    let serving = connection(api.clone(), stream, closing.clone());
                    connections.spawn(async move {
                        serving.await;
                        drop(slot);
                    });
                    // Those that have ended are forgotten.
                    while connections.try_join_next().is_some() {}
                }
                Err(error) => {
                    tracing::warn!(%error, "accept failed");
                    sleep(ACCEPT_AGAIN).await;
                }
            }
        }
    };
    tokio::select! {
        biased;
        () = stop => {}
        () = serving => {}
    }
    drop(listener);
    close.send_replace(true);
    // Who is still there has had its time.
    let _ = timeout(GRACE, async { while connections.join_next().await.is_some() {} }).await;
}

async fn connection(api: Api, stream: TcpStream, mut closing: watch::Receiver<bool>) {
    let _ = stream.set_nodelay(true);
    let service = service_fn(move |request: http::Request<Incoming>| api.clone().call(request));
    let mut builder = http1::Builder::new();
    builder.timer(TokioTimer::new()).header_read_timeout(HEADER);
    let serving = builder.serve_connection(TokioIo::new(stream), service);
    tokio::pin!(serving);
    tokio::select! {
        biased;
        // An error here is a client that went away or sent nonsense.
        _ = serving.as_mut() => return,
        _ = closing.wait_for(|closing| *closing) => serving.as_mut().graceful_shutdown(),
    }
    let _ = serving.await;
}
