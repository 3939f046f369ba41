//! Get, list, and the start of watches.

use std::collections::VecDeque;
use std::sync::Arc;
use std::time::Duration;

use base64::Engine as _;
use base64::engine::DecodePaddingMode;
use base64::engine::general_purpose::{GeneralPurpose, GeneralPurposeConfig, URL_SAFE_NO_PAD};
use http::StatusCode;
use serde::{Deserialize, Serialize};
use serde_json::Value;

use super::field::FieldErrors;
use super::job::Job;
use super::render::ListMeta;
use super::router::Reply;
use super::select::Selection;
use super::status::{Answer, Failure};
use super::syntax;
use super::watch::{self, Plan};

/// Trailing bits of base64 that carry no data are ignored.
const LENIENT: GeneralPurpose = GeneralPurpose::new(
    &base64::alphabet::URL_SAFE,
    GeneralPurposeConfig::new()
        .with_encode_padding(false)
        .with_decode_padding_mode(DecodePaddingMode::RequireNone)
        .with_decode_allow_trailing_bits(true),
);

/// Where the next page of a list begins.
#[derive(Debug, Serialize, Deserialize)]
struct Token {
    v: String,
    rv: i64,
    start: String,
}

impl Token {
    fn encode(revision: u64, last: &str) -> String {
        let rv = i64::try_from(revision).unwrap_or(i64::MAX);
        let token = Self { v: "meta.k8s.io/v1".to_owned(), rv, start: format!("{last}\u{0}") };
        URL_SAFE_NO_PAD.encode(serde_json::to_vec(&token).unwrap_or_default())
    }

    fn decode(text: &str) -> Answer<Self> {
        let bad = |why: &str| {
            Failure::bad_request(format!("invalid continue token: continue key is not valid{why}"))
        };
        let bytes = LENIENT.decode(text).map_err(|error| bad(&format!(": {error}")))?;
        let token: Self = serde_json::from_slice(&bytes)
            .map_err(|_| bad(&format!(": {}", syntax::mistake(&bytes).unwrap_or_default())))?;
        match token {
            Self { v, .. } if v != "meta.k8s.io/v1" => {
                Err(bad(&format!(": server does not recognize this encoded version {v}")))
            }
            Self { rv: 0, .. } => {
                Err(bad(": incorrect encoded start resourceVersion (version meta.k8s.io/v1)"))
            }
            Self { start, .. } if start.is_empty() => {
                Err(bad(": encoded start key empty (version meta.k8s.io/v1)"))
            }
            token => Ok(token),
        }
    }
}

/// A resource version in a query; none and `0` are the same number but mean different things.
fn version(text: &str) -> Answer<u64> {
    text.parse().map_err(|_| {
        Failure::bad_request(format!(
            "invalid resource version: resourceVersion: Invalid value: {text:?}: \
             strconv.ParseUint: parsing {text:?}: invalid syntax"
        ))
    })
}

const PAGE_EXPIRED: &str = "The provided continue parameter is too old to display a consistent list result. \
    You can start a new list without the continue parameter, or use the continue token in this response to retrieve \
    the remainder of the results. Continuing with the provided token results in an inconsistent list - objects that \
    were created, modified, or deleted between the time the first chunk was returned and now may show up in the list.";

