//! The description of one request.

use std::{fmt, marker::PhantomData, time::Duration};

use bytes::Bytes;
use cloudberth_core::{Error, Result, Secret};
use http::{Method, Uri};
use percent_encoding::utf8_percent_encode;
use serde::Serialize;

use crate::{auth::ENCODED, base::Base, classify::Dialect, retry::Repeat};

/// Changes nothing in the cloud; needs no claim.
#[derive(Clone, Copy, Debug)]
pub struct Read;

/// Changes something; is sent by the leader only (law 9).
#[derive(Clone, Copy, Debug)]
pub struct Write;

/// A request before it is sent. `K` is [`Read`] or [`Write`], so that a write cannot be sent as a read.
///
/// A mistake made while building it (an empty id, a body that has no JSON form) is reported when it is sent, and then
/// nothing is sent.
#[derive(Clone)]
pub struct Operation<K> {
    pub(crate) plan: Plan,
    kind: PhantomData<K>,
}

/// What the client needs to know about a request.
#[derive(Clone)]
pub(crate) struct Plan {
    pub(crate) name: &'static str,
    pub(crate) method: Method,
    pub(crate) writes: bool,
    pub(crate) repeat: Repeat,
    pub(crate) patience: Option<Duration>,
    pub(crate) body: Option<Body>,
    pub(crate) hidden: Vec<Secret>,
    pub(crate) dialect: Option<Dialect>,
    pub(crate) secret_answer: bool,
    pub(crate) tagged: bool,
    target: Target,
    fault: Option<Error>,
}

#[derive(Clone)]
enum Target {
    Path { path: String, query: Vec<(String, String)> },
    Link(Uri),
}

#[derive(Clone)]
pub(crate) struct Body {
    pub(crate) bytes: Bytes,
    pub(crate) media_type: &'static str,
}

impl Operation<Read> {
    /// Reads something. Retried whenever that may help.
    pub fn get(name: &'static str, path: &str) -> Self {
        Self::new(name, Method::GET, path, false, Repeat::Safe)
    }

    /// A POST that changes nothing which the leader's claim protects, such as a search. Not retried once it may
    /// have been sent.
    pub fn question(name: &'static str, path: &str) -> Self {
        Self::new(name, Method::POST, path, false, Repeat::Never)
    }

    /// Remembers the answer by its entity tag, for a server that gives strong ones: if nothing has changed, the server says
    /// so in a few bytes, and the remembered answer stands. It is asked every time all the same.
    #[must_use]
    pub fn tagged(mut self) -> Self {
        self.plan.tagged = true;
        self
    }

    /// Retried like a GET, because asking twice does no harm.
    pub(crate) fn harmless(mut self) -> Self {
        self.plan.repeat = Repeat::Safe;
        self
    }
}

impl Operation<Write> {
    /// Creates something or acts on it. Not retried once it may have had an effect.
    pub fn post(name: &'static str, path: &str) -> Self {
        Self::new(name, Method::POST, path, true, Repeat::IfUndone)
    }

    /// Changes a part of something. Not retried once it may have had an effect.
    pub fn patch(name: &'static str, path: &str) -> Self {
        Self::new(name, Method::PATCH, path, true, Repeat::IfUndone)
    }

    /// Replaces something as a whole. Not retried once it may have had an effect.
    pub fn put(name: &'static str, path: &str) -> Self {
        Self::new(name, Method::PUT, path, true, Repeat::IfUndone)
    }

    /// Removes something. Not retried once it may have had an effect.
    pub fn delete(name: &'static str, path: &str) -> Self {
        Self::new(name, Method::DELETE, path, true, Repeat::IfUndone)
    }

    /// Declares that sending it twice does the same as sending it once, so that a lost answer may be asked for again.
    /// Without effect on POST and PATCH: no declaration makes those safe.
    #[must_use]
    pub fn repeatable(mut self) -> Self {
        if self.plan.method == Method::PUT || self.plan.method == Method::DELETE {
            self.plan.repeat = Repeat::Declared;
        }
        self
    }
}

impl<K> Operation<K> {
    fn new(name: &'static str, method: Method, path: &str, writes: bool, repeat: Repeat) -> Self {
        let target = Target::Path { path: path.to_owned(), query: Vec::new() };
        let plan = Plan {
            name,
            method,
            writes,
            repeat,
            target,
            patience: None,
            body: None,
            hidden: Vec::new(),
            dialect: None,
            secret_answer: false,
            tagged: false,
            fault: None,
        };
        Self { plan, kind: PhantomData }
    }

    /// Appends one segment to the path, encoded. An empty one is a mistake: it would ask for the whole collection.
    #[must_use]
    pub fn segment(mut self, text: &str) -> Self {
        if text.is_empty() || text == "." || text == ".." {
            let fault = format!("{}: {text:?} cannot be an id in a path", self.plan.name);
            self.plan.fault.get_or_insert(Error::user_input(fault));
        }
        if let Target::Path { path, .. } = &mut self.plan.target {
            path.push('/');
            path.extend(utf8_percent_encode(text, ENCODED));
        }
        self
    }

