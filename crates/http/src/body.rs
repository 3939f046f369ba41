//! Reading the body of an answer.

use bytes::{Bytes, BytesMut};
use http_body::Body;
use http_body_util::{BodyExt, LengthLimitError, Limited};

use crate::transport::AnswerBody;

pub(crate) enum BodyError {
    TooLong,
    Lost(String),
}

/// Reads a body to its end. A listing has megabytes, so they are held only once: a single piece is returned as it is, and
/// several are copied into one buffer as they arrive.
pub(crate) async fn collect(body: AnswerBody, limit: usize) -> Result<Bytes, BodyError> {
    let mut body = Limited::new(body, limit);
    let expected = usize::try_from(body.size_hint().lower()).unwrap_or(limit).min(limit);
    let (mut only, mut several) = (Bytes::new(), BytesMut::new());
    while let Some(frame) = body.frame().await {
        let piece = match frame {
            Ok(frame) => frame.into_data().unwrap_or_default(),
            Err(error) if error.is::<LengthLimitError>() => return Err(BodyError::TooLong),
            Err(error) => return Err(BodyError::Lost(error.to_string())),
        };
        if only.is_empty() && several.is_empty() {
            only = piece;
            continue;
        }
        if several.is_empty() {
            several.reserve(expected);
        }
        several.extend_from_slice(&std::mem::take(&mut only));
        several.extend_from_slice(&piece);
    }
    Ok(if several.is_empty() { only } else { several.freeze() })
}

#[cfg(test)]
mod tests {
    use futures_util::stream;
    use http_body::Frame;
    use http_body_util::StreamBody;

    use super::*;
    use crate::transport::TransportError;

    fn body(pieces: &[Result<&'static str, &'static str>]) -> AnswerBody {
        let frame = |piece: &Result<&'static str, &'static str>| match piece {
            Ok(text) => Ok(Frame::data(Bytes::from_static(text.as_bytes()))),
            Err(why) => Err(TransportError::lost(*why)),
        };
        StreamBody::new(stream::iter(pieces.iter().map(frame).collect::<Vec<_>>())).boxed_unsync()
    }

    #[tokio::test]
    async fn pieces_become_one_text_or_an_error() {
        let table: [(&[_], &str); 8] = [
            (&[], ""),
            (&[Ok("abc")], "abc"),
            (&[Ok(""), Ok("abc"), Ok("")], "abc"),
            (&[Ok("ab"), Ok("c")], "abc"),
            (&[Ok("a"), Ok(""), Ok("b"), Ok("c"), Ok("d")], "abcd"),
            (&[Ok("abc"), Ok("de")], "too long"),
            (&[Ok("abcde")], "too long"),
            (&[Ok("a"), Err("reset")], "lost"),
        ];
        for (pieces, want) in table {
            let got = match collect(body(pieces), 4).await {
                Ok(whole) => String::from_utf8(whole.to_vec()).unwrap(),
                Err(BodyError::TooLong) => "too long".to_owned(),
                Err(BodyError::Lost(why)) => {
                    assert!(why.contains("reset"), "{why}");
                    "lost".to_owned()
                }
            };
            assert_eq!(got, want, "{pieces:?}");
        }
    }
}
