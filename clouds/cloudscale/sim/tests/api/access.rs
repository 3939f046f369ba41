//! Tokens: rotated, read-only, of another project.

use cloudscale_sim::{Access, Cloud};
use serde_json::{Value, json};

use crate::fixture::{Answer, cloud, request, send};

async fn with(cloud: &Cloud, token: Option<&str>, method: &str, path: &str, body: Value) -> Answer {
    let mut request = request(method, path, &body);
    match token {
        Some(token) => {
            let header = format!("Bearer {token}").parse().unwrap();
            request.headers_mut().insert("authorization", header);
        }
        None => drop(request.headers_mut().remove("authorization")),
    }
    send(cloud, request).await.unwrap()
}

#[tokio::test(start_paused = true)]
async fn tokens_can_be_rotated_and_restricted() {
    let cloud = cloud(|settings| settings.instances = 2);
    let body = json!({"name": "web", "flavor": "lb-standard"});
    assert_eq!(with(&cloud, None, "GET", "/v1/servers", Value::Null).await.status, 401);
    assert_eq!(with(&cloud, Some("any"), "GET", "/v1/servers", Value::Null).await.status, 200);
    cloud.set_tokens([("old", Access::ReadWrite)]);
    assert_eq!(with(&cloud, Some("any"), "GET", "/v1/servers", Value::Null).await.status, 401);
    assert_eq!(with(&cloud, Some("old"), "GET", "/v1/servers", Value::Null).await.status, 200);
    cloud.set_tokens([("new", Access::ReadWrite), ("look", Access::ReadOnly), ("far", Access::OtherProject)]);
    let table = [
        ("rotated away", "old", "GET", 401),
        ("rotated in", "new", "GET", 200),
        ("read-only reads", "look", "GET", 200),
        ("read-only does not write", "look", "POST", 403),
        ("another project", "far", "GET", 200),
        ("another project", "far", "POST", 201),
    ];
    for (case, token, method, status) in table {
        let body = if method == "GET" { Value::Null } else { body.clone() };
        let answer = with(&cloud, Some(token), method, "/v1/load-balancers", body).await;
        assert_eq!(answer.status, status, "{case}: {answer:?}");
        assert!(status < 400 || answer.json()["detail"].is_string(), "{case}: {answer:?}");
    }
    assert!(cloud.balancers().is_empty(), "what was made elsewhere is not here");
    assert_eq!(cloud.other_project().balancers.len(), 1);
    let servers = with(&cloud, Some("far"), "GET", "/v1/servers", Value::Null).await;
    assert_eq!(servers.json(), json!([]), "nor is what is here there");
}