    /// Adds a parameter to the query, or replaces the one of this name.
    #[must_use]
    pub fn query(mut self, key: &str, value: impl fmt::Display) -> Self {
        if let Target::Path { query, .. } = &mut self.plan.target {
            query.retain(|(have, _)| have != key);
            query.push((key.to_owned(), value.to_string()));
        }
        self
    }

    /// Sends `value` as JSON.
    #[must_use]
    pub fn json(mut self, value: &impl Serialize) -> Self {
        match serde_json::to_vec(value) {
            Ok(bytes) => {
                self.plan.body = Some(Body { bytes: bytes.into(), media_type: "application/json" });
            }
            Err(e) => {
                let fault = format!("{}: the request has no JSON form: {e}", self.plan.name);
                self.plan.fault.get_or_insert(Error::permanent(fault));
            }
        }
        self
    }

    /// Sends the pairs as a form.
    #[must_use]
    pub fn form(mut self, pairs: &[(&str, &str)]) -> Self {
        let encode = |text| utf8_percent_encode(text, ENCODED);
        let pairs: Vec<_> = pairs.iter().map(|(k, v)| format!("{}={}", encode(k), encode(v))).collect();
        self.plan.body =
            Some(Body { bytes: pairs.join("&").into(), media_type: "application/x-www-form-urlencoded" });
        self
    }

    /// Names a secret in the body, so that errors redact it.
    ///
    /// Bodies are never logged, secret or not.
    #[must_use]
    pub fn hide(mut self, secret: &Secret) -> Self {
        self.plan.hidden.push(secret.clone());
        self
    }

    /// Says that the answer holds a secret, such as a new token: errors then say where it could not be decoded, and quote
    /// nothing.
    #[must_use]
    pub fn secret_answer(mut self) -> Self {
        self.plan.secret_answer = true;
        self
    }

    /// How long one attempt may take, where the client's policy does not fit this operation.
    #[must_use]
    pub fn patience(mut self, limit: Duration) -> Self {
        self.plan.patience = Some(limit);
        self
    }

    /// How this operation's answers are read, where it differs from the client's own dialect.
    #[must_use]
    pub fn dialect(mut self, dialect: Dialect) -> Self {
        self.plan.dialect = Some(dialect);
        self
    }

    /// The same operation at a link that was checked by [`Base::follow`].
    pub(crate) fn at(mut self, link: Uri) -> Self {
        self.plan.target = Target::Link(link);
        self
    }
}

impl Plan {
    /// The address to send it to, or the mistake made in building it.
    pub(crate) fn uri(&self, base: &Base) -> Result<Uri> {
        if let Some(fault) = &self.fault {
            return Err(fault.clone());
        }
        match &self.target {
            Target::Path { path, query } => base.join(path, query),
            Target::Link(uri) => Ok(uri.clone()),
        }
    }
}

impl<K> fmt::Debug for Operation<K> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Operation({} {})", self.plan.method, self.plan.name)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn uri<K>(operation: &Operation<K>) -> Result<String> {
        operation.plan.uri(&Base::parse("https://h/v1")?).map(|uri| uri.to_string())
    }

    #[test]
    fn ids_are_encoded_and_never_empty() {
        let get = || Operation::get("get_server", "servers");
        let table = [
            (get(), Some("https://h/v1/servers")),
            (get().segment("a-1"), Some("https://h/v1/servers/a-1")),
            (get().segment("aws:///i-1").segment("x"), Some("https://h/v1/servers/aws%3A%2F%2F%2Fi-1/x")),
            (get().query("page", 1).query("page", 2), Some("https://h/v1/servers?page=2")),
            (get().segment(""), None),
            (get().segment(".."), None),
        ];
        for (operation, want) in table {
            assert_eq!(uri(&operation).ok().as_deref(), want, "{operation:?}");
        }
    }

    #[test]
    fn only_put_and_delete_can_be_declared_repeatable() {
        let table = [
            (Operation::put("x", "x").repeatable(), Repeat::Declared),
            (Operation::delete("x", "x").repeatable(), Repeat::Declared),
            (Operation::post("x", "x").repeatable(), Repeat::IfUndone),
            (Operation::patch("x", "x").repeatable(), Repeat::IfUndone),
            (Operation::put("x", "x"), Repeat::IfUndone),
            (Operation::delete("x", "x"), Repeat::IfUndone),
        ];
        for (operation, want) in table {
            assert_eq!(operation.plan.repeat, want, "{operation:?}");
        }
    }

    #[test]
    fn a_body_without_a_json_form_is_reported_when_sent() {
        let bad = std::collections::BTreeMap::from([((1, 2), 3)]);
        let operation = Operation::post("x", "x").json(&bad);
        assert!(uri(&operation).unwrap_err().message().contains("no JSON form"));
    }

    #[test]
    fn a_form_is_encoded_and_not_shown() {
        let password = Secret::new("p&s s").unwrap();
        let operation = Operation::question("token", "token/").form(&[("password", "p&s s")]).hide(&password);
        assert_eq!(operation.plan.body.as_ref().unwrap().bytes, "password=p%26s%20s");
        assert_eq!(format!("{operation:?}"), "Operation(POST token)", "L10-308");
    }
}
