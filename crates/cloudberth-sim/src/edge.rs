//! What every simulated server has at its edge: bodies that come in, and connections that break.

use bytes::{Buf, Bytes, BytesMut};
use http_body::Body;
use http_body_util::BodyExt;

/// Any error, as bodies of requests bring them.
pub(crate) type BoxError = Box<dyn std::error::Error + Send + Sync>;

/// The connection broke: the one way in which a call fails without an answer.
#[derive(Debug, thiserror::Error)]
#[error("{0}")]
pub struct Broken(String);

impl Broken {
    pub(crate) fn new(why: &str) -> Self {
        Self(why.to_owned())
    }
}

/// Larger bodies are refused.
pub(crate) const BODY_LIMIT: usize = 3 << 20;

/// The whole body, or nothing when it is too large.
pub(crate) async fn collect<B: Body>(body: B) -> Result<Option<Bytes>, B::Error> {
    let mut body = std::pin::pin!(body);
    let mut whole = BytesMut::new();
    while let Some(frame) = body.frame().await {
        if let Ok(data) = frame?.into_data() {
            if whole.len() + data.remaining() > BODY_LIMIT {
                return Ok(None);
            }
            let mut data = data;
            while data.has_remaining() {
                let chunk = data.chunk().len();
                whole.extend_from_slice(data.chunk());
                data.advance(chunk);
            }
        }
    }
    Ok(Some(whole.freeze()))
}
