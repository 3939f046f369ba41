//! Our own notes on the objects of the API: which fields there are, of which type, and which words they may hold.

use serde_json::Value;

/// What a value may be.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Kind {
    Text,
    /// A point in time.
    Time,
    Integer,
    Number,
    Flag,
    /// One of these words.
    Word(&'static [&'static str]),
    /// A whole number or a text.
    IntegerOrText,
    Object(&'static [Field]),
    List(&'static Kind),
    /// A list of texts for each name.
    Texts,
}

/// How a field may be absent.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Need {
    Required,
    /// It may be missing or `null`.
    Nullable,
}

/// A field of an object.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Field(&'static str, Need, Kind);

use Kind::{Flag, Integer, IntegerOrText, List, Number, Object, Text, Texts, Time, Word};
use Need::{Nullable, Required};

const REGION: &[Field] = &[
    Field("slug", Required, Text),
    Field("name", Required, Text),
    Field("sizes", Required, List(&Text)),
    Field("available", Required, Flag),
    Field("features", Required, List(&Text)),
    Field("name_servers", Required, List(&Text)),
];

const SIZE: &[Field] = &[
    Field("slug", Required, Text),
    Field("size_type", Required, Object(&[Field("slug", Required, Text), Field("name", Required, Text)])),
    Field("available", Required, Flag),
    Field("regions", Required, List(&Text)),
    Field("price_monthly", Required, Number),
    Field("price_hourly", Required, Number),
    Field("disk", Required, Integer),
    Field("memory", Required, Integer),
    Field("transfer", Required, Number),
    Field("excess_transfer_cost_per_gigabyte", Required, Number),
    Field("vcpus", Required, Integer),
    Field("vcpu_units", Required, Text),
    Field("options", Required, Object(SIZE_OPTIONS)),
];

const SIZE_OPTIONS: &[Field] = &[
    Field("disk_min", Required, Integer),
    Field("disk_max", Required, Integer),
    Field("disk_cost_per_additional_gigabyte", Required, Number),
    Field("memory_max", Required, Integer),
    Field("memory_cost_per_additional_megabyte", Required, Number),
    Field("transfer_max", Required, Number),
    Field("transfer_cost_per_additional_gigabyte", Required, Number),
    Field("ipv4_addresses_max", Required, Integer),
    Field("ipv4_addresses_cost_per_address", Required, Number),
    Field("discount_for_no_public_ipv4", Required, Number),
    Field("daily_backups", Required, Integer),
    Field("weekly_backups", Required, Integer),
    Field("monthly_backups", Required, Integer),
    Field("backups_cost_per_backup_per_gigabyte", Required, Number),
    Field("offsite_backups_cost_per_gigabyte", Required, Number),
    Field(
        "offsite_backup_frequency_cost",
        Required,
        Object(&[
            Field("daily_per_gigabyte", Required, Number),
            Field("weekly_per_gigabyte", Required, Number),
            Field("monthly_per_gigabyte", Required, Number),
        ]),
    ),
];

const IMAGE: &[Field] = &[
    Field("id", Required, Integer),
    Field("name", Required, Text),
    Field("type", Required, Word(&["custom", "snapshot", "backup"])),
    Field("distribution", Nullable, Text),
    Field("slug", Nullable, Text),
    Field("public", Required, Flag),
    Field("regions", Required, List(&Text)),
    Field("min_disk_size", Required, Integer),
    Field("size_gigabytes", Required, Number),
    Field("status", Required, Word(&["NEW", "available", "pending", "deleted"])),
    Field(
        "distribution_info",
        Required,
        Object(&[
            Field("image_id", Required, Integer),
            Field(
                "password_recovery",
                Required,
                Word(&["manual", "offline-clear", "offline-change", "online-change"]),
            ),
            Field("features", Required, List(&Word(&["ssh", "remote-desktop", "user-data"]))),
        ]),
    ),
];

