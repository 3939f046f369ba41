//! The token endpoint, and who may call the API.

use base64::{Engine as _, engine::general_purpose::STANDARD};
use brightbox_sim::Cloud;
use bytes::Bytes;
use http::Request;
use http_body_util::Full;
use serde_json::{Value, json};

use crate::fixture::{Answer, closed, cloud, pass, request, secs, send};

/// Asks for a token with a `Basic` header.
async fn token(cloud: &Cloud, client: &str, secret: &str, form: &str) -> Answer {
    let header = format!("Basic {}", STANDARD.encode(format!("{client}:{secret}")));
    token_with(cloud, Some(&header), form).await
}

async fn token_with(cloud: &Cloud, header: Option<&str>, body: &str) -> Answer {
    let mut request = Request::builder().method("POST").uri("https://api.example/token/");
    if let Some(header) = header {
        request = request.header("authorization", header);
    }
    send(cloud, request.body(Full::new(Bytes::from(body.to_owned()))).unwrap()).await.unwrap()
}

/// A call with a header of one's own.
async fn call(cloud: &Cloud, header: &str, path: &str) -> Answer {
    let mut request = request("GET", path, &Value::Null);
    match header {
        "" => drop(request.headers_mut().remove("authorization")),
        _ => drop(request.headers_mut().insert("authorization", header.parse().unwrap())),
    }
    send(cloud, request).await.unwrap()
}

async fn own_token(cloud: &Cloud) -> String {
    let own = cloud.credentials();
    let answer =
        token(cloud, &own.client, &own.secret, "grant_type=client_credentials&scope=infrastructure+orbit")
            .await;
    assert_eq!(answer.status, 200, "{answer:?}");
    answer.json()["access_token"].as_str().unwrap().to_owned()
}

#[tokio::test(start_paused = true)]
async fn an_api_client_gets_a_token_and_is_let_in() {
    let cloud = closed(|_| {});
    let own = cloud.credentials();
    let form = "grant_type=client_credentials&scope=infrastructure+orbit";
    let answer = token(&cloud, &own.client, &own.secret, form).await;
    assert_eq!((answer.status, answer.header("cache-control")), (200, "no-store"));
    let body = answer.json();
    assert_eq!((&body["expires_in"], &body["token_type"]), (&json!(7_200), &json!("Bearer")));
    assert_eq!(body["refresh_token"], Value::Null, "only users are given one");
    let bearer = body["access_token"].as_str().unwrap();
    for scheme in ["Bearer", "OAuth"] {
        let answer = call(&cloud, &format!("{scheme} {bearer}"), "/1.0/accounts").await;
        assert_eq!(
            (answer.status, answer.header("cache-control")),
            (200, "no-cache"),
            "{scheme}: {answer:?}"
        );
        assert_eq!(answer.json()[0]["id"], json!(cloud.account()), "{scheme}");
        assert!(answer.header("x-request-id").starts_with("req-"), "{answer:?}");
    }
    let in_form = format!("{form}&client_id={}&client_secret={}", own.client, own.secret);
    assert_eq!(token_with(&cloud, None, &in_form).await.status, 200, "credentials in the form");
    let as_json =
        json!({"grant_type": "client_credentials", "client_id": own.client, "client_secret": own.secret});
    assert_eq!(token_with(&cloud, None, &as_json.to_string()).await.status, 200, "a body in JSON");
    assert_eq!(cloud.tally().mutations, 0, "a token changes nothing");
}

