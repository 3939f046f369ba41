//! Replays the table on one server and records the answers.

use std::collections::BTreeMap;
use std::path::Path;
use std::time::Duration;

use serde_json::{Map, Value, json};

use tokio::time::{sleep, timeout};

use super::row::{Action, Row, Step};
use super::swagger;
use super::target::Target;
use crate::{Answer, Error, Request, Watch};

/// The longest wait for one watch event, and for the end of a watch.
const PATIENCE: Duration = Duration::from_secs(60);
/// The longest wait for another status: a real server compacts in the background.
const CHANGE_OF_MIND: Duration = Duration::from_mins(5);
const ASK_EVERY: Duration = Duration::from_millis(100);
/// The bookmark that ends the first part of a streaming list; other bookmarks come at any time.
const INITIAL_EVENTS_END: &str = "/object/metadata/annotations/k8s.io~1initial-events-end";

/// The answers to one row.
#[derive(Clone, Debug)]
pub struct Transcript {
    /// `group-number`, unique in the table.
    pub id: String,
    /// The row's name.
    pub name: &'static str,
    /// One entry per step.
    pub seen: Vec<Observed>,
}

impl Transcript {
    /// The steps that did not go as the table says.
    pub fn problems(&self) -> Vec<String> {
        let told = self
            .seen
            .iter()
            .enumerate()
            .filter_map(|(number, seen)| Some((number + 1, seen, seen.problem.as_ref()?)));
        told.map(|(number, seen, problem)| {
            format!("{} {:?} | {number}. {} | {problem}", self.id, self.name, seen.asked)
        })
        .collect()
    }
}

/// The answer to one step.
#[derive(Clone, Debug)]
pub struct Observed {
    /// The request, with variables filled in: method and path.
    pub asked: String,
    /// The request in full.
    pub request: Value,
    /// Its body before variables were filled in: what the table itself says.
    pub template: String,
    /// Status, headers and body; or the events of a watch. Exactly as they came.
    pub answer: Value,
    /// What of it is compared.
    pub lens: Option<fn(&Value) -> Value>,
    /// Where this step differs from the table: an unexpected status, or a missing value.
    pub problem: Option<String>,
}

/// Replays `rows` in order. A step that fails is recorded with its error.
pub async fn replay(target: &impl Target, rows: &[Row]) -> Vec<Transcript> {
    let mut transcripts = Vec::with_capacity(rows.len());
    let mut numbers: BTreeMap<&str, u32> = BTreeMap::new();
    for row in rows {
        let number = numbers.entry(row.group).or_default();
        *number += 1;
        let id = format!("{}-{number}", row.group);
        let mut runner = Runner { target, variables: BTreeMap::new(), watches: BTreeMap::new() };
        let seen = runner.run_row(&id, row).await;
        transcripts.push(Transcript { id, name: row.name, seen });
    }
    transcripts
}

/// Writes transcripts as JSON, each request beside its answer.
pub fn dump(transcripts: &[Transcript], path: &Path) -> Result<(), Error> {
    let rows: Vec<_> = transcripts
        .iter()
        .map(|row| {
            let steps: Vec<_> = row
                .seen
                .iter()
                .map(|seen| json!({ "request": seen.request, "answer": seen.answer, "comparedInPart": seen.lens.is_some() }))
                .collect();
            json!({ "row": row.id, "name": row.name, "steps": steps })
        })
        .collect();
    std::fs::write(path, serde_json::to_vec_pretty(&rows)?).map_err(Error::io("cannot write", path))
}

struct Runner<'t, T> {
    target: &'t T,
    variables: BTreeMap<String, String>,
    watches: BTreeMap<&'static str, Watch>,
}

