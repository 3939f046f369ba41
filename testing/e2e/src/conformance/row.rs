//! The language that the table is written in.

use http::Method;
use serde_json::Value;

use crate::Request;

/// What `kubectl get` accepts.
pub(crate) const AS_TABLE: &str = "application/json;as=Table;v=v1;g=meta.k8s.io";

/// Requests in order, which may use values from earlier answers of the same row.
///
/// `${ns}` is a namespace of the row's own, made before the first step. `${id}` is a name that no other row
/// uses, for objects without a namespace. Everything else in `${…}` was kept by an earlier step.
#[derive(Clone, Debug)]
pub struct Row {
    /// The group it belongs to; set when the table is put together.
    pub group: &'static str,
    /// What it tests.
    pub name: &'static str,
    /// What it does.
    pub steps: Vec<Step>,
}

/// One request of a row, or one look at a watch.
#[derive(Clone, Debug)]
pub struct Step {
    /// What is done.
    pub action: Action,
    /// What is remembered: the variable's name, and where in the answer it stands (a JSON pointer).
    pub keeps: Vec<(&'static str, &'static str)>,
    /// What of the answer is compared; everything, if there is none.
    pub lens: Option<fn(&Value) -> Value>,
}

/// What a step does.
#[derive(Clone, Debug)]
pub enum Action {
    /// Sends a request. The status is the one that kube-apiserver gives.
    Send(u16, Request),
    /// Sends a request again and again, until the status is this one and the answer says this. Only the last answer
    /// counts.
    Until(u16, Request, &'static str),
    /// Starts a watch and gives it a name.
    Watch(&'static str, Request),
    /// Waits for this many events of a watch.
    Take(&'static str, usize),
    /// Reads a watch until the server ends it.
    Drain(&'static str),
    /// The same, and the bookmarks count; several in a row count as one.
    DrainWithBookmarks(&'static str),
}

impl Step {
    /// Whether it asks the server something, and is not just another look at an open watch.
    pub fn is_request(&self) -> bool {
        matches!(self.action, Action::Send(..) | Action::Until(..) | Action::Watch(..))
    }
}

impl Row {
    /// A row without steps.
    pub fn new(name: &'static str) -> Self {
        Self { group: "", name, steps: Vec::new() }
    }

    fn step(mut self, action: Action) -> Self {
        self.steps.push(Step { action, keeps: Vec::new(), lens: None });
        self
    }

    /// Any request.
    #[must_use]
    pub fn send(self, status: u16, request: Request) -> Self {
        self.step(Action::Send(status, request))
    }

    /// Reads an object or a list.
    #[must_use]
    pub fn get(self, status: u16, path: impl Into<String>) -> Self {
        self.send(status, Request::get(path))
    }

    /// Lists, which waits until the server's cache holds everything written so far. Without it, an answer from
    /// "any version" depends on how far that cache has come.
    #[must_use]
    pub fn settled(self, list: &str) -> Self {
        self.get(200, list).through(super::lens::nothing)
    }

    /// Creates.
    #[must_use]
    #[expect(clippy::needless_pass_by_value, reason = "a table is read more easily without ampersands")]
    pub fn post(self, status: u16, path: impl Into<String>, body: Value) -> Self {
        self.send(status, Request::post(path, &body))
    }

    /// Replaces.
    #[must_use]
    #[expect(clippy::needless_pass_by_value, reason = "a table is read more easily without ampersands")]
    pub fn put(self, status: u16, path: impl Into<String>, body: Value) -> Self {
        self.send(status, Request::new(Method::PUT, path).json(&body))
    }

    /// Deletes, without options.
    #[must_use]
    pub fn delete(self, status: u16, path: impl Into<String>) -> Self {
        self.send(status, Request::new(Method::DELETE, path))
    }

    /// Deletes, with options.
    #[must_use]
    #[expect(clippy::needless_pass_by_value, reason = "a table is read more easily without ampersands")]
    pub fn delete_with(self, status: u16, path: impl Into<String>, body: Value) -> Self {
        self.send(status, Request::new(Method::DELETE, path).json(&body))
    }

    /// Patches with a list of JSON patch operations.
    #[must_use]
    pub fn json_patch(self, status: u16, path: impl Into<String>, body: Value) -> Self {
        self.patch(status, path, body, "application/json-patch+json")
    }

    /// Patches with a JSON merge patch.
    #[must_use]
    pub fn merge_patch(self, status: u16, path: impl Into<String>, body: Value) -> Self {
        self.patch(status, path, body, "application/merge-patch+json")
    }

    /// Patches with a strategic merge patch.
    #[must_use]
    pub fn strategic_patch(self, status: u16, path: impl Into<String>, body: Value) -> Self {
        self.patch(status, path, body, "application/strategic-merge-patch+json")
    }

    /// Patches with a body of any type.
    #[must_use]
    #[expect(clippy::needless_pass_by_value, reason = "a table is read more easily without ampersands")]
    pub fn patch(self, status: u16, path: impl Into<String>, body: Value, content_type: &str) -> Self {
        let mut request = Request::new(Method::PATCH, path).json(&body);
        request.content_type = content_type.into();
        self.send(status, request)
    }

    /// Reads as `kubectl get` does: as a table made by the server.
    #[must_use]
    pub fn table(self, status: u16, path: impl Into<String>) -> Self {
        self.get_as(status, path, AS_TABLE)
    }

    /// Reads with an `Accept` header.
    #[must_use]
    pub fn get_as(self, status: u16, path: impl Into<String>, accept: &str) -> Self {
        let mut request = Request::get(path);
        request.headers.push(("accept".into(), accept.into()));
        self.send(status, request)
    }

    /// Reads until the server answers with this status.
    #[must_use]
    pub fn until(self, status: u16, path: impl Into<String>) -> Self {
        self.step(Action::Until(status, Request::get(path), ""))
    }

    /// Reads until the answer contains `text`.
    #[must_use]
    pub fn until_says(self, path: impl Into<String>, text: &'static str) -> Self {
        self.step(Action::Until(200, Request::get(path), text))
    }

    /// Starts a watch that later steps call `name`.
    #[must_use]
    pub fn watch(self, name: &'static str, path: impl Into<String>) -> Self {
        self.step(Action::Watch(name, Request::get(path)))
    }

    /// The same, every event being a table of one row.
    #[must_use]
    pub fn watch_table(self, name: &'static str, path: impl Into<String>) -> Self {
        let mut request = Request::get(path);
        request.headers.push(("accept".into(), AS_TABLE.into()));
        self.step(Action::Watch(name, request))
    }

    /// Waits for this many events.
    #[must_use]
    pub fn take(self, name: &'static str, events: usize) -> Self {
        self.step(Action::Take(name, events))
    }

    /// Reads the rest of a watch. Its path should carry a short `timeoutSeconds`.
    #[must_use]
    pub fn drain(self, name: &'static str) -> Self {
        self.step(Action::Drain(name))
    }

    /// The same, with the bookmarks, which otherwise come when they come.
    #[must_use]
    pub fn drain_with_bookmarks(self, name: &'static str) -> Self {
        self.step(Action::DrainWithBookmarks(name))
    }

    /// Remembers a value of the newest answer.
    #[must_use]
    pub fn keep(mut self, variable: &'static str, pointer: &'static str) -> Self {
        if let Some(step) = self.steps.last_mut() {
            step.keeps.push((variable, pointer));
        }
        self
    }

    /// Compares only what `lens` shows of the newest answer.
    #[must_use]
    pub fn through(mut self, lens: fn(&Value) -> Value) -> Self {
        if let Some(step) = self.steps.last_mut() {
            step.lens = Some(lens);
        }
        self
    }
}
