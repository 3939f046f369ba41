//! The requests to an API server: the same rows from a real server's audit log and from the embedded API's call log.

use std::collections::BTreeMap;
use std::fs::File;
use std::io::{Read, Seek, SeekFrom};
use std::path::Path;

use embedded_kube::{Action, Call, Outcome};
use serde_json::Value;

/// One request, as authorization sees it.
#[derive(Clone, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub struct Row {
    /// Who asked.
    pub user: String,
    /// The `User-Agent` header.
    pub user_agent: String,
    /// `get`, `list`, `watch`, `create`, …; the method in lower case where it is no resource.
    pub verb: String,
    /// API group; empty for the core group.
    pub group: String,
    /// Resource in the plural; the path where it is no resource.
    pub resource: String,
    /// `status` and the like, or empty.
    pub subresource: String,
    /// Namespace, or empty.
    pub namespace: String,
    /// Name, or empty. A create has none.
    pub name: String,
    /// The status code of the answer; 0 when there was none.
    pub status: u16,
}

impl Row {
    /// The request as an authorizer sees it.
    pub fn action(&self) -> Action {
        let own = String::clone;
        let path = if self.resource.starts_with('/') { own(&self.resource) } else { String::new() };
        Action {
            verb: own(&self.verb),
            group: own(&self.group),
            resource: if path.is_empty() { own(&self.resource) } else { String::new() },
            subresource: own(&self.subresource),
            namespace: own(&self.namespace),
            name: own(&self.name),
            path,
        }
    }

    /// Whether it changed (or tried to change) something that is stored.
    pub fn is_write(&self) -> bool {
        matches!(self.verb.as_str(), "create" | "update" | "patch" | "delete" | "deletecollection")
            && !matches!(self.group.as_str(), "authentication.k8s.io" | "authorization.k8s.io")
            && self.subresource != "token"
    }

    fn settled(mut self) -> Self {
        if self.verb == "create" && self.subresource.is_empty() {
            self.name.clear();
        }
        self
    }
}

/// The rows of the embedded API's log.
pub(crate) fn from_log(calls: &[Call]) -> Vec<Row> {
    let row = |call: &Call| {
        let status = match call.outcome {
            Outcome::Answered(code) | Outcome::Lost(code) => code,
            Outcome::Dropped => 0,
        };
        let own = String::clone;
        Row {
            user: own(&call.user),
            user_agent: own(&call.user_agent),
            verb: own(&call.verb),
            group: own(&call.group),
            resource: own(&call.resource),
            subresource: own(&call.subresource),
            namespace: own(&call.namespace),
            name: own(&call.name),
            status,
        }
        .settled()
    };
    calls.iter().map(row).collect()
}

/// An audit log that is read while it is written, each time only the new lines: it has thousands of them and is read many
/// times a second.
#[derive(Debug, Default)]
pub(crate) struct Audit {
    /// How many bytes have been read.
    read: u64,
    /// One for each request, in the order in which they came in.
    rows: Vec<Row>,
    /// The index of the row of each request.
    places: BTreeMap<String, usize>,
    /// How many rows there were when the server last ended: requests without an answer by then never get one.
    over: usize,
}

impl Audit {
    /// The rows so far. A file that is not there yet has none.
    pub(crate) fn read_on(&mut self, file: &Path) -> &[Row] {
        let mut new = Vec::new();
        let read = File::open(file).and_then(|mut file| {
            file.seek(SeekFrom::Start(self.read))?;
            file.read_to_end(&mut new)
        });
        if read.is_ok() {
            self.take(&new);
        }
        &self.rows
    }

    /// Notes that the server has ended: requests without an answer never get one.
    pub(crate) fn ended(&mut self, file: &Path) {
        self.over = self.read_on(file).len();
    }

    /// Requests that can still be answered, as far as the log was read.
    pub(crate) fn in_flight(&self) -> impl Iterator<Item = &Row> {
        self.rows.iter().skip(self.over).filter(|row| row.status == 0)
    }

