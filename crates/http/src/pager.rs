//! Reading one page of a listing, and finding the next.

use cloudberth_core::{Error, Result};
use http::header::LINK;
use serde::de::DeserializeOwned;
use serde_json::{Value, value::RawValue};

use crate::answer::Answer;

/// Reads the pages of one cloud's listings.
pub trait Pager<T>: Send + Sync {
    /// Reads one page; an error if the page as a whole is not what was expected.
    fn read(&self, answer: &Answer) -> Result<Page<T>>;
}

/// One page of a listing.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Page<T> {
    /// What is on it.
    pub items: Vec<T>,
    /// Where the next one is.
    pub next: Next,
    /// How many things the whole listing has, as this page says.
    pub total: Option<u64>,
    /// Why something on this page may be missing.
    pub flaw: Option<String>,
}

/// Where the next page is.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Next {
    /// This was the last page.
    End,
    /// At this URL. It is followed only if it stays below the client's base.
    Link(String),
    /// Under the next number of this query parameter, until the total is reached or a page is empty.
    Number(&'static str),
}

/// A plain array, without pages.
#[derive(Clone, Copy, Debug)]
pub struct Array;

/// A plain array, with the next page in a `Link` header.
#[derive(Clone, Copy, Debug)]
pub struct LinkHeader;

/// An object that holds the array under a key, and beside it a link to the next page and a total.
#[derive(Clone, Copy, Debug)]
pub struct Envelope {
    /// The key of the array. A page without it is an error, never an empty page.
    pub key: &'static str,
    /// Where the link is, as a JSON pointer: `/links/pages/next`.
    pub next: Option<&'static str>,
    /// Where the total is, as a JSON pointer: `/meta/total`.
    pub total: Option<&'static str>,
}

/// An object that holds the array under a key, with numbered pages.
#[derive(Clone, Copy, Debug)]
pub struct Numbered {
    /// The key of the array. A page without it is an error, never an empty page.
    pub key: &'static str,
    /// The query parameter that holds the page's number, counted from one.
    pub parameter: &'static str,
    /// Where the total is, as a JSON pointer.
    pub total: Option<&'static str>,
}

impl<T: DeserializeOwned> Pager<T> for Array {
    fn read(&self, answer: &Answer) -> Result<Page<T>> {
        Ok(items(answer.body_as::<Vec<&RawValue>>()?))
    }
}

impl<T: DeserializeOwned> Pager<T> for LinkHeader {
    fn read(&self, answer: &Answer) -> Result<Page<T>> {
        let next = answer.headers(&LINK).find_map(next_in_header);
        Ok(Page { next: next.map_or(Next::End, Next::Link), ..items(answer.body_as::<Vec<&RawValue>>()?) })
    }
}

impl<T: DeserializeOwned> Pager<T> for Envelope {
    fn read(&self, answer: &Answer) -> Result<Page<T>> {
        let (mut page, around) = open(answer, self.key)?;
        page.total = total(&around, self.total, &mut page.flaw);
        match self.next.and_then(|pointer| around.pointer(pointer)) {
            None | Some(Value::Null) => {}
            Some(Value::String(link)) if link.is_empty() => {}
            Some(Value::String(link)) => page.next = Next::Link(link.clone()),
            Some(_) => {
                page.flaw.get_or_insert_with(|| "the link to the next page is not text".to_owned());
            }
        }
        Ok(page)
    }
}

impl<T: DeserializeOwned> Pager<T> for Numbered {
    fn read(&self, answer: &Answer) -> Result<Page<T>> {
        let (mut page, around) = open(answer, self.key)?;
        page.total = total(&around, self.total, &mut page.flaw);
        page.next = Next::Number(self.parameter);
        Ok(page)
    }
}

