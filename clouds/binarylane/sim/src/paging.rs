//! Lists, page by page.

use percent_encoding::{NON_ALPHANUMERIC, percent_decode_str, utf8_percent_encode};
use serde_json::{Map, Value, json};

use crate::{
    refusal::{Mistakes, Refusal},
    settings::SimSettings,
    switches::Shift,
};

/// The parameters of a request.
#[derive(Clone, Debug, Default)]
pub(crate) struct Query(Vec<(String, String)>);

impl Query {
    pub(crate) fn parse(query: Option<&str>) -> Self {
        let decode =
            |text: &str| percent_decode_str(&text.replace('+', " ")).decode_utf8_lossy().into_owned();
        let pairs = query.unwrap_or_default().split('&').filter(|pair| !pair.is_empty());
        Self(
            pairs
                .map(|pair| pair.split_once('=').unwrap_or((pair, "")))
                .map(|(k, v)| (decode(k), decode(v)))
                .collect(),
        )
    }

    pub(crate) fn get(&self, name: &str) -> Option<&str> {
        self.0.iter().find(|(key, _)| key == name).map(|(_, value)| value.as_str())
    }
}

/// A list, as a request asks for it.
#[derive(Debug)]
pub(crate) struct Listing<'a> {
    /// The name of the collection, which is the key in the answer too.
    pub(crate) key: &'a str,
    /// The URL without parameters.
    pub(crate) url: String,
    pub(crate) query: &'a Query,
    pub(crate) settings: &'a SimSettings,
}

/// Which page, and how long pages are.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Asked {
    page: usize,
    per_page: usize,
}

impl Listing<'_> {
    fn asked(&self) -> Result<Asked, Refusal> {
        let mut mistakes = Mistakes::new();
        let mut number = |name: &str, default: usize, low: usize, high: usize| {
            let Some(text) = self.query.get(name) else { return default };
            text.parse().ok().filter(|number| (low..=high).contains(number)).unwrap_or_else(|| {
                let why = format!("The value must be a whole number from {low} to {high}.");
                mistakes.insert(name.to_owned(), vec![why]);
                default
            })
        };
        let page = number("page", 1, 1, 2_147_483_647);
        let fewest = usize::from(!self.settings.counts_and_filters());
        let per_page = number("per_page", 20, fewest, 200);
        if mistakes.is_empty() { Ok(Asked { page, per_page }) } else { Err(Refusal::fields(mistakes)) }
    }

    /// The answer with one page of these items, which come with their ids.
    pub(crate) fn answer(&self, items: Vec<(i64, Value)>) -> Result<Value, Refusal> {
        let asked = self.asked()?;
        let switches = &self.settings.switches;
        let size = switches.page_cap.map_or(asked.per_page, |cap| asked.per_page.min(cap.max(1)));
        let later = asked.page > 1;
        let mut total = items.len();
        let begins = (asked.page - 1).saturating_mul(size);
        // What appears or vanishes on the first page moves everything behind it by one.
        let begins = match switches.shift {
            Shift::Inserted if later => {
                total += 1;
                begins.saturating_sub(1)
            }
            Shift::Removed if later => {
                total = total.saturating_sub(1);
                begins + 1
            }
            _ => begins,
        };
        let page: Vec<_> = items
            .into_iter()
            .skip(begins)
            .take(size)
            .filter(|(id, _)| !switches.hidden.contains(id))
            .map(|(_, item)| item)
            .collect();
        Ok(json!({
            self.key: page,
            "meta": {"total": total},
            "links": self.links(asked, if size == 0 { 1 } else { total.div_ceil(size).max(1) }),
        }))
    }

    /// `null` where there is only one page.
    fn links(&self, asked: Asked, last: usize) -> Value {
        if last == 1 {
            return Value::Null;
        }
        let mut pages = Map::new();
        if asked.page > 1 {
            pages.insert("first".to_owned(), self.link(asked, 1));
            pages.insert("prev".to_owned(), self.link(asked, asked.page - 1));
        }
        if asked.page < last {
            pages.insert("next".to_owned(), self.link(asked, asked.page + 1));
            pages.insert("last".to_owned(), self.link(asked, last));
        }
        json!({"pages": pages})
    }

    fn link(&self, asked: Asked, page: usize) -> Value {
        let mut link = format!("{}?page={page}&per_page={}", self.url, asked.per_page);
        for (key, value) in self.query.0.iter().filter(|(key, _)| key != "page" && key != "per_page") {
            let encode = |text| utf8_percent_encode(text, NON_ALPHANUMERIC);
            link.extend(["&", &encode(key).to_string(), "=", &encode(value).to_string()]);
        }
        Value::String(link)
    }
}
