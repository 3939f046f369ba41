//! Answers that are remembered by their entity tags, so that what has not changed is not sent again.

use std::{
    collections::BTreeMap,
    sync::{Mutex, MutexGuard, PoisonError},
};

use http::{HeaderValue, StatusCode, Uri, header::ETAG};

use crate::{answer::Answer, auth::Authorization};

/// Answers that are remembered at once: one for each listing of a cloud, and some.
const MOST: usize = 16;
/// Larger ones are asked for again: they would be kept twice.
const LARGEST: usize = 1 << 20;

struct Remembered {
    tag: HeaderValue,
    answer: Answer,
    /// To whom it was given: another account may be shown something else under the same tag.
    given_to: Authorization,
}

/// By address.
#[derive(Default)]
pub(crate) struct TaggedAnswers(Mutex<BTreeMap<String, Remembered>>);

impl TaggedAnswers {
    fn lock(&self) -> MutexGuard<'_, BTreeMap<String, Remembered>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The tag to ask with, and the answer that stands if nothing has changed.
    pub(crate) fn known(&self, uri: &Uri, asks: &Authorization) -> Option<(HeaderValue, Answer)> {
        let all = self.lock();
        let known = all.get(&uri.to_string()).filter(|known| known.given_to.has_account_of(asks))?;
        Some((known.tag.clone(), known.answer.with_status(StatusCode::NOT_MODIFIED)))
    }

    /// Takes in an answer. One without a tag is forgotten, so that nothing old stands beside it.
    pub(crate) fn heard(&self, uri: &Uri, answer: &Answer, given_to: &Authorization) {
        let mut all = self.lock();
        let tag = answer.header(&ETAG).filter(|tag| !tag.starts_with("W/"));
        let tag = tag.and_then(|tag| HeaderValue::from_str(tag).ok());
        let Some(tag) = tag.filter(|_| answer.body().len() <= LARGEST) else {
            all.remove(&uri.to_string());
            return;
        };
        if all.len() >= MOST && !all.contains_key(&uri.to_string()) {
            all.pop_first();
        }
        let remembered = Remembered { tag, answer: answer.clone(), given_to: given_to.clone() };
        all.insert(uri.to_string(), remembered);
    }
}