/// The page under `key`, and the other members of its object.
fn open<T: DeserializeOwned>(answer: &Answer, key: &str) -> Result<(Page<T>, Value)> {
    // Items are decoded one by one from their own text; only what is around them becomes a tree.
    let mut object: std::collections::BTreeMap<String, &RawValue> = answer.body_as()?;
    let list = object
        .remove(key)
        .ok_or_else(|| Error::temporary(format!("answered {} without {key:?}", answer.status())))?;
    let list: Vec<&RawValue> = serde_json::from_str(list.get()).map_err(|_| {
        Error::temporary(format!("answered {} with something else than a list as {key:?}", answer.status()))
    })?;
    let around = object.into_iter().filter_map(|(k, v)| Some((k, serde_json::from_str(v.get()).ok()?)));
    Ok((items(list), Value::Object(around.collect())))
}

/// Decodes each item by itself: one that cannot be decoded makes the listing short, but hides no other (law 11).
fn items<T: DeserializeOwned>(list: Vec<&RawValue>) -> Page<T> {
    let mut page = Page { items: Vec::with_capacity(list.len()), next: Next::End, total: None, flaw: None };
    for (at, raw) in list.into_iter().enumerate() {
        match serde_json::from_str(raw.get()) {
            Ok(item) => page.items.push(item),
            Err(e) => {
                page.flaw.get_or_insert_with(|| format!("item {} cannot be read: {e}", at + 1));
            }
        }
    }
    page
}

fn total(around: &Value, pointer: Option<&str>, flaw: &mut Option<String>) -> Option<u64> {
    match around.pointer(pointer?) {
        None | Some(Value::Null) => None,
        Some(value) => {
            let total = value.as_u64();
            if total.is_none() {
                flaw.get_or_insert_with(|| "the total is not a number".to_owned());
            }
            total
        }
    }
}

/// The target of the `next` relation in one `Link` header.
fn next_in_header(header: &str) -> Option<String> {
    let mut rest = header;
    // A target may hold commas, so a link ends where the next target begins.
    while let Some((_, from_target)) = rest.split_once('<') {
        let (target, after) = from_target.split_once('>')?;
        let parameters = after.split('<').next().unwrap_or_default();
        if parameters.split([';', ',']).any(is_next) {
            return Some(target.to_owned());
        }
        rest = after;
    }
    None
}

fn is_next(parameter: &str) -> bool {
    let Some((key, value)) = parameter.split_once('=') else { return false };
    let value = value.trim().trim_matches('"');
    key.trim().eq_ignore_ascii_case("rel")
        && value.split_ascii_whitespace().any(|rel| rel.eq_ignore_ascii_case("next"))
}

#[cfg(test)]
mod tests {
    use http::{HeaderMap, StatusCode};
    use proptest::prelude::*;

    use super::*;
    use crate::answer::{json::any_json, tests::answer};

    #[derive(Clone, Debug, PartialEq, Eq, serde::Deserialize)]
    struct Thing {
        id: u64,
    }

    const ENVELOPE: Envelope =
        Envelope { key: "servers", next: Some("/links/pages/next"), total: Some("/meta/total") };
    const NUMBERED: Numbered = Numbered { key: "servers", parameter: "page", total: Some("/meta/total") };

    /// Ids, next, total and whether there is a flaw.
    fn brief(page: Result<Page<Thing>>) -> Option<(Vec<u64>, Next, Option<u64>, bool)> {
        let page = page.ok()?;
        Some((page.items.iter().map(|t| t.id).collect(), page.next, page.total, page.flaw.is_some()))
    }