impl Job<'_> {
    pub(crate) fn get(&mut self) -> Answer<Reply> {
        if let Some(asked) = self.incoming.query.get("resourceVersion") {
            let (asked, current) = (version(asked)?, self.state.store.revision());
            if asked > current {
                return Err(Failure::too_large_version(asked, current));
            }
        }
        let object = self.existing()?;
        Ok(self.reply(StatusCode::OK, &object))
    }

    fn selection(&self) -> Answer<Selection> {
        let namespace = (!self.namespace.is_empty()).then_some(self.namespace.as_str());
        let name = (!self.name.is_empty()).then_some(self.name.as_str());
        Selection::read(&self.resource, namespace, name, &self.incoming.query)
    }

    fn check_list_options(&self, watch: bool) -> Answer<()> {
        let query = &self.incoming.query;
        let (matching, version) = (query.get("resourceVersionMatch"), query.get("resourceVersion"));
        let initial = query.get("sendInitialEvents").is_some();
        let (mut errors, path) = (FieldErrors::default(), "resourceVersionMatch");
        if watch {
            if initial && matching != Some("NotOlderThan") {
                errors.forbidden(
                    path,
                    "sendInitialEvents requires setting resourceVersionMatch to NotOlderThan",
                );
            }
            if let Some(given) = matching {
                if !initial {
                    let why =
                        "resourceVersionMatch is forbidden for watch unless sendInitialEvents is provided";
                    errors.forbidden(path, why);
                }
                if given != "NotOlderThan" {
                    errors.not_supported(path, given, &["NotOlderThan"]);
                }
            }
        } else {
            if let Some(given) = matching {
                if version.is_none() {
                    errors.forbidden(
                        path,
                        "resourceVersionMatch is forbidden unless resourceVersion is provided",
                    );
                }
                if query.get("continue").is_some() {
                    errors.forbidden(path, "resourceVersionMatch is forbidden when continue is provided");
                }
                if !matches!(given, "Exact" | "NotOlderThan") {
                    errors.not_supported(path, given, &["Exact", "NotOlderThan", ""]);
                }
                if given == "Exact" && version == Some("0") {
                    let why = "resourceVersionMatch \"exact\" is forbidden for resourceVersion \"0\"";
                    errors.forbidden(path, why);
                }
            }
            if initial {
                errors.forbidden("sendInitialEvents", "sendInitialEvents is forbidden for list");
            }
        }
        if errors.is_empty() {
            Ok(())
        } else {
            Err(Failure::invalid("meta.k8s.io", "ListOptions", "", &errors))
        }
    }

    pub(crate) fn list(&mut self) -> Answer<Reply> {
        self.check_list_options(false)?;
        let selection = self.selection()?;
        let query = &self.incoming.query;
        let limit = usize::try_from(query.number("limit")?.unwrap_or(0).max(0)).unwrap_or(0);
        let current = self.state.store.revision();
        let asked = query.get("resourceVersion").map(version).transpose()?.unwrap_or(0);
        let exact = query.get("resourceVersionMatch") == Some("Exact")
            || (query.get("resourceVersionMatch").is_none() && asked > 0 && limit > 0);
        let token = query.get("continue").map(Token::decode).transpose()?;
        if token.is_some() && asked > 0 {
            return Err(Failure::bad_request(
                "specifying resource version is not allowed when using continue",
            ));
        }
        if asked > current {
            return Err(Failure::too_large_version(asked, current));
        }
        let table = self.table();
        let (revision, start, past) = match &token {
            Some(token) => {
                // A negative revision in a token means: continue from the current state.
                let revision = u64::try_from(token.rv).unwrap_or(current);
                let start = format!("{}{}", selection.prefix, token.start);
                let past = self.state.store.past(&table, revision).map_err(|_| page_expired(token))?;
                (revision, start, Some(past))
            }
            None if exact => {
                let past =
                    self.state.store.past(&table, asked).map_err(|_| {
                        Failure::expired("The resourceVersion for the provided list is too old.")
                    })?;
                (asked, selection.prefix.clone(), Some(past))
            }
            None => (current, selection.prefix.clone(), None),
        };
        let page = match &past {
            Some(past) => {
                let within = past.range(start..).take_while(|(key, _)| key.starts_with(&selection.prefix));
                page(within, &selection, limit)
            }
            None => page(self.state.store.within(&table, &selection.prefix), &selection, limit),
        };
        let resume = page.last.map(|last| {
            let relative = last.strip_prefix(&selection.prefix).unwrap_or(&last);
            Token::encode(revision, relative)
        });
        let remaining = (resume.is_some() && selection.is_plain()).then_some(page.rest);
        let meta = ListMeta { revision, resume, remaining };
        Ok(Reply::json(StatusCode::OK, self.renderer.list(&page.objects, &meta)))
    }

    pub(crate) fn watch(&mut self, harm: Option<sim_kit::Harm>) -> Answer<Reply> {
        self.check_list_options(true)?;
        let selection = self.selection()?;
        let query = &self.incoming.query;
        let bookmarks = query.flag("allowWatchBookmarks");
        let seconds = match query.number("timeoutSeconds")? {
            Some(seconds) if seconds > 0 => Duration::from_secs(u64::try_from(seconds).unwrap_or(1)),
            _ => Duration::from_millis(self.state.world.rng().u64(1_800_000..3_600_000)),
        };
        let asked = query.get("resourceVersion").map(version).transpose().map_err(|failure| {
            let message = failure.message.strip_prefix("invalid resource version: ").unwrap_or_default();
            Failure::unexplained(message)
        })?;
        let streaming = query.get("sendInitialEvents").map(|_| query.flag("sendInitialEvents"));
        let current = self.state.store.revision();
        let table = self.table();
        let mut plan = Plan {
            renderer: self.renderer.clone(),
            selection,
            from: current,
            opening: VecDeque::new(),
            closed: false,
            bookmarks,
            timeout: seconds,
            harm,
        };
        let initial = streaming.unwrap_or(matches!(asked, None | Some(0)));
        if initial {
            if let Some(asked) = asked.filter(|asked| *asked > current) {
                return Err(Failure::too_large_version(asked, current));
            }
            let selection = &plan.selection;
            let objects = self.state.store.within(&table, &selection.prefix);
            let objects =
                objects.filter(|(key, object)| selection.matches(key, object)).map(|(_, object)| object);
            let mut opening = watch::opening(&plan.renderer, objects);
            if streaming == Some(true) && bookmarks {
                opening.push_back(plan.renderer.bookmark(current, true, opening.is_empty()));
            }
            plan.opening = opening;
        } else {
            let from = asked.filter(|asked| *asked > 0).unwrap_or(current);
            plan.from = from;
            if let Err(gone) = self.state.store.admits(&table, from) {
                plan.opening = watch::gone(from, gone.oldest);
                plan.closed = true;
            }
        }
        Ok(Reply { watch: Some(Box::new(plan)), ..Reply::json(StatusCode::OK, bytes::Bytes::new()) })
    }
}

/// The error for a page that is too old, with a token to continue from the current state.
fn page_expired(token: &Token) -> Failure {
    let fresh = Token { v: token.v.clone(), rv: -1, start: token.start.clone() };
    let mut failure = Failure::expired(PAGE_EXPIRED);
    failure.resume = Some(URL_SAFE_NO_PAD.encode(serde_json::to_vec(&fresh).unwrap_or_default()));
    failure
}

/// One page of a list.
struct Page {
    objects: Vec<Arc<Value>>,
    /// The key of the last object, when there are more.
    last: Option<String>,
    /// How many keys come after it.
    rest: u64,
}

fn page<'a>(
    entries: impl Iterator<Item = (&'a String, &'a Arc<Value>)>,
    selection: &Selection,
    limit: usize,
) -> Page {
    let mut page = Page { objects: Vec::new(), last: None, rest: 0 };
    let mut last = None;
    for (key, object) in entries.filter(|(key, object)| selection.matches(key, object)) {
        if limit > 0 && page.objects.len() == limit {
            page.last.clone_from(&last);
            page.rest += 1;
            continue;
        }
        page.objects.push(Arc::clone(object));
        last = Some(key.clone());
    }
    page
}