#[tokio::test(start_paused = true)]
async fn who_may_not_have_a_token_is_told_why() {
    let cloud = closed(|_| {});
    cloud.set_credentials("cli-12345", "right");
    cloud.add_application("app-12345", "right");
    cloud.add_user("ada@example.org", "pw");
    cloud.add_user_with_second_factor("bob@example.org", "pw");
    let user = "grant_type=password&username=ada%40example.org&password";
    let bob = "grant_type=password&username=bob%40example.org&password=pw";
    let table = [
        ("unknown client", "cli-other", "right", "grant_type=client_credentials", 400, "invalid_client"),
        ("wrong secret", "cli-12345", "wrong", "grant_type=client_credentials", 401, "invalid_client"),
        ("empty secret", "cli-12345", "", "grant_type=client_credentials", 401, "invalid_client"),
        (
            "application by itself",
            "app-12345",
            "right",
            "grant_type=client_credentials",
            400,
            "unauthorized_client",
        ),
        ("user without application", "cli-12345", "right", &format!("{user}=pw"), 400, "unauthorized_client"),
        ("wrong password", "app-12345", "right", &format!("{user}=no"), 401, "invalid_client"),
        ("empty password", "app-12345", "right", &format!("{user}="), 401, "invalid_client"),
        ("second factor", "app-12345", "right", bob, 401, "invalid_client"),
        (
            "unknown refresh token",
            "app-12345",
            "right",
            "grant_type=refresh_token&refresh_token=x",
            400,
            "invalid_grant",
        ),
        (
            "unknown scope",
            "cli-12345",
            "right",
            "grant_type=client_credentials&scope=moon",
            400,
            "invalid_scope",
        ),
        ("no grant", "cli-12345", "right", "", 400, "invalid_request"),
        ("other grant", "cli-12345", "right", "grant_type=implicit", 400, "unsupported_grant_type"),
    ];
    for (case, client, secret, form, status, error) in table {
        let answer = token(&cloud, client, secret, form).await;
        assert_eq!((answer.status, &answer.json()["error"]), (status, &json!(error)), "{case}: {answer:?}");
        let basic = answer.header("www-authenticate").starts_with("Basic realm=");
        assert_eq!(basic, status == 401, "{case}: {answer:?}");
        assert_eq!(answer.header("x-brightbox-otp") == "required", case == "second factor", "{case}");
    }
    let nobody = token_with(&cloud, None, "grant_type=client_credentials").await;
    assert_eq!((nobody.status, &nobody.json()["error"]), (400, &json!("invalid_client")), "no client at all");
}

#[tokio::test(start_paused = true)]
async fn access_tokens_expire_and_can_be_taken_back() {
    let cloud = closed(|_| {});
    let refused = async |header: &str, want: &str| {
        let answer = call(&cloud, header, "/1.0/servers").await;
        assert_eq!((answer.status, &answer.json()["error"]), (401, &json!(want)), "{header}: {answer:?}");
        assert_eq!(answer.header("www-authenticate"), format!("OAuth error=\"{want}\""), "{header}");
    };
    refused("", "invalid_token").await;
    refused("Bearer nonsense", "invalid_token").await;
    refused("Basic x", "invalid_token").await;
    let bearer = format!("Bearer {}", own_token(&cloud).await);
    pass(secs(7_199)).await;
    assert_eq!(call(&cloud, &bearer, "/1.0/servers").await.status, 200);
    pass(secs(1)).await;
    refused(&bearer, "expired_token").await;
    let bearer = format!("Bearer {}", own_token(&cloud).await);
    cloud.expire_tokens();
    refused(&bearer, "expired_token").await;
    let bearer = format!("Bearer {}", own_token(&cloud).await);
    cloud.revoke_tokens();
    refused(&bearer, "invalid_token").await;
    let bearer = format!("Bearer {}", own_token(&cloud).await);
    cloud.set_credentials("cli-other", "x");
    assert_eq!(call(&cloud, &bearer, "/1.0/servers").await.status, 200, "tokens outlive their credentials");
}

