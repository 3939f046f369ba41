//! The body of an answer: whole, or cut off in the middle.

use std::{
    pin::Pin,
    task::{Context, Poll},
};

use bytes::Bytes;
use http_body::{Frame, SizeHint};

use crate::edge::Broken;

/// The body of an answer.
#[derive(Debug, Default)]
pub struct Body {
    rest: Option<Bytes>,
    /// What the header says.
    length: u64,
    cut: bool,
}

impl Body {
    pub(crate) fn whole(bytes: Bytes) -> Self {
        let length = u64::try_from(bytes.len()).unwrap_or_default();
        Self { rest: Some(bytes).filter(|bytes| !bytes.is_empty()), length, cut: false }
    }

    /// Half of it, and then the connection breaks.
    #[must_use]
    pub(crate) fn cut(mut self) -> Self {
        self.rest = self.rest.map(|bytes| bytes.slice(..bytes.len() / 2));
        self.cut = true;
        self
    }
}

impl http_body::Body for Body {
    type Data = Bytes;
    type Error = Broken;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        _: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, Broken>>> {
        if let Some(bytes) = self.rest.take() {
            return Poll::Ready(Some(Ok(Frame::data(bytes))));
        }
        let cut = std::mem::take(&mut self.cut);
        Poll::Ready(cut.then(|| Err(Broken::new("the connection broke in the middle of the answer"))))
    }

    fn size_hint(&self) -> SizeHint {
        SizeHint::with_exact(self.length)
    }

    fn is_end_stream(&self) -> bool {
        self.rest.is_none() && !self.cut
    }
}
