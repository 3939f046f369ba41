//! Health monitors.

use serde_json::{Map, Value};

use super::{Moment, World};
use crate::{
    fields::{Fields, check_positive, patch_labels},
    refusal::Refusal,
    resources::{HttpCheck, Monitor},
};

const TYPES: [&str; 6] = ["ping", "tcp", "http", "https", "tls-hello", "udp-connect"];
const METHODS: [&str; 9] = ["CONNECT", "DELETE", "GET", "HEAD", "OPTIONS", "PATCH", "POST", "PUT", "TRACE"];

fn speaks_http(kind: &str) -> bool {
    matches!(kind, "http" | "https")
}

impl World {
    pub(super) fn create_monitor(
        &mut self,
        body: &Map<String, Value>,
        at: Moment,
    ) -> Result<String, Refusal> {
        let mut fields = Fields::new(body);
        let pool = fields.required_text("pool").to_owned();
        let kind = fields.required_word("type", &TYPES).to_owned();
        let monitor = Monitor {
            uuid: String::new(),
            created_at: at.wall,
            delay_s: fields.positive("delay_s", 2),
            timeout_s: fields.positive("timeout_s", 1),
            up_threshold: fields.positive("up_threshold", 2),
            down_threshold: fields.positive("down_threshold", 3),
            http: speaks_http(&kind).then(HttpCheck::default),
            tags: fields.tags(),
            pool,
            kind,
        };
        let options = fields.value("http").cloned();
        fields.finish()?;
        let mut monitor = monitor;
        if let Some(options) = options {
            // The version decides whether a host may be given, so it comes first.
            let (version, rest): (Vec<_>, Vec<_>) =
                http_options(&options)?.iter().partition(|(option, _)| *option == "version");
            for (option, value) in version.into_iter().chain(rest) {
                set_http(&mut monitor, option, value)?;
            }
        }
        check_pace(&monitor)?;
        let balancer = self.balancer_of_built_pool(&monitor.pool, at)?;
        if self.resources.monitor_of(&monitor.pool).is_some() {
            return Err(Refusal::field("pool", "The pool already has a health monitor."));
        }
        monitor.uuid = self.draw_id();
        let id = monitor.uuid.clone();
        self.touched(&balancer, at);
        self.resources.monitors.insert(id.clone(), monitor);
        Ok(id)
    }

    pub(super) fn update_monitor(
        &mut self,
        id: &str,
        attribute: &str,
        value: &Value,
        at: Moment,
    ) -> Result<(), Refusal> {
        let mut monitor = self.resources.monitors.get(id).ok_or_else(Refusal::not_found)?.clone();
        let positive = || check_positive(value).map_err(|why| Refusal::field(attribute, why));
        match attribute {
            "delay_s" => monitor.delay_s = positive()?,
            "timeout_s" => monitor.timeout_s = positive()?,
            "up_threshold" => monitor.up_threshold = positive()?,
            "down_threshold" => monitor.down_threshold = positive()?,
            "http" if value.is_null() => {}
            "http" => match crate::fields::single(http_options(value)?)? {
                Some(("version", _)) => return Err(Refusal::fixed("version")),
                Some((option, value)) => set_http(&mut monitor, option, value)?,
                None => {}
            },
            _ => patch_labels(attribute, value, None, &mut monitor.tags)?,
        }
        check_pace(&monitor)?;
        self.touched_by_pool(&monitor.pool, at);
        self.resources.monitors.insert(id.to_owned(), monitor);
        Ok(())
    }

    pub(super) fn delete_monitor(&mut self, id: &str, at: Moment) {
        if let Some(monitor) = self.resources.monitors.remove(id) {
            self.touched_by_pool(&monitor.pool, at);
        }
    }
}

fn check_pace(monitor: &Monitor) -> Result<(), Refusal> {
    if monitor.kind == "udp-connect" && monitor.delay_s < 3 {
        return Err(Refusal::field(
            "delay_s",
            "The delay of a udp-connect monitor must be at least 3 seconds.",
        ));
    }
    if monitor.timeout_s > monitor.delay_s {
        return Err(Refusal::field("timeout_s", "The timeout must not be greater than the delay."));
    }
    Ok(())
}

fn http_options(value: &Value) -> Result<&Map<String, Value>, Refusal> {
    value.as_object().ok_or_else(|| Refusal::field("http", "Expected a dictionary of items."))
}

/// Sets one option; `null` leaves it as it is.
fn set_http(monitor: &mut Monitor, option: &str, value: &Value) -> Result<(), Refusal> {
    let wrong = |why: &str| Err(Refusal::field("http", serde_json::json!({option: why})));
    let Some(http) = &mut monitor.http else {
        return Err(Refusal::field("http", "The http argument can only be used with type http or https."));
    };
    let text = value.as_str();
    match (option, text) {
        (_, _) if value.is_null() && option != "host" => {}
        ("expected_codes", _) => match check_codes(value) {
            Some(codes) => http.expected_codes = codes,
            None => return wrong("Expect a list of codes, or a list with one range of codes."),
        },
        ("method", Some(method)) if METHODS.contains(&method) => method.clone_into(&mut http.method),
        ("method", _) => return wrong(&format!("Expect one of: {}.", METHODS.join(", "))),
        ("url_path", Some(path)) if path.starts_with('/') => path.clone_into(&mut http.url_path),
        ("url_path", _) => return wrong("Expect a path that begins with a slash."),
        ("version", Some(version @ ("1.0" | "1.1"))) => version.clone_into(&mut http.version),
        ("version", _) => return wrong("Expect one of: 1.0, 1.1."),
        ("host", None) if !value.is_null() => return wrong("Not a valid string."),
        ("host", None | Some("")) => http.host = None,
        ("host", Some(_)) if http.version == "1.0" => {
            return wrong("The host argument can not be used with HTTP version 1.0.");
        }
        ("host", Some(host)) => http.host = Some(host.to_owned()),
        // The API ignores unknown options.
        _ => {}
    }
    Ok(())
}

/// Codes, or a single range.
fn check_codes(value: &Value) -> Option<Vec<String>> {
    let code = |text: &str| text.parse::<u16>().ok().filter(|code| (100..=599).contains(code));
    let range =
        |text: &str| text.split_once('-').is_some_and(|(from, to)| code(from).zip(code(to)).is_some());
    let codes: Vec<_> =
        value.as_array()?.iter().map(|entry| entry.as_str().map(str::to_owned)).collect::<Option<_>>()?;
    let good = match codes.as_slice() {
        [] => false,
        [only] if range(only) => true,
        all => all.iter().all(|text| code(text).is_some()),
    };
    good.then_some(codes)
}
