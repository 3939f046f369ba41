//! Walking the pages of a listing, and knowing at the end whether it is complete.

use std::collections::BTreeSet;

use cloudberth_core::{Call, Listing, Result};
use http::Uri;
use serde::de::DeserializeOwned;

use crate::{
    attempt::Voice,
    client::Client,
    operation::{Operation, Read},
    pager::{Next, Page, Pager},
};

/// Where a page was found, and how to speak of it.
struct From {
    uri: Uri,
    voice: Voice,
}

/// A listing that is being put together.
struct Walk<T, K> {
    items: Vec<T>,
    /// What the pages before this one showed.
    seen: BTreeSet<K>,
    total: Option<u64>,
    flaw: Option<String>,
    pages: u32,
}

impl<T, K: Ord> Walk<T, K> {
    /// Takes what is new on a page; says how much that was.
    ///
    /// Pages are cut from a listing that goes on living. If something came or went between two of them, what stood at
    /// the cut has moved: it shows up twice, or on no page at all. Both show in the first of the signs below or in the
    /// second.
    fn add(&mut self, page: Page<T>, id: impl Fn(&T) -> K) -> usize {
        self.pages += 1;
        let before = self.items.len();
        let mut moved = false;
        let mut here = BTreeSet::new();
        for item in page.items {
            let id = id(&item);
            if self.seen.contains(&id) {
                moved = true;
            } else if here.insert(id) {
                self.items.push(item);
            }
        }
        self.seen.append(&mut here);
        let flaw = match (self.total, page.total) {
            _ if page.flaw.is_some() => page.flaw,
            (Some(then), Some(now)) if then != now => {
                Some(format!("there are {now} things, and there were {then} on the page before"))
            }
            _ if moved => Some("something on it was on an earlier page too".to_owned()),
            _ => None,
        };
        self.total = page.total.or(self.total);
        if self.flaw.is_none() {
            self.flaw = flaw.map(|why| format!("page {}: {why}", self.pages));
        }
        self.items.len() - before
    }

    fn has_all(&self) -> bool {
        self.total.is_some_and(|total| self.items.len() as u64 >= total)
    }

    fn is_off(&self) -> bool {
        self.total.is_some_and(|total| self.items.len() as u64 != total)
    }

    /// The listing, short for `why`, for a flaw met on the way, or because the count does not fit.
    fn end(self, why: Option<String>) -> Listing<T> {
        let (have, total) = (self.items.len(), self.total.unwrap_or_default());
        let off = self.is_off().then(|| format!("{have} of {total} were listed"));
        Listing { items: self.items, short: why.or(self.flaw).or(off) }
    }
}

impl Client {
    /// Lists everything, page by page.
    ///
    /// `id` tells things apart: what is listed twice counts once. If the first page cannot be had, nothing was learnt
    /// and the result is an error. Whatever goes wrong later (a page that fails, a link that leads away, pages that
    /// repeat, an item that cannot be read or has moved from page to page, a count that changes or does not fit, a
    /// credential that is replaced meanwhile) gives a short listing that keeps what it saw.
    ///
    /// Where one bad field must not hide the whole item, list [`Item`](crate::Item)s.
    pub async fn list<T, K, P>(
        &self,
        call: &Call,
        operation: Operation<Read>,
        pager: &P,
        id: impl Fn(&T) -> K + Send,
    ) -> Result<Listing<T>>
    where
        T: DeserializeOwned + Send,
        K: Ord + Send,
        P: Pager<T> + ?Sized,
    {
        let (mut listing, voice) = self.walk(call, operation, pager, id).await?;
        if listing.short.is_none() && !self.is_steady(call, &voice).await {
            listing.short = Some("the credential was replaced while listing".to_owned());
        }
        Ok(listing)
    }

    /// Goes from page to page; says with whose voice the last one was asked for.
    async fn walk<T, K, P>(
        &self,
        call: &Call,
        operation: Operation<Read>,
        pager: &P,
        id: impl Fn(&T) -> K + Send,
    ) -> Result<(Listing<T>, Voice)>
    where
        T: DeserializeOwned + Send,
        K: Ord + Send,
        P: Pager<T> + ?Sized,
    {
        let mut walk = Walk { items: Vec::new(), seen: BTreeSet::new(), total: None, flaw: None, pages: 0 };
        let (mut page, mut from) = self.page(call, operation.clone(), pager).await?;
        loop {
            let (next, empty) = (page.next.clone(), page.items.is_empty());
            let added = walk.add(page, &id);
            let ask = match next {
                Next::End => return Ok((walk.end(None), from.voice)),
                // Numbered pages end where the total is reached, or with an empty one.
                Next::Number(_) if walk.has_all() || empty => return Ok((walk.end(None), from.voice)),
                _ if added == 0 => {
                    let why = format!("page {} holds nothing new, yet another is said to follow", walk.pages);
                    return Ok((walk.end(Some(why)), from.voice));
                }
                _ if walk.pages >= self.0.policy.page_limit => {
                    let why = format!("there are more than {} pages", walk.pages);
                    return Ok((walk.end(Some(why)), from.voice));
                }
                Next::Number(parameter) => operation.clone().query(parameter, walk.pages + 1),
                Next::Link(link) => match self.0.base.follow(&from.uri, &link) {
                    Ok(uri) => operation.clone().at(uri),
                    Err(refused) => {
                        return Ok((walk.end(Some(from.voice.clean(refused.message()))), from.voice));
                    }
                },
            };
            match self.page(call, ask, pager).await {
                Ok((found, mut at)) => {
                    at.voice.follows(&from.voice);
                    (page, from) = (found, at);
                }
                Err(error) => {
                    let why = format!("page {} is missing: {error}", walk.pages + 1);
                    return Ok((walk.end(Some(why)), from.voice));
                }
            }
        }
    }

    async fn page<T, P>(&self, call: &Call, ask: Operation<Read>, pager: &P) -> Result<(Page<T>, From)>
    where
        T: DeserializeOwned,
        P: Pager<T> + ?Sized,
    {
        let uri = ask.plan.uri(&self.0.base)?;
        let said = self.exchange(call, &ask.plan).await.map_err(|failure| failure.error)?;
        let mut page = pager.read(&said.answer).map_err(|error| said.voice.error(&error))?;
        page.flaw = page.flaw.map(|why| said.voice.clean(&why));
        Ok((page, From { uri, voice: said.voice }))
    }
}
