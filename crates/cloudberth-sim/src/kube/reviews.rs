//! Questions about who someone is and what they may do, answered at once.

use http::StatusCode;
use serde_json::{Value, json};

use super::decode::{self, WriteOptions};
use super::field::FieldErrors;
use super::job::Job;
use super::meta;
use super::negotiate;
use super::render::bytes;
use super::router::Reply;
use super::status::{Answer, Failure};
use super::users::{Action, User};
use super::value::{at, set, text, texts, unset};

/// Answers a review of any kind.
pub(crate) fn answer(job: &mut Job<'_>, user: &User) -> Answer<Reply> {
    negotiate::check_body(&job.incoming.headers)?;
    let options = WriteOptions::read(&job.incoming.query, "CreateOptions")?;
    let decoded = decode::body(&job.state.shapes, &job.resource, &job.incoming.body, options.strictness)?;
    job.warnings.extend(decoded.warnings);
    let mut review = decoded.object;
    meta::settle_namespace(&mut review, &job.namespace)?;
    unset(&mut review, "metadata.resourceVersion");
    let status = match job.resource.kind.as_str() {
        "TokenReview" => token(job, &review)?,
        "SelfSubjectReview" => json!({"userInfo": shown(user)}),
        "SelfSubjectRulesReview" => rules(),
        "SelfSubjectAccessReview" => access(job, user, &review, &[])?,
        _ => subject(job, &review)?,
    };
    set(&mut review, "status", status);
    set(&mut review, "kind", job.resource.kind.as_str());
    set(&mut review, "apiVersion", job.resource.api_version());
    Ok(Reply {
        warnings: std::mem::take(&mut job.warnings),
        ..Reply::json(StatusCode::CREATED, bytes(&review))
    })
}

fn shown(user: &User) -> Value {
    let mut info = json!({"username": user.name, "groups": user.groups});
    if !user.uid.is_empty() {
        set(&mut info, "uid", user.uid.as_str());
    }
    info
}

fn refuse(job: &Job<'_>, errors: &FieldErrors) -> Box<Failure> {
    Failure::invalid(&job.resource.group, &job.resource.kind, "", errors)
}

fn token(job: &Job<'_>, review: &Value) -> Answer<Value> {
    let token = text(review, "spec.token");
    if token.is_empty() {
        return Err(Failure::bad_request("token is required for TokenReview in authentication"));
    }
    match job.state.users.by_token(token) {
        Some(user) => {
            let mut status = json!({"authenticated": true, "user": shown(user)});
            let audiences = texts(review, "spec.audiences");
            if !audiences.is_empty() {
                set(&mut status, "audiences", json!(audiences));
            }
            Ok(status)
        }
        None => Ok(json!({"user": {}, "error": "invalid bearer token"})),
    }
}

fn subject(job: &Job<'_>, review: &Value) -> Answer<Value> {
    let mut errors = FieldErrors::default();
    let (name, groups) = (text(review, "spec.user"), texts(review, "spec.groups"));
    if name.is_empty() && groups.is_empty() {
        errors.required("spec.user", "at least one of user or group must be specified");
    }
    let user = User { name: name.to_owned(), uid: text(review, "spec.uid").to_owned(), groups };
    if !errors.is_empty() {
        return access(job, &user, review, &["spec.user"]);
    }
    access(job, &user, review, &[])
}

fn access(job: &Job<'_>, user: &User, review: &Value, missing: &[&str]) -> Answer<Value> {
    let mut errors = FieldErrors::default();
    let (on_resource, on_path) =
        (at(review, "spec.resourceAttributes"), at(review, "spec.nonResourceAttributes"));
    match (on_resource, on_path) {
        (Some(_), Some(_)) => {
            let why = "cannot be specified in combination with resourceAttributes";
            errors.invalid("spec.nonResourceAttributes", on_path.cloned().unwrap_or(Value::Null), why);
        }
        (None, None) => {
            let why = "exactly one of nonResourceAttributes or resourceAttributes must be specified";
            errors.invalid("spec.resourceAttributes", Value::Null, why);
        }
        _ => {}
    }
    for path in missing {
        errors.required(path, "at least one of user or group must be specified");
    }
    if !errors.is_empty() {
        return Err(refuse(job, &errors));
    }
    let part = |path: &str| text(review, path).to_owned();
    let action = if on_resource.is_some() {
        let of = |field: &str| part(&format!("spec.resourceAttributes.{field}"));
        Action {
            verb: of("verb"),
            group: of("group"),
            resource: of("resource"),
            subresource: of("subresource"),
            namespace: of("namespace"),
            name: of("name"),
            path: String::new(),
        }
    } else {
        Action {
            verb: part("spec.nonResourceAttributes.verb"),
            path: part("spec.nonResourceAttributes.path"),
            ..Action::default()
        }
    };
    Ok(match job.state.users.refusal(user, &action) {
        None => json!({"allowed": true}),
        Some(reason) if reason.is_empty() => json!({"allowed": false}),
        Some(reason) => json!({"allowed": false, "reason": reason}),
    })
}

/// Everything is allowed unless a policy says otherwise, and a policy cannot be listed.
fn rules() -> Value {
    json!({
        "resourceRules": [{"verbs": ["*"], "apiGroups": ["*"], "resources": ["*"]}],
        "nonResourceRules": [{"verbs": ["*"], "nonResourceURLs": ["*"]}],
        "incomplete": false,
    })
}