    /// A line that is still being written is left for the next time.
    fn take(&mut self, log: &[u8]) {
        let whole = log.iter().rposition(|byte| *byte == b'\n').map_or(0, |end| end + 1);
        self.read += u64::try_from(whole).unwrap_or_default();
        let lines = log.get(..whole).unwrap_or_default().split(|byte| *byte == b'\n');
        for event in lines.filter_map(|line| serde_json::from_slice::<Value>(line).ok()) {
            let id = text(&event, "/auditID").to_owned();
            let place = *self.places.entry(id).or_insert(self.rows.len());
            match self.rows.get_mut(place) {
                // A later stage knows how it ended.
                Some(row) => row.status = status(&event),
                None => self.rows.push(begun(&event).settled()),
            }
        }
    }
}

fn begun(event: &Value) -> Row {
    let own = |pointer| text(event, pointer).to_owned();
    let path = text(event, "/requestURI").split('?').next().unwrap_or_default();
    let resource = own("/objectRef/resource");
    Row {
        user: own("/user/username"),
        user_agent: own("/userAgent"),
        verb: own("/verb"),
        group: own("/objectRef/apiGroup"),
        resource: if resource.is_empty() { path.to_owned() } else { resource },
        subresource: own("/objectRef/subresource"),
        namespace: own("/objectRef/namespace"),
        name: own("/objectRef/name"),
        status: status(event),
    }
}

fn status(event: &Value) -> u16 {
    let code = event.pointer("/responseStatus/code").and_then(Value::as_u64);
    code.and_then(|code| u16::try_from(code).ok()).unwrap_or(0)
}

fn text<'v>(event: &'v Value, pointer: &str) -> &'v str {
    event.pointer(pointer).and_then(Value::as_str).unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn an_audit_log_has_one_row_for_each_request() {
        let event = |id: &str, stage: &str, verb: &str, object: Value, code: Option<u16>| {
            json!({ "auditID": id, "stage": stage, "verb": verb, "user": { "username": "u" }, "userAgent": "a",
                "requestURI": "/some/where?x=y", "objectRef": object,
                "responseStatus": code.map(|code| json!({ "code": code })) })
            .to_string()
        };
        let lease =
            json!({ "resource": "leases", "apiGroup": "coordination.k8s.io", "namespace": "n", "name": "l" });
        let lines = [
            event("1", "RequestReceived", "create", lease.clone(), None),
            event("2", "RequestReceived", "watch", lease.clone(), None),
            event("1", "ResponseComplete", "create", lease.clone(), Some(409)),
            event("2", "ResponseStarted", "watch", lease, Some(200)),
            event("3", "ResponseComplete", "get", Value::Null, Some(403)),
            r#"{"auditID":"4","#.to_owned(),
        ];
        let log = lines.join("\n");
        let mut audit = Audit::default();
        // In two pieces, the first of which ends in the middle of a line.
        audit.take(&log.as_bytes()[..700]);
        assert!(!audit.rows.is_empty() && audit.rows.len() < 3, "{:?}", audit.rows);
        let read = usize::try_from(audit.read).unwrap();
        audit.take(&log.as_bytes()[read..]);
        let rows = audit.rows;
        let row = |verb: &str, name: &str, status| Row {
            user: "u".into(),
            user_agent: "a".into(),
            verb: verb.into(),
            group: "coordination.k8s.io".into(),
            resource: "leases".into(),
            namespace: "n".into(),
            name: name.into(),
            status,
            ..Row::default()
        };
        let path = Row {
            group: String::new(),
            resource: "/some/where".into(),
            namespace: String::new(),
            ..row("get", "", 403)
        };
        assert_eq!(rows, [row("create", "", 409), row("watch", "l", 200), path]);
        assert_eq!(rows[2].action().path, "/some/where");
        assert!(rows[0].is_write() && !rows[1].is_write());
    }
}
