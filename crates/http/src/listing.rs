//! Reading all pages of a listing, and telling whether it is complete.

use std::collections::BTreeSet;

use cloudberth_core::{Call, Listing, Result};
use serde::de::DeserializeOwned;

use crate::{
    attempt::RequestContext,
    client::Client,
    operation::{Operation, Read},
    pager::{Next, Page, Pager},
};

struct Walk<T, K> {
    items: Vec<T>,
    seen: BTreeSet<K>,
    total: Option<u64>,
    flaw: Option<String>,
    pages: u32,
}

impl<T, K: Ord> Walk<T, K> {
    /// Adds what is new on a page; returns how much that was.
    ///
    /// The listing may change between two pages. An item at the page break then moves: it is listed twice or not at all.
    /// A total that changed, or an item seen on an earlier page, gives that away. An item that is twice on one page does
    /// not: one answer is of one moment.
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

    /// The listing; short because of `why`, of a flaw on a page, or because the count does not match the total.
    fn end(self, why: Option<String>) -> Listing<T> {
        let (have, total) = (self.items.len(), self.total.unwrap_or_default());
        let off = self.is_off().then(|| format!("{have} of {total} were listed"));
        Listing { items: self.items, short: why.or(self.flaw).or(off) }
    }
}

impl Client {
    /// Lists everything, page by page.
    ///
    /// `id` identifies things: one that is listed twice counts once. If the first page fails, the result is an error.
    /// Whatever goes wrong later (a page that fails, a link that leads elsewhere, pages that repeat, an item that cannot
    /// be read or moved between pages, a total that changes or does not match, a credential that is replaced meanwhile)
    /// gives a short listing with what was seen.
    ///
    /// One change between two pages stays unseen: something is deleted and something else created, so that the total is
    /// what it was. Before an absence has consequences that cannot be undone, look the thing up by its id too.
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
        let mut walk = Walk { items: Vec::new(), seen: BTreeSet::new(), total: None, flaw: None, pages: 0 };
        let (mut page, mut from) = self.page(call, operation.clone(), pager).await?;
        let why = loop {
            let (next, empty) = (page.next.clone(), page.items.is_empty());
            let added = walk.add(page, &id);
            let ask = match next {
                Next::End => break None,
                // Numbered pages end where the total is reached, or with an empty one.
                Next::Number(_) if walk.has_all() || empty => break None,
                _ if added == 0 => {
                    let said = "holds nothing new, yet another is said to follow";
                    break Some(format!("page {} {said}", walk.pages));
                }
                _ if walk.pages >= self.0.policy.page_limit => {
                    break Some(format!("there are more than {} pages", walk.pages));
                }
                Next::Number(parameter) => operation.clone().query(parameter, walk.pages + 1),
                Next::Link(link) => match self.0.base.follow(&from.uri, &link) {
                    Ok(uri) => operation.clone().at(uri),
                    Err(refused) => break Some(from.clean(refused.message())),
                },
            };
            match self.page(call, ask, pager).await {
                Ok((found, mut at)) => {
                    at.follows(&from);
                    (page, from) = (found, at);
                }
                Err(error) => break Some(format!("page {} is missing: {error}", walk.pages + 1)),
            }
        };
        let mut listing = walk.end(why);
        if listing.short.is_none() && !self.is_steady(call, &from).await {
            listing.short = Some("the credential was replaced while listing".to_owned());
        }
        Ok(listing)
    }

    /// One page, and the context of its request.
    async fn page<T, P>(
        &self,
        call: &Call,
        ask: Operation<Read>,
        pager: &P,
    ) -> Result<(Page<T>, RequestContext)>
    where
        T: DeserializeOwned,
        P: Pager<T> + ?Sized,
    {
        let success = self.exchange(call, &ask.plan).await.map_err(|failure| failure.error)?;
        let mut page = pager.read(&success.answer).map_err(|error| success.context.error(&error))?;
        page.flaw = page.flaw.map(|why| success.context.clean(&why));
        Ok((page, success.context))
    }
}
