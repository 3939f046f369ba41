//! The body of an answer: whole, or cut off in the middle.

use std::{
    pin::Pin,
    task::{Context, Poll},
};

use bytes::Bytes;
use http_body::{Frame, SizeHint};

use crate::service::Disconnected;

/// The body of an answer that is all there before it is sent.
#[derive(Debug, Default)]
pub struct Body {
    rest: Option<Bytes>,
    /// The length of the whole, which the header states.
    length: u64,
    cut: Cut,
}

/// How a body ends.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
enum Cut {
    /// With its last byte.
    #[default]
    Never,
    /// Cut off, once the bytes before had time to leave.
    Soon,
    /// Cut off when it is polled next.
    Now,
}

impl Body {
    /// A body that arrives as it is.
    pub fn whole(bytes: Bytes) -> Self {
        let length = u64::try_from(bytes.len()).unwrap_or_default();
        Self { rest: Some(bytes).filter(|bytes| !bytes.is_empty()), length, cut: Cut::Never }
    }

    /// Half of it, and then the connection breaks.
    #[must_use]
    pub fn cut(mut self) -> Self {
        self.rest = self.rest.map(|bytes| bytes.slice(..bytes.len() / 2));
        self.cut = Cut::Soon;
        self
    }
}

impl http_body::Body for Body {
    type Data = Bytes;
    type Error = Disconnected;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, Disconnected>>> {
        if let Some(bytes) = self.rest.take() {
            return Poll::Ready(Some(Ok(Frame::data(bytes))));
        }
        match self.cut {
            Cut::Never => Poll::Ready(None),
            Cut::Soon => {
                self.cut = Cut::Now;
                context.waker().wake_by_ref();
                Poll::Pending
            }
            Cut::Now => {
                self.cut = Cut::Never;
                Poll::Ready(Some(Err(Disconnected::new("the connection broke in the middle of the answer"))))
            }
        }
    }

    fn size_hint(&self) -> SizeHint {
        SizeHint::with_exact(self.length)
    }

    fn is_end_stream(&self) -> bool {
        self.rest.is_none() && self.cut == Cut::Never
    }
}
