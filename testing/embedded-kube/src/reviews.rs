//! Reviews: who a user is and what they may do. They are answered and not stored.

use http::StatusCode;
use serde_json::{Value, json};

use super::canonical;
use super::decode::{self, WriteOptions};
use super::field::FieldErrors;
use super::job::Job;
use super::json as reader;
use super::meta;
use super::render::bytes;
use super::router::Reply;
use super::status::{Answer, Failure};
use super::time;
use super::users::{Action, User};
use super::value::{at, int, set, text, texts, unset};

const NOBODY: &str = "at least one of user or group must be specified";

/// Answers a review of any kind.
pub(crate) fn answer(job: &mut Job<'_>, user: &User) -> Answer<Reply> {
    let options = WriteOptions::read(&job.incoming.query, "CreateOptions")?;
    let body = job.body(job.resource.shape.as_deref())?;
    let decoded =
        decode::body(&job.state.shapes, &job.state.resources, &job.resource, &body, options.strictness)?;
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

/// Makes a token for a service account; requests may use it from then on.
pub(crate) fn token_request(job: &mut Job<'_>) -> Answer<Reply> {
    const SHAPE: &str = "authentication/v1.TokenRequest";
    let account = job.existing()?;
    let body = job.body(Some(SHAPE))?;
    let given = reader::parse(&body).map_err(|error| Failure::bad_request(error.to_string()))?.value;
    let reading = canonical::read(&job.state.shapes, SHAPE, &given);
    let mut request = reading.map_err(|error| Failure::bad_request(error.to_string()))?.value;
    let now = job.state.world.now();
    let seconds = match int(&request, "spec.expirationSeconds") {
        0 => 3600,
        seconds => seconds,
    };
    if seconds < 600 {
        let mut errors = FieldErrors::default();
        errors.invalid("spec.expirationSeconds", seconds, "may not specify a duration less than 10 minutes");
        return Err(Failure::invalid("authentication.k8s.io", "TokenRequest", &job.name, &errors));
    }
    let expires = now.checked_add(jiff::SignedDuration::from_secs(seconds)).unwrap_or(now);
    let (token, uid) = (job.state.world.uuid(), text(&account, "metadata.uid").to_owned());
    if texts(&request, "spec.audiences").is_empty() {
        set(&mut request, "spec.audiences", json!(["https://kubernetes.default.svc"]));
    }
    set(&mut request, "spec.expirationSeconds", seconds);
    set(
        &mut request,
        "metadata",
        json!({
            "name": job.name, "namespace": job.namespace, "uid": uid, "creationTimestamp": time::seconds(now),
        }),
    );
    set(&mut request, "status", json!({"token": token, "expirationTimestamp": time::seconds(expires)}));
    set(&mut request, "kind", "TokenRequest");
    set(&mut request, "apiVersion", "authentication.k8s.io/v1");
    let groups = [
        "system:serviceaccounts",
        &format!("system:serviceaccounts:{}", job.namespace),
        "system:authenticated",
    ];
    let groups = groups.map(str::to_owned).to_vec();
    let name = format!("system:serviceaccount:{}:{}", job.namespace, job.name);
    job.state.users.issue(&token, User { name, uid, groups });
    Ok(Reply::json(StatusCode::CREATED, bytes(&request)))
}

fn shown(user: &User) -> Value {
    let mut info = json!({"username": user.name, "groups": user.groups});
    if !user.uid.is_empty() {
        set(&mut info, "uid", user.uid.as_str());
    }
    info
}

fn refuse(job: &Job<'_>, errors: &FieldErrors) -> Failure {
    Failure::invalid(&job.resource.group, "", "", errors)
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
        errors.invalid("spec.user", "", NOBODY);
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
            errors.invalid("spec", Value::Null, why);
        }
        _ => {}
    }
    for path in missing {
        errors.invalid(path, "", NOBODY);
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
