//! A client of the API: one connection for one request.

use bytes::Bytes;
use cloudberth_core::Secret;
use http::{Method, Request, Uri, header};
use http_body_util::{BodyExt as _, Full};
use hyper::client::conn::http1;
use hyper_util::rt::TokioIo;
use serde_json::Value;
use tokio::net::TcpStream;

use super::Failure;

#[derive(Debug)]
pub(super) struct Client {
    /// Host and port.
    authority: String,
    token: Option<Secret>,
}

impl Client {
    /// A client of the API at this URL.
    pub(super) fn new(url: &str, token: Option<Secret>) -> Result<Self, Failure> {
        let wrong =
            || Failure::new(format!("{url:?} is not the URL of an API, such as http://127.0.0.1:7733"));
        let uri: Uri = url.parse().map_err(|_| wrong())?;
        let host = uri.host().filter(|_| uri.scheme_str() == Some("http")).ok_or_else(wrong)?;
        Ok(Self { authority: format!("{host}:{}", uri.port_u16().unwrap_or(80)), token })
    }

    pub(super) async fn get(&self, path: &str) -> Result<Value, Failure> {
        self.send(Method::GET, path, None).await
    }

    pub(super) async fn send(
        &self,
        method: Method,
        path: &str,
        body: Option<&Value>,
    ) -> Result<Value, Failure> {
        let Self { authority, token } = self;
        let stream = TcpStream::connect(authority).await.map_err(|why| {
            Failure::new(format!(
                "no Cloudlycke answers at {authority} ({why}); start one with: cloudberth lycke serve --inventory FILE"
            ))
        })?;
        let (mut sender, connection) = http1::handshake(TokioIo::new(stream)).await?;
        let mut request = Request::builder().method(method).uri(path).header(header::HOST, authority);
        if let Some(token) = token {
            request = request.header(header::AUTHORIZATION, format!("Bearer {}", token.expose()));
        }
        let body = body.map(Value::to_string).unwrap_or_default();
        let request = request.body(Full::new(Bytes::from(body)))?;
        let answered = async {
            let response = sender.send_request(request).await?;
            let status = response.status();
            let body = response.into_body().collect().await?.to_bytes();
            Ok::<_, hyper::Error>((status, body))
        };
        tokio::pin!(answered);
        let (status, body) = tokio::select! {
            answer = &mut answered => answer?,
            ended = connection => {
                ended?;
                answered.await?
            }
        };
        let answer: Value = serde_json::from_slice(&body).unwrap_or_default();
        if status.is_success() {
            return Ok(answer);
        }
        let message = answer.get("message").and_then(Value::as_str).unwrap_or("no reason was given");
        Err(Failure::new(format!("{message} ({status})")))
    }
}
