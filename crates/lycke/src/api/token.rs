//! Who is let in.

use std::hint::black_box;

use cloudberth_core::Secret;
use http::{HeaderMap, header::AUTHORIZATION};

use crate::refusal::Refusal;

/// Refuses whoever does not send the token.
pub(super) fn check(token: Option<&Secret>, headers: &HeaderMap) -> Result<(), Refusal> {
    let Some(token) = token else { return Ok(()) };
    let sent = headers.get(AUTHORIZATION).and_then(|value| value.to_str().ok()).and_then(bearer);
    match sent {
        Some(sent) if is_same(sent.as_bytes(), token.expose().as_bytes()) => Ok(()),
        Some(_) => Err(Refusal::new(401, "unauthorized", "the token is wrong")),
        None => Err(Refusal::new(401, "unauthorized", "send the token as Authorization: Bearer TOKEN")),
    }
}

fn bearer(header: &str) -> Option<&str> {
    let (scheme, token) = header.split_once(' ')?;
    scheme.eq_ignore_ascii_case("bearer").then(|| token.trim())
}

/// Takes as long for a token that is nearly right as for any other, so that nobody can feel their way to it.
fn is_same(sent: &[u8], right: &[u8]) -> bool {
    let mut difference = sent.len() ^ right.len();
    for (at, byte) in right.iter().enumerate() {
        let sent = sent.get(at).copied().unwrap_or(!byte);
        difference |= usize::from(black_box(sent ^ byte));
    }
    black_box(difference) == 0
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_the_token_opens() {
        let token = Secret::new("s3cr3t").unwrap();
        let table = [
            ("CL-69 the token", Some("Bearer s3cr3t"), true),
            ("CL-69 in another spelling", Some("bearer  s3cr3t "), true),
            ("CL-69 a wrong one", Some("Bearer s3cr3T"), false),
            ("CL-69 its beginning", Some("Bearer s3cr3"), false),
            ("CL-69 more than it", Some("Bearer s3cr3tt"), false),
            ("CL-69 nothing", Some("Bearer "), false),
            ("CL-69 another scheme", Some("Basic s3cr3t"), false),
            ("CL-69 no header", None, false),
        ];
        for (case, header, want) in table {
            let mut headers = HeaderMap::new();
            if let Some(header) = header {
                headers.insert(AUTHORIZATION, header.parse().unwrap());
            }
            assert_eq!(check(Some(&token), &headers).is_ok(), want, "{case}");
            assert!(check(None, &headers).is_ok(), "no token is asked for");
        }
    }
}
