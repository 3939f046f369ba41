//! Every kind of answer, held against the notes on the API.

use binarylane_sim::Question;
use serde_json::{Value, json};

use crate::{
    fixture::{ask, cloud, get, pass},
    schema::{ANSWERS, mistakes},
};

#[tokio::test(start_paused = true)]
async fn every_answer_has_the_fields_of_the_api() {
    let cloud = cloud(|settings| settings.instances = 25);
    let (server, vpc) = (cloud.servers()[0].id, cloud.first_vpc());
    cloud.switch(|switches| switches.question = Some(Question::ContinueAfterPingFailure));
    let made = json!({"name": "web", "region": "bne", "server_ids": [server]});
    let made = ask(&cloud, "POST", "/v2/load_balancers", made).await.json();
    let balancer = made["load_balancer"]["id"].clone();
    let blocked = made["links"]["actions"][0]["id"].clone();
    cloud.switch(|switches| switches.question = None);
    let entry = json!({"router": "10.240.0.4", "destination": "10.244.1.0/24", "description": "x"});
    let new =
        json!({"name": "new", "size": "std-min", "image": 77, "region": "syd", "vpc_id": vpc, "ipv6": true});
    let requests = [
        ("GET", "/v2/servers".to_owned(), Value::Null, "ServersResponse"),
        ("GET", "/v2/servers?page=2".to_owned(), Value::Null, "ServersResponse"),
        ("GET", format!("/v2/servers/{server}"), Value::Null, "ServerResponse"),
        ("POST", "/v2/servers".to_owned(), new, "CreateServerResponse"),
        ("POST", format!("/v2/servers/{server}/actions"), json!({"type": "power_off"}), "ActionResponse"),
        ("GET", format!("/v2/servers/{server}"), Value::Null, "ServerResponse"),
        ("GET", format!("/v2/servers/{server}/actions"), Value::Null, "ActionsResponse"),
        ("GET", format!("/v2/actions/{blocked}"), Value::Null, "ActionResponse"),
        ("GET", "/v2/actions".to_owned(), Value::Null, "ActionsResponse"),
        ("POST", "/v2/load_balancers".to_owned(), json!({"name": "any"}), "CreateLoadBalancerResponse"),
        ("GET", "/v2/load_balancers?per_page=1".to_owned(), Value::Null, "LoadBalancersResponse"),
        ("GET", format!("/v2/load_balancers/{balancer}"), Value::Null, "LoadBalancerResponse"),
        ("PUT", format!("/v2/load_balancers/{balancer}"), json!({"name": "b"}), "UpdateLoadBalancerResponse"),
        (
            "GET",
            "/v2/load_balancers/availability".to_owned(),
            Value::Null,
            "LoadBalancerAvailabilityResponse",
        ),
        ("POST", "/v2/vpcs".to_owned(), json!({"name": "other"}), "VpcResponse"),
        ("PATCH", format!("/v2/vpcs/{vpc}"), json!({"route_entries": [entry]}), "VpcResponse"),
        ("GET", format!("/v2/vpcs/{vpc}"), Value::Null, "VpcResponse"),
        ("GET", "/v2/vpcs".to_owned(), Value::Null, "VpcsResponse"),
        ("GET", format!("/v2/vpcs/{vpc}/members"), Value::Null, "VpcMembersResponse"),
        ("GET", "/v2/regions".to_owned(), Value::Null, "RegionsResponse"),
        ("GET", "/v2/sizes".to_owned(), Value::Null, "SizesResponse"),
        ("GET", "/v2/account".to_owned(), Value::Null, "AccountResponse"),
        ("GET", "/v2/servers/1".to_owned(), Value::Null, "ProblemDetails"),
        ("DELETE", format!("/v2/vpcs/{vpc}"), Value::Null, "ProblemDetails"),
        ("POST", "/v2/load_balancers".to_owned(), json!({}), "ValidationProblemDetails"),
    ];
    for (method, path, body, want) in &requests {
        let answer = ask(&cloud, method, path, body.clone()).await;
        assert_eq!(mistakes(want, &answer.json()), Vec::<String>::new(), "{method} {path}");
    }
    for (name, _) in ANSWERS {
        assert!(requests.iter().any(|(.., want)| want == name), "{name} was not asked for");
    }
    pass(2).await;
    for path in ["servers", "load_balancers", "actions"] {
        let name =
            requests.iter().find(|(_, asked, ..)| *asked == format!("/v2/{path}")).map(|(.., name)| *name);
        let name = if path == "load_balancers" { "LoadBalancersResponse" } else { name.unwrap() };
        let answer = get(&cloud, &format!("/v2/{path}?per_page=200")).await.json();
        assert_eq!(mistakes(name, &answer), Vec::<String>::new(), "later, {path}");
    }
}

#[tokio::test(start_paused = true)]
async fn a_newer_api_has_more_fields() {
    let cloud = cloud(|settings| {
        settings.instances = 1;
        settings.api_version = (0, 39, 1);
    });
    let answer = get(&cloud, "/v2/servers").await;
    assert_eq!(answer.headers["x-spec-version"], "0.39.1");
    let told = mistakes("ServersResponse", &answer.json());
    let place = "ServersResponse.servers[]";
    let want = [
        format!("{place}.networks.mac_address is unknown"),
        format!("{place}.is_under_maintenance is unknown"),
    ];
    assert_eq!(told, want, "BL-37");
    ask(&cloud, "POST", "/v2/load_balancers", json!({"name": "web"})).await;
    let told = mistakes("ActionsResponse", &get(&cloud, "/v2/actions").await.json());
    assert_eq!(told.len(), 3, "BL-152 title, reason and error_message: {told:?}");
}