impl<T: Target> Runner<'_, T> {
    async fn run_row(&mut self, id: &str, row: &Row) -> Vec<Observed> {
        self.variables.insert("id".into(), id.into());
        if row.steps.iter().any(needs_namespace) {
            let body = json!({ "apiVersion": "v1", "kind": "Namespace", "metadata": { "name": id } });
            let made = self.target.send(&Request::post("/api/v1/namespaces", &body)).await;
            if made.is_ok_and(|answer| answer.status == 201) {
                self.variables.insert("ns".into(), id.into());
            }
        }
        let mut seen = Vec::with_capacity(row.steps.len());
        for step in &row.steps {
            seen.push(self.step(step).await);
        }
        seen
    }

    async fn step(&mut self, step: &Step) -> Observed {
        let (request, outcome) = match &step.action {
            Action::Send(_, request) => {
                let request = self.fill_request(request);
                let answer = self.target.send(&request).await;
                (request, answer.map(|answer| answer_json(&answer)))
            }
            Action::Until(status, request, text) => {
                let request = self.fill_request(request);
                let answer = self.until(*status, &request, &self.fill(text)).await;
                (request, answer.map(|answer| answer_json(&answer)))
            }
            Action::Watch(name, request) => {
                let request = self.fill_request(request);
                let opened = self.target.watch(&request).await;
                (request, opened.map(|opened| self.opened(name, opened)))
            }
            Action::Take(name, events) => (look("take", name), self.events(name, Some(*events), false).await),
            Action::Drain(name) => (look("drain", name), self.events(name, None, false).await),
            Action::DrainWithBookmarks(name) => (look("drain", name), self.events(name, None, true).await),
        };
        let answer = outcome.unwrap_or_else(|error| json!({ "failed": error.to_string() }));
        let mut problem = unexpected(&step.action, &answer);
        for (variable, pointer) in &step.keeps {
            let kept =
                answer.pointer("/body").or(answer.pointer("/events")).and_then(|body| body.pointer(pointer));
            match kept {
                Some(Value::String(text)) => drop(self.variables.insert((*variable).into(), text.clone())),
                Some(other) => drop(self.variables.insert((*variable).into(), other.to_string())),
                None => problem = Some(format!("there is no {pointer} to keep as {variable}")),
            }
        }
        let asked = format!("{} {}", request.method, request.path);
        let template = match &step.action {
            Action::Send(_, request) => String::from_utf8_lossy(&request.body).into_owned(),
            _ => String::new(),
        };
        Observed { asked, request: request_json(&request), template, answer, lens: step.lens, problem }
    }

    async fn until(&self, status: u16, request: &Request, text: &str) -> Result<Answer, Error> {
        let says = |answer: &Answer| String::from_utf8_lossy(&answer.body).contains(text);
        let asked = async {
            loop {
                match self.target.send(request).await {
                    Ok(answer) if answer.status != status || !says(&answer) => sleep(ASK_EVERY).await,
                    done => return done,
                }
            }
        };
        let what = || format!("status {status} of {}", request.path);
        timeout(CHANGE_OF_MIND, asked).await.map_err(|_| Error::Deadline { what: what() })?
    }

    fn opened(&mut self, name: &'static str, opened: Result<Watch, Answer>) -> Value {
        match opened {
            Ok(watch) => {
                self.watches.insert(name, watch);
                json!({ "status": 200 })
            }
            Err(refused) => answer_json(&refused),
        }
    }

    /// Bookmarks that come at any time are left out or, when asked for, counted once.
    async fn events(&mut self, name: &str, count: Option<usize>, bookmarks: bool) -> Result<Value, Error> {
        let Some(watch) = self.watches.get_mut(name) else {
            return Err(Error::Deadline { what: format!("the watch {name} was not opened") });
        };
        let mut events = Vec::new();
        while count.is_none_or(|count| events.len() < count) {
            match watch.next(PATIENCE).await {
                Ok(Some(event)) if is_untimely_bookmark(&event) => {
                    if bookmarks && !events.last().is_some_and(is_untimely_bookmark) {
                        events.push(event);
                    }
                }
                Ok(Some(event)) => events.push(event),
                Ok(None) if count.is_none() => break,
                Ok(None) => return Ok(json!({ "events": events, "failed": "the watch ended" })),
                Err(error) => return Ok(json!({ "events": events, "failed": error.to_string() })),
            }
        }
        Ok(json!({ "events": events }))
    }

    fn fill_request(&self, request: &Request) -> Request {
        let headers = request.headers.iter().map(|(name, value)| (name.clone(), self.fill(value))).collect();
        let body = match std::str::from_utf8(&request.body) {
            Ok(text) => self.fill(text).into(),
            Err(_) => request.body.clone(),
        };
        Request { path: self.fill(&request.path), body, headers, ..request.clone() }
    }

    fn fill(&self, template: &str) -> String {
        let mut text = template.to_owned();
        for (name, value) in &self.variables {
            text = text.replace(&format!("${{{name}}}"), value);
        }
        text
    }
}

fn needs_namespace(step: &Step) -> bool {
    match &step.action {
        Action::Send(_, request) | Action::Until(_, request, _) | Action::Watch(_, request) => {
            request.path.contains("${ns}") || request.body.windows(5).any(|window| window == b"${ns}")
        }
        Action::Take(..) | Action::Drain(_) | Action::DrainWithBookmarks(_) => false,
    }
}

fn is_untimely_bookmark(event: &Value) -> bool {
    event.pointer("/type").is_some_and(|kind| kind == "BOOKMARK")
        && event.pointer(INITIAL_EVENTS_END).is_none()
}

fn unexpected(action: &Action, answer: &Value) -> Option<String> {
    if let Some(failed) = answer.get("failed") {
        return Some(failed.to_string());
    }
    let Action::Send(expected, _) = action else { return None };
    let status = answer.get("status")?;
    (status != expected).then(|| {
        let said = answer.pointer("/body/message").unwrap_or(&Value::Null);
        format!("status {status} instead of {expected}: {said}")
    })
}

fn look(what: &str, name: &str) -> Request {
    let mut request = Request::get(format!("{what} {name}"));
    request.headers.push(("watch".into(), name.into()));
    request
}

fn request_json(request: &Request) -> Value {
    let mut shown = Map::new();
    shown.insert("method".into(), request.method.as_str().into());
    shown.insert("path".into(), request.path.clone().into());
    if !request.content_type.is_empty() {
        shown.insert("contentType".into(), request.content_type.clone().into());
    }
    for (name, value) in &request.headers {
        shown.insert(name.clone(), value.clone().into());
    }
    if !request.body.is_empty() {
        let text = || String::from_utf8_lossy(&request.body).into_owned().into();
        shown.insert("body".into(), serde_json::from_slice(&request.body).unwrap_or_else(|_| text()));
    }
    shown.into()
}

fn answer_json(answer: &Answer) -> Value {
    let mut shown = Map::new();
    shown.insert("status".into(), answer.status.into());
    for name in ["content-type", "warning", "retry-after"] {
        if let Some(value) = answer.header(name) {
            shown.insert(name.into(), value.into());
        }
    }
    let description = (answer.header("content-type") == Some(swagger::MEDIA_TYPE))
        .then(|| swagger::read(&answer.body))
        .flatten();
    shown.insert("body".into(), description.unwrap_or_else(|| answer.json()));
    shown.into()
}
