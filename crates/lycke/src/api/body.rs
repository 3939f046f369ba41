//! The body of a request, read as a whole, and the work that it asks for.

use std::{pin::pin, time::Duration};

use bytes::{Buf as _, Bytes, BytesMut};
use http_body::Body;
use http_body_util::BodyExt as _;
use serde_json::Value;
use tokio::time::timeout;

use crate::refusal::Refusal;

/// Larger bodies are refused.
pub(super) const LIMIT: usize = 1 << 20;
/// Of a body that is too large, so much is read and thrown away, so that its sender gets to see the answer.
const PATIENCE: usize = 64 << 20;
/// A body has to arrive in this time.
const TIME: Duration = Duration::from_secs(30);

pub(super) enum Collected {
    Whole(Bytes),
    TooLarge,
    Broken,
}

pub(super) async fn collect<B: Body>(body: B) -> Collected {
    timeout(TIME, read(body)).await.unwrap_or(Collected::Broken)
}

async fn read<B: Body>(body: B) -> Collected {
    let mut body = pin!(body);
    let mut whole = BytesMut::new();
    let mut length = 0_usize;
    while let Some(frame) = body.frame().await {
        let Ok(frame) = frame else { return Collected::Broken };
        let Ok(mut data) = frame.into_data() else { continue };
        length = length.saturating_add(data.remaining());
        if length > PATIENCE {
            break;
        }
        if length <= LIMIT {
            whole.extend_from_slice(&data.copy_to_bytes(data.remaining()));
        }
    }
    if length > LIMIT { Collected::TooLarge } else { Collected::Whole(whole.freeze()) }
}

/// The JSON of a body. How deep it may be nested is limited by the library.
pub(super) fn parse(body: &[u8]) -> Result<Value, Refusal> {
    serde_json::from_slice(body).map_err(|why| Refusal::invalid(format!("the body is not JSON: {why}")))
}

/// Does a piece of work to its end, also if the client goes away meanwhile.
pub(super) async fn finish<T: Send + 'static>(
    work: impl Future<Output = Result<T, Refusal>> + Send + 'static,
) -> Result<T, Refusal> {
    let bug = || Refusal::new(500, "internal", "this request met a bug; the log says more");
    tokio::spawn(work).await.unwrap_or_else(|why| {
        tracing::error!("internal error: a request panicked: {why}");
        Err(bug())
    })
}