const NETWORK: &[Field] = &[
    Field("ip_address", Required, Text),
    Field("type", Required, Word(&["private", "public"])),
    Field("netmask", Nullable, IntegerOrText),
    Field("gateway", Nullable, Text),
    Field("reverse_name", Nullable, Text),
    Field("nat_target", Nullable, Text),
];

const NETWORKS: &[Field] = &[
    Field("v4", Required, List(&Object(NETWORK))),
    Field("v6", Required, List(&Object(NETWORK))),
    Field("port_blocking", Required, Flag),
    Field("recent_ddos", Required, Flag),
    Field("separate_private_network_interface", Nullable, Flag),
    Field("source_and_destination_check", Nullable, Flag),
];

const SERVER: &[Field] = &[
    Field("id", Required, Integer),
    Field("name", Required, Text),
    Field("memory", Required, Integer),
    Field("vcpus", Required, Integer),
    Field("disk", Required, Integer),
    Field("vpc_id", Nullable, Integer),
    Field("created_at", Required, Time),
    Field("status", Required, Word(&["new", "active", "archive", "off"])),
    Field("backup_ids", Required, List(&Integer)),
    Field("features", Required, List(&Text)),
    Field("region", Required, Object(REGION)),
    Field("image", Required, Object(IMAGE)),
    Field("size", Required, Object(SIZE)),
    Field("size_slug", Required, Text),
    Field("networks", Required, Object(NETWORKS)),
    Field(
        "disks",
        Required,
        List(&Object(&[
            Field("id", Required, Integer),
            Field("size_gigabytes", Required, Number),
            Field("primary", Required, Flag),
        ])),
    ),
    Field(
        "backup_settings",
        Required,
        Object(&[
            Field("backup_hour_of_day", Required, Integer),
            Field("backup_day_of_week", Required, Integer),
            Field("backup_day_of_month", Required, Integer),
        ]),
    ),
    Field("cancelled_at", Nullable, Time),
    Field("failover_ips", Required, List(&Text)),
    Field(
        "host",
        Required,
        Object(&[Field("display_name", Required, Text), Field("uptime_ms", Nullable, Integer)]),
    ),
    Field("password_change_supported", Required, Flag),
    Field("permalink", Nullable, Text),
    Field(
        "advanced_features",
        Required,
        Object(&[
            Field("video_device", Required, Word(&["cirrus-logic", "standard", "virtio", "virtio-wide"])),
            Field("enabled_advanced_features", Required, List(&Text)),
        ]),
    ),
];

const BALANCER: &[Field] = &[
    Field("id", Required, Integer),
    Field("name", Required, Text),
    Field("ip", Required, Text),
    Field("status", Required, Word(&["new", "active", "errored"])),
    Field("created_at", Required, Time),
    Field(
        "forwarding_rules",
        Required,
        List(&Object(&[Field("entry_protocol", Required, Word(&["http", "https"]))])),
    ),
    Field(
        "health_check",
        Required,
        Object(&[
            Field("protocol", Required, Word(&["http", "https", "both"])),
            Field("path", Required, Text),
        ]),
    ),
    Field("region", Nullable, Object(REGION)),
    Field("server_ids", Required, List(&Integer)),
];

const VPC: &[Field] = &[
    Field("id", Required, Integer),
    Field("name", Required, Text),
    Field("ip_range", Required, Text),
    Field(
        "route_entries",
        Required,
        List(&Object(&[
            Field("router", Required, Text),
            Field("destination", Required, Text),
            Field("description", Nullable, Text),
        ])),
    ),
];

const RESOURCES: &[&str] = &["server", "load-balancer", "ssh-key", "vpc", "image", "registered-domain-name"];

const MEMBER: &[Field] = &[
    Field("name", Required, Text),
    Field("resource_type", Required, Word(RESOURCES)),
    Field("resource_id", Required, Text),
    Field("created_at", Nullable, Time),
];

const QUESTIONS: &[&str] = &["continue-after-ping-failure", "allow-unclean-power-off"];