#[tokio::test(start_paused = true)]
async fn users_have_refresh_tokens_and_name_their_account() {
    for rotate in [false, true] {
        let cloud = closed(|settings| settings.tokens.rotate_refresh = rotate);
        cloud.add_application("app-12345", "right");
        cloud.add_user("ada@example.org", "pw");
        let form = "grant_type=password&username=ada%40example.org&password=pw&scope=infrastructure+orbit";
        let first = token(&cloud, "app-12345", "right", form).await.json();
        let bearer = format!("Bearer {}", first["access_token"].as_str().unwrap());
        let refresh =
            |token: &Value| format!("grant_type=refresh_token&refresh_token={}", token.as_str().unwrap());
        let table = [
            (format!("?account_id={}", cloud.account()), 200),
            (format!("?nested=false&account_id={}", cloud.account()), 200),
            ("?account_id=acc-other".to_owned(), 403),
            (String::new(), 403),
        ];
        for (query, status) in table {
            let answer = call(&cloud, &bearer, &format!("/1.0/servers{query}")).await;
            assert_eq!(answer.status, status, "{query}: {answer:?}");
        }
        let second = token(&cloud, "app-12345", "right", &refresh(&first["refresh_token"])).await;
        assert_eq!(second.status, 200, "{second:?}");
        let second = second.json();
        assert_ne!(second["access_token"], first["access_token"]);
        assert_eq!(second["refresh_token"] != first["refresh_token"], rotate);
        let again = token(&cloud, "app-12345", "right", &refresh(&first["refresh_token"])).await;
        assert_eq!(again.status, if rotate { 400 } else { 200 }, "{rotate}: {again:?}");
        cloud.revoke_refresh_tokens();
        let gone = token(&cloud, "app-12345", "right", &refresh(&second["refresh_token"])).await;
        assert_eq!((gone.status, &gone.json()["error"]), (400, &json!("invalid_grant")));
        let third = token(&cloud, "app-12345", "right", form).await.json();
        pass(secs(30 * 24 * 3_600)).await;
        let late = token(&cloud, "app-12345", "right", &refresh(&third["refresh_token"])).await;
        assert_eq!(late.status, 400, "refresh tokens expire too: {late:?}");
    }
}

#[tokio::test(start_paused = true)]
async fn an_open_cloud_lets_everybody_in() {
    let cloud = cloud(|_| {});
    let table = [("cli-any", "x", 200), ("cli-any", "", 400)];
    for (client, secret, status) in table {
        let answer = token(&cloud, client, secret, "grant_type=client_credentials").await;
        assert_eq!(answer.status, status, "{answer:?}");
    }
    assert_eq!(call(&cloud, "Bearer any", "/1.0/servers").await.status, 200);
    assert_eq!(call(&cloud, "", "/1.0/servers").await.status, 401, "but there must be a token");
    let bearer = format!("Bearer {}", own_token(&cloud).await);
    cloud.expire_tokens();
    assert_eq!(call(&cloud, &bearer, "/1.0/servers").await.status, 401, "what it gave it takes back");
}

#[tokio::test(start_paused = true)]
async fn tokens_can_come_as_forms_and_the_journal_keeps_no_secrets() {
    let cloud = closed(|settings| settings.tokens.as_forms = true);
    cloud.add_application("app-12345", "hush1");
    cloud.add_user("ada@example.org", "hush2");
    let form = "grant_type=password&username=ada%40example.org&password=hush2&scope=infrastructure+orbit";
    let answer = token(&cloud, "app-12345", "hush1", form).await;
    assert_eq!(answer.header("content-type"), "application/x-www-form-urlencoded");
    assert!(
        answer.text.contains("access%5Ftoken=") && answer.text.contains("expires%5Fin=7200"),
        "{answer:?}"
    );
    let entry = cloud.journal().remove(0);
    assert_eq!((entry.operation.as_str(), entry.path.as_str(), entry.mutation), ("token", "/token/", false));
    let fields = entry.body.clone().unwrap();
    let names: Vec<_> = fields.as_object().unwrap().keys().map(String::as_str).collect();
    assert_eq!(names, ["grant_type", "password", "scope", "username"]);
    let shown = format!("{entry:?} {:?} {:?}", cloud.credentials(), cloud);
    assert!(!shown.contains("hush") && !shown.contains(&cloud.credentials().secret), "{shown}");
}