    #[test]
    fn envelopes_are_opened() {
        let link = |to: &str| Next::Link(to.to_owned());
        let table = [
            (
                r#"{"servers":[{"id":1},{"id":2}],"meta":{"total":2},"links":null}"#,
                Some((vec![1, 2], Next::End, Some(2), false)),
            ),
            (
                r#"{"servers":[{"id":1}],"links":{"pages":{"next":"/x?page=2"}}}"#,
                Some((vec![1], link("/x?page=2"), None, false)),
            ),
            (r#"{"servers":[],"meta":{"total":0}}"#, Some((vec![], Next::End, Some(0), false))),
            (r#"{"servers":[],"links":{"pages":{"next":""}}}"#, Some((vec![], Next::End, None, false))),
            (r#"{"servers":[{"id":1},{"id":"?"},{"id":3}]}"#, Some((vec![1, 3], Next::End, None, true))),
            (r#"{"servers":[],"links":{"pages":{"next":7}}}"#, Some((vec![], Next::End, None, true))),
            (r#"{"servers":[],"meta":{"total":"many"}}"#, Some((vec![], Next::End, None, true))),
            (r#"{"servers":null}"#, None),
            (r#"{"servers":{}}"#, None),
            (r#"{"meta":{"total":0}}"#, None),
            (r"[]", None),
            ("", None),
            ("<html>", None),
        ];
        for (body, want) in table {
            assert_eq!(brief(ENVELOPE.read(&answer(200, body))), want, "BL-128 {body}");
            let numbered = want.map(|(ids, _, total, _)| (ids, Next::Number("page"), total));
            let got = brief(NUMBERED.read(&answer(200, body)));
            assert_eq!(got.map(|(ids, next, total, _)| (ids, next, total)), numbered, "{body}");
        }
    }

    #[test]
    fn arrays_are_taken_whole() {
        assert_eq!(brief(Array.read(&answer(200, r#"[{"id":4}]"#))), Some((vec![4], Next::End, None, false)));
        assert_eq!(
            brief(Array.read(&answer(200, r#"[{"id":4},{}]"#))),
            Some((vec![4], Next::End, None, true))
        );
        for body in ["", "{}", "null", "[{]", r#"{"detail":"x"}"#] {
            assert_eq!(brief(Array.read(&answer(200, body))), None, "{body}");
        }
    }

    #[test]
    fn the_next_relation_is_found_among_others() {
        let table = [
            (r#"<https://h/a?page=2>; rel="next""#, Some("https://h/a?page=2")),
            (
                r#"<https://h/a?page=9>; rel="last", <https://h/a?x=1,2>; title="y"; REL=next"#,
                Some("https://h/a?x=1,2"),
            ),
            (r#"</a>; rel="prev next""#, Some("/a")),
            (r#"</a>; rel="nextish""#, None),
            ("</a>", None),
            ("</a", None),
            ("", None),
        ];
        for (header, want) in table {
            assert_eq!(next_in_header(header).as_deref(), want, "{header}");
            let mut headers = HeaderMap::new();
            headers.append(LINK, r#"</first>; rel="first""#.parse().unwrap());
            headers.append(LINK, header.parse().unwrap());
            let page: Page<Thing> = LinkHeader.read(&Answer::new(StatusCode::OK, headers, "[]")).unwrap();
            assert_eq!(page.next, want.map_or(Next::End, |to| Next::Link(to.to_owned())), "{header}");
        }
    }

    proptest! {
        #[test]
        fn no_body_upsets_a_pager(value in any_json(), noise in proptest::collection::vec(any::<u8>(), 0..80)) {
            for body in [serde_json::to_string(&value).unwrap(), String::from_utf8_lossy(&noise).into_owned()] {
                let answer = answer(200, &body);
                let _ = Pager::<Thing>::read(&Array, &answer);
                let _ = Pager::<Thing>::read(&LinkHeader, &answer);
                let _ = Pager::<Thing>::read(&ENVELOPE, &answer);
                let _ = Pager::<Thing>::read(&NUMBERED, &answer);
                let _ = answer.json::<Thing>();
            }
        }

        #[test]
        fn no_link_header_upsets_the_parser(header in "(<|>|;|,|rel=|\"|next| |[a-z/?]){0,30}") {
            let _ = next_in_header(&header);
        }

        #[test]
        fn no_retry_after_upsets_the_parser(header in "\\PC{0,40}|[0-9]{0,30}|(Tue|Sun), [0-9]{2} (May|Feb) [0-9]{4} [0-9:]{8} GMT") {
            let wait = crate::retry::retry_after(&header, jiff::Timestamp::UNIX_EPOCH);
            prop_assert!(wait.is_none_or(|w| !w.is_zero() && w.as_secs() <= 3_600));
        }
    }
}