const ACTION: &[Field] = &[
    Field("id", Required, Integer),
    Field("status", Required, Word(&["in-progress", "completed", "errored"])),
    Field("type", Required, Text),
    Field("started_at", Required, Time),
    Field("completed_at", Nullable, Time),
    Field("resource_type", Nullable, Word(RESOURCES)),
    Field("resource_id", Nullable, Integer),
    Field("region", Nullable, Object(REGION)),
    Field("region_slug", Nullable, Text),
    Field(
        "progress",
        Required,
        Object(&[
            Field("percent_complete", Required, Integer),
            Field("current_step", Nullable, Text),
            Field("completed_steps", Required, List(&Text)),
        ]),
    ),
    Field("result_data", Nullable, Text),
    Field("blocking_invoice_id", Nullable, Integer),
    Field(
        "user_interaction_required",
        Nullable,
        Object(&[Field("interaction_type", Required, Word(QUESTIONS))]),
    ),
];

const ACTION_LINKS: &[Field] = &[Field(
    "actions",
    Required,
    List(&Object(&[
        Field("id", Required, Integer),
        Field("rel", Required, Text),
        Field("href", Required, Text),
    ])),
)];

const META: Field = Field("meta", Required, Object(&[Field("total", Required, Integer)]));

const LINKS: Field = Field(
    "links",
    Nullable,
    Object(&[Field(
        "pages",
        Required,
        Object(&[
            Field("first", Nullable, Text),
            Field("prev", Nullable, Text),
            Field("next", Nullable, Text),
            Field("last", Nullable, Text),
        ]),
    )]),
);

const ACCOUNT: &[Field] = &[
    Field("email", Required, Text),
    Field("email_verified", Required, Flag),
    Field("two_factor_authentication_enabled", Required, Flag),
    Field("status", Required, Word(&["incomplete", "active", "warning", "locked"])),
    Field(
        "tax_code",
        Required,
        Object(&[
            Field("name", Required, Text),
            Field("type", Required, Word(&["none", "scalar"])),
            Field("fixed_percent", Nullable, Number),
        ]),
    ),
    Field("configured_payment_methods", Required, List(&Word(&["credit-card", "paypal"]))),
    Field("additional_ipv4_limit", Required, Integer),
];

const OPTION: &[Field] = &[
    Field("anycast", Required, Flag),
    Field("regions", Nullable, List(&Text)),
    Field("price_monthly", Required, Number),
    Field("price_hourly", Required, Number),
];

/// The answers, each with the name that the API gives it.
pub(crate) const ANSWERS: &[(&str, &[Field])] = &[
    ("ServersResponse", &[Field("servers", Required, List(&Object(SERVER))), META, LINKS]),
    ("ServerResponse", &[Field("server", Required, Object(SERVER))]),
    (
        "CreateServerResponse",
        &[Field("server", Required, Object(SERVER)), Field("links", Required, Object(ACTION_LINKS))],
    ),
    ("ActionResponse", &[Field("action", Required, Object(ACTION))]),
    ("ActionsResponse", &[Field("actions", Required, List(&Object(ACTION))), META, LINKS]),
    ("LoadBalancersResponse", &[Field("load_balancers", Required, List(&Object(BALANCER))), META, LINKS]),
    ("LoadBalancerResponse", &[Field("load_balancer", Required, Object(BALANCER))]),
    (
        "CreateLoadBalancerResponse",
        &[Field("load_balancer", Required, Object(BALANCER)), Field("links", Required, Object(ACTION_LINKS))],
    ),
    (
        "UpdateLoadBalancerResponse",
        &[Field("load_balancer", Required, Object(BALANCER)), Field("links", Nullable, Object(ACTION_LINKS))],
    ),
    (
        "LoadBalancerAvailabilityResponse",
        &[Field("load_balancer_availability_options", Required, List(&Object(OPTION)))],
    ),
    ("VpcsResponse", &[Field("vpcs", Required, List(&Object(VPC))), META, LINKS]),
    ("VpcResponse", &[Field("vpc", Required, Object(VPC))]),
    ("VpcMembersResponse", &[Field("members", Required, List(&Object(MEMBER))), META, LINKS]),
    ("RegionsResponse", &[Field("regions", Required, List(&Object(REGION))), META, LINKS]),
    ("SizesResponse", &[Field("sizes", Required, List(&Object(SIZE))), META, LINKS]),
    ("AccountResponse", &[Field("account", Required, Object(ACCOUNT))]),
    (
        "ProblemDetails",
        &[
            Field("type", Nullable, Text),
            Field("title", Required, Text),
            Field("status", Nullable, Integer),
            Field("traceId", Nullable, Text),
        ],
    ),
    (
        "ValidationProblemDetails",
        &[
            Field("title", Required, Text),
            Field("status", Nullable, Integer),
            Field("errors", Required, Texts),
            Field("traceId", Nullable, Text),
        ],
    ),
];

