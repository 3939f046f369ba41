//! A service on a port: the loop that accepts connections.

use http::{Request, Response};
use http_body::Body;
use hyper::{body::Incoming, service::service_fn};
use hyper_util::{
    rt::{TokioExecutor, TokioIo},
    server::conn::auto::Builder,
};
use tokio::{net::TcpListener, task::JoinSet};
use tokio_rustls::TlsAcceptor;
use tower::Service;

use crate::service::{BoxError, Disconnected};

/// Accepts connections for ever. They end when this future is dropped.
pub async fn accept<S, B>(service: S, listener: TcpListener, acceptor: Option<TlsAcceptor>)
where
    S: Service<Request<Incoming>, Response = Response<B>, Error = Disconnected>
        + Clone
        + Send
        + Sync
        + 'static,
    S::Future: Send,
    B: Body + Send + 'static,
    B::Data: Send,
    B::Error: Into<BoxError>,
{
    let mut connections = JoinSet::new();
    loop {
        tokio::select! {
            biased;
            accepted = listener.accept() => {
                let Ok((stream, _)) = accepted else { continue };
                let _ = stream.set_nodelay(true);
                let (service, acceptor) = (service.clone(), acceptor.clone());
                connections.spawn(async move {
                    match acceptor {
                        None => connection(service, TokioIo::new(stream)).await,
                        Some(acceptor) => {
                            if let Ok(stream) = acceptor.accept(stream).await {
                                connection(service, TokioIo::new(stream)).await;
                            }
                        }
                    }
                });
            }
            Some(_) = connections.join_next() => {}
        }
    }
}

async fn connection<S, B, I>(service: S, stream: I)
where
    S: Service<Request<Incoming>, Response = Response<B>, Error = Disconnected>
        + Clone
        + Send
        + Sync
        + 'static,
    S::Future: Send,
    B: Body + Send + 'static,
    B::Data: Send,
    B::Error: Into<BoxError>,
    I: hyper::rt::Read + hyper::rt::Write + Unpin + Send + 'static,
{
    let service = service_fn(move |request: Request<Incoming>| service.clone().call(request));
    // An error here is a client that went away, or a fault that cut it off.
    let _ = Builder::new(TokioExecutor::new()).serve_connection(stream, service).await;
}