/// What is wrong with an answer; nothing if it is as the API says. Fields that are not noted are wrong too.
pub(crate) fn mistakes(answer: &str, body: &Value) -> Vec<String> {
    let (_, fields) = ANSWERS.iter().find(|(name, _)| *name == answer).unwrap_or_else(|| panic!("{answer}?"));
    let mut mistakes = Vec::new();
    check(body, Object(fields), answer, &mut mistakes);
    mistakes
}

fn check(value: &Value, kind: Kind, place: &str, mistakes: &mut Vec<String>) {
    let fits = match kind {
        Text => value.is_string(),
        Time => value.as_str().is_some_and(|text| text.parse::<jiff::Timestamp>().is_ok()),
        Integer => value.is_i64(),
        Number => value.is_number(),
        Flag => value.is_boolean(),
        Word(words) => value.as_str().is_some_and(|word| words.contains(&word)),
        IntegerOrText => value.is_i64() || value.is_string(),
        List(_) => value.is_array(),
        Object(_) | Texts => value.is_object(),
    };
    if !fits {
        mistakes.push(format!("{place} is {value}"));
        return;
    }
    match kind {
        List(kind) => {
            for item in value.as_array().unwrap() {
                check(item, *kind, &format!("{place}[]"), mistakes);
            }
        }
        Texts => {
            for (name, texts) in value.as_object().unwrap() {
                check(texts, List(&Text), &format!("{place}.{name}"), mistakes);
            }
        }
        Object(fields) => object(value, fields, place, mistakes),
        _ => {}
    }
}

fn object(value: &Value, fields: &[Field], place: &str, mistakes: &mut Vec<String>) {
    let object = value.as_object().unwrap();
    for Field(name, need, kind) in fields {
        match object.get(*name).filter(|value| !value.is_null()) {
            Some(value) => check(value, *kind, &format!("{place}.{name}"), mistakes),
            None if *need == Required => mistakes.push(format!("{place}.{name} is missing")),
            None => {}
        }
    }
    let known = |name: &str| fields.iter().any(|Field(known, ..)| *known == name);
    mistakes
        .extend(object.keys().filter(|name| !known(name)).map(|name| format!("{place}.{name} is unknown")));
}

#[test]
fn wrong_answers_are_noticed() {
    let good =
        serde_json::json!({"vpc": {"id": 1, "name": "a", "ip_range": "10.0.0.0/8", "route_entries": []}});
    assert!(mistakes("VpcResponse", &good).is_empty());
    let table = [
        ("id", serde_json::json!("1"), "VpcResponse.vpc.id is \"1\""),
        ("name", Value::Null, "VpcResponse.vpc.name is missing"),
        ("route_entries", serde_json::json!([{}]), "VpcResponse.vpc.route_entries[].router is missing"),
        ("colour", serde_json::json!("red"), "VpcResponse.vpc.colour is unknown"),
    ];
    for (field, value, want) in table {
        let mut bad = good.clone();
        bad["vpc"][field] = value;
        assert!(mistakes("VpcResponse", &bad).iter().any(|told| told == want), "{field}");
    }
}
